# What was there before we came, so that reset can leave the machine as it was found.

function Get-RecordPath {
    return [System.IO.Path]::Combine($Node.Paths.state, 'record.json')
}

function Read-Record {
    # All entries; empty when there is no record.
    $entries = @{}
    $path = Get-RecordPath
    if (-not [System.IO.File]::Exists($path)) {
        return $entries
    }
    try {
        $document = ConvertFrom-Json -InputObject ([System.IO.File]::ReadAllText($path))
    }
    catch {
        $document = $null
    }
    if ($null -eq $document) {
        throw "$path is damaged, and tells what was on this machine before: put a copy of it back"
    }
    foreach ($property in $document.PSObject.Properties) {
        $entries[$property.Name] = [string]$property.Value
    }
    return $entries
}

function Write-Text {
    # A whole file or none: written beside it, then put in its place. UTF-8 without a mark.
    param([string]$Path, [AllowEmptyString()][string]$Text)
    $new = $Path + '.new'
    [System.IO.File]::WriteAllText($new, $Text, (New-Object System.Text.UTF8Encoding $false))
    Move-IntoPlace -Source $new -Target $Path
}

function Move-IntoPlace {
    param([string]$Source, [string]$Target)
    if ([System.IO.File]::Exists($Target)) {
        [System.IO.File]::Replace($Source, $Target, [NullString]::Value)
    }
    else {
        [System.IO.File]::Move($Source, $Target)
    }
}

function Write-Record {
    param([hashtable]$Entries)
    $sorted = [ordered]@{}
    foreach ($key in @($Entries.Keys | Sort-Object)) {
        $sorted[$key] = $Entries[$key]
    }
    Write-Text -Path (Get-RecordPath) -Text (ConvertTo-Json -InputObject $sorted)
}

function Get-RecordEntry {
    # Empty when nothing was recorded.
    param([string]$Key)
    $entries = Read-Record
    if ($entries.ContainsKey($Key)) {
        return $entries[$Key]
    }
    return ''
}

function Set-RecordEntry {
    param([string]$Key, [string]$Value)
    $entries = Read-Record
    if ($entries.ContainsKey($Key) -and $entries[$Key] -eq $Value) {
        return
    }
    $entries[$Key] = $Value
    Write-Record $entries
}

function Add-RecordEntry {
    # Only the first time counts: later runs find what earlier ones made.
    param([string]$Key, [string]$Value)
    $entries = Read-Record
    if (-not $entries.ContainsKey($Key)) {
        $entries[$Key] = $Value
        Write-Record $entries
    }
}

function Remove-RecordEntry {
    param([string]$Key)
    $entries = Read-Record
    if ($entries.ContainsKey($Key)) {
        $entries.Remove($Key)
        Write-Record $entries
    }
}

function Get-RecordedNames {
    # What follows a prefix in the keys whose value is the one asked for, sorted.
    param([string]$Prefix, [string]$Value)
    $entries = Read-Record
    $names = @($entries.Keys | Where-Object { $_.StartsWith($Prefix) -and $entries[$_] -eq $Value })
    return @($names | ForEach-Object { $_.Substring($Prefix.Length) } | Sort-Object)
}

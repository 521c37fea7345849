# Files from the bundle or the network: verified before they are used, put in place whole, backed up when others owned them.

function Get-ProxyFor {
    # The proxy for a URL, or nothing.
    param([string]$Url)
    $address = New-Object System.Uri $Url
    $proxy = $Node.Parameters.proxy.http
    if ($address.Scheme -eq 'https') {
        $proxy = $Node.Parameters.proxy.https
    }
    foreach ($name in @($Node.Parameters.proxy.no_proxy)) {
        $suffix = '.' + $name.TrimStart('.')
        if ($address.Host -eq $name -or ('.' + $address.Host).EndsWith($suffix)) {
            return ''
        }
    }
    return $proxy
}

function Save-Download {
    # Fetch a URL into a file, several times if need be.
    param([string]$Url, [string]$Path)
    [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
    $request = @{ Uri = $Url; OutFile = $Path; UseBasicParsing = $true; TimeoutSec = 600 }
    $proxy = Get-ProxyFor $Url
    if ($proxy -ne '') {
        $request['Proxy'] = $proxy
    }
    foreach ($attempt in 1..4) {
        try {
            Invoke-WebRequest @request
            return
        }
        catch {
            if ($attempt -eq 4) {
                throw "$Url cannot be fetched: $($_.Exception.Message)"
            }
            Start-Sleep -Seconds ([Math]::Pow(3, $attempt))
        }
    }
}

function Resolve-GivenPath {
    # As the user means it: from the folder where PowerShell is, which .NET does not know.
    param([string]$Path)
    if ($Path -eq '') {
        return ''
    }
    return $ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($Path)
}

function Get-FileName {
    # The name under which the bundle carries a file.
    param($File)
    if (@($File.members).Count -gt 0) {
        return '{0}-{1}' -f $File.name, ([System.Uri]$File.url).Segments[-1]
    }
    return $File.name + '.exe'
}

function Get-CarriedPath {
    param($File)
    return [System.IO.Path]::Combine($Node.Root, 'files', (Get-FileName $File))
}

function Get-DownloadPath {
    param($File)
    return [System.IO.Path]::Combine($Node.Paths.state, 'downloads', (Get-FileName $File))
}

function Test-Fetched {
    # Whether a file is on this machine already, with the digest of node.json.
    param($File)
    foreach ($path in @((Get-CarriedPath $File), (Get-DownloadPath $File))) {
        if ([System.IO.File]::Exists($path)) {
            return ((Get-Sha256 $path) -eq $File.sha256)
        }
    }
    return $false
}

function Get-Verified {
    # The path of a file that has the digest of node.json: out of the bundle, or fetched.
    param($File)
    $carried = Get-CarriedPath $File
    if ([System.IO.File]::Exists($carried)) {
        Assert-Digest -Path $carried -Wanted $File.sha256 -From (Get-FileName $File)
        return $carried
    }
    $path = Get-DownloadPath $File
    [void][System.IO.Directory]::CreateDirectory([System.IO.Path]::GetDirectoryName($path))
    if ([System.IO.File]::Exists($path) -and (Get-Sha256 $path) -eq $File.sha256) {
        return $path
    }
    Save-Download -Url $File.url -Path ($path + '.part')
    try {
        Assert-Digest -Path ($path + '.part') -Wanted $File.sha256 -From $File.url
        Move-IntoPlace -Source ($path + '.part') -Target $path
    }
    finally {
        [System.IO.File]::Delete($path + '.part')
    }
    return $path
}

function Assert-Digest {
    param([string]$Path, [string]$Wanted, [string]$From)
    $found = Get-Sha256 $Path
    if ($found -ne $Wanted) {
        $problem = "$From has the SHA-256 $found, node.json says $Wanted; it is not used"
        if ($Node.Early) {
            Stop-WrongInput $problem
        }
        throw $problem
    }
}

function Read-Fully {
    # Fill the first bytes of a buffer from a stream; whether there were that many.
    param([System.IO.Stream]$Stream, [byte[]]$Buffer, [int]$Count)
    $have = 0
    while ($have -lt $Count) {
        $got = $Stream.Read($Buffer, $have, $Count - $have)
        if ($got -eq 0) {
            return $false
        }
        $have += $got
    }
    return $true
}

function Get-HeaderText {
    param([byte[]]$Header, [int]$Offset, [int]$Length)
    $text = [System.Text.Encoding]::ASCII.GetString($Header, $Offset, $Length)
    $end = $text.IndexOf([char]0)
    if ($end -ge 0) {
        $text = $text.Substring(0, $end)
    }
    return $text.Trim()
}

function Expand-Members {
    # Take named files out of a .tar.gz, each to its own path, and nothing else, whatever else is in there.
    param([string]$Archive, [hashtable]$Wanted)
    $found = @{}
    $file = [System.IO.File]::OpenRead($Archive)
    try {
        $stream = New-Object System.IO.Compression.GZipStream $file, ([System.IO.Compression.CompressionMode]::Decompress)
        $header = New-Object byte[] 512
        $buffer = New-Object byte[] 1048576
        while ((Read-Fully -Stream $stream -Buffer $header -Count 512) -and $header[0] -ne 0) {
            $name = Get-HeaderText -Header $header -Offset 0 -Length 100
            $prefix = ''
            if ((Get-HeaderText -Header $header -Offset 257 -Length 5) -eq 'ustar') {
                $prefix = Get-HeaderText -Header $header -Offset 345 -Length 155
            }
            if ($prefix -ne '') {
                $name = $prefix + '/' + $name
            }
            $name = [regex]::Replace($name, '^(\./)+', '')
            $size = [Convert]::ToInt64((Get-HeaderText -Header $header -Offset 124 -Length 12), 8)
            $regular = $header[156] -eq 48 -or $header[156] -eq 0
            $output = $null
            if ($regular -and $Wanted.ContainsKey($name)) {
                $output = [System.IO.File]::Create($Wanted[$name])
                $found[$name] = $true
            }
            try {
                $left = $size
                while ($left -gt 0) {
                    $count = [int][Math]::Min($left, $buffer.Length)
                    if (-not (Read-Fully -Stream $stream -Buffer $buffer -Count $count)) {
                        throw "$Archive ends in the middle of $name"
                    }
                    if ($null -ne $output) {
                        $output.Write($buffer, 0, $count)
                    }
                    $left -= $count
                }
            }
            finally {
                if ($null -ne $output) {
                    $output.Dispose()
                }
            }
            $rest = [int](512 - ($size % 512)) % 512
            if ($rest -gt 0) {
                [void](Read-Fully -Stream $stream -Buffer $header -Count $rest)
            }
        }
    }
    finally {
        $file.Dispose()
    }
    foreach ($name in $Wanted.Keys) {
        if (-not $found.ContainsKey($name)) {
            throw "$Archive holds no $name"
        }
    }
}

function Get-Targets {
    # Where the parts of a file go.
    param($File)
    if (@($File.members).Count -gt 0) {
        return @($File.members | ForEach-Object { $_.target })
    }
    return @($File.target)
}

function Test-FileInstalled {
    # Programs by their digest; what comes out of an archive by the digest that was seen when it was taken out.
    param($File)
    foreach ($target in @(Get-Targets $File)) {
        if (-not [System.IO.File]::Exists($target)) {
            return $false
        }
        $wanted = $File.sha256 + ' ' + $File.sha256
        if (@($File.members).Count -gt 0) {
            $wanted = $File.sha256 + ' ' + (Get-Sha256 $target)
        }
        elseif ((Get-Sha256 $target) -ne $File.sha256) {
            return $false
        }
        if ((Get-RecordEntry "installed:$target") -ne $wanted) {
            return $false
        }
    }
    return $true
}

function Install-VerifiedFile {
    # Put a file of node.json in its place; what others had there is kept for reset.
    param($File)
    $source = Get-Verified $File
    if (@($File.members).Count -eq 0) {
        Copy-IntoPlace -Source $source -Target $File.target -Archive $File.sha256
        return
    }
    $folder = [System.IO.Path]::Combine($Node.Paths.state, 'unpacked')
    [void][System.IO.Directory]::CreateDirectory($folder)
    try {
        $wanted = @{}
        foreach ($member in $File.members) {
            $wanted[$member.path] = [System.IO.Path]::Combine($folder, [System.IO.Path]::GetFileName($member.target))
        }
        Expand-Members -Archive $source -Wanted $wanted
        foreach ($member in $File.members) {
            Copy-IntoPlace -Source $wanted[$member.path] -Target $member.target -Archive $File.sha256
        }
    }
    finally {
        [System.IO.Directory]::Delete($folder, $true)
    }
}

function Copy-IntoPlace {
    # A program that runs cannot be overwritten, but it can be renamed; its old file goes at the next chance.
    param([string]$Source, [string]$Target, [string]$Archive)
    Backup-Foreign -Path $Target
    [System.IO.File]::Copy($Source, $Target + '.new', $true)
    $digest = Get-Sha256 ($Target + '.new')
    Assert-Digest -Path ($Target + '.new') -Wanted (Get-Sha256 $Source) -From $Target
    if ([System.IO.File]::Exists($Target)) {
        Remove-Quietly -Path ($Target + '.old')
        $aside = $Target + '.old'
        if ([System.IO.File]::Exists($aside)) {
            $aside = $Target + '.' + [Guid]::NewGuid().ToString('N') + '.old'
        }
        [System.IO.File]::Move($Target, $aside)
    }
    [System.IO.File]::Move($Target + '.new', $Target)
    Remove-Quietly -Path ($Target + '.old')
    Set-RecordEntry -Key "installed:$Target" -Value ($Archive + ' ' + $digest)
}

function Remove-Quietly {
    # A file that is in use stays.
    param([string]$Path)
    try {
        [System.IO.File]::Delete($Path)
    }
    catch {
        Write-Line "        $Path is in use and stays for now"
    }
}

function Backup-Foreign {
    # Remember whether a file was there before us, and keep it if so.
    param([string]$Path)
    if ((Get-RecordEntry "file:$Path") -ne '') {
        return
    }
    if (-not [System.IO.File]::Exists($Path)) {
        Add-RecordEntry -Key "file:$Path" -Value 'absent'
        return
    }
    $folder = [System.IO.Path]::Combine($Node.Paths.state, 'before')
    [void][System.IO.Directory]::CreateDirectory($folder)
    $copy = [System.IO.Path]::Combine($folder, [Guid]::NewGuid().ToString('N'))
    [System.IO.File]::Copy($Path, $copy)
    Add-RecordEntry -Key "file:$Path" -Value $copy
}

function Restore-Foreign {
    # Our file goes; what others had there comes back.
    param([string]$Path, [string]$Before)
    Remove-Path $Path
    Remove-Path ($Path + '.old')
    if ($Before -ne 'absent') {
        [System.IO.File]::Copy($Before, $Path)
    }
}

function Open-MachineEnvironment {
    param([bool]$Write)
    $key = 'SYSTEM\CurrentControlSet\Control\Session Manager\Environment'
    return [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($key, $Write)
}

function Get-MachinePath {
    # The folders as they are stored, empty ones too, variables not expanded: expanding them would freeze them.
    $key = Open-MachineEnvironment -Write $false
    try {
        $text = [string]$key.GetValue('Path', '', [Microsoft.Win32.RegistryValueOptions]::DoNotExpandEnvironmentNames)
    }
    finally {
        $key.Dispose()
    }
    return @($text.Split(';'))
}

function Set-MachinePath {
    param([AllowEmptyString()][string[]]$Folders)
    $key = Open-MachineEnvironment -Write $true
    try {
        $kind = [Microsoft.Win32.RegistryValueKind]::ExpandString
        if ($null -ne $key.GetValue('Path')) {
            $kind = $key.GetValueKind('Path')
        }
        $key.SetValue('Path', ($Folders -join ';'), $kind)
    }
    finally {
        $key.Dispose()
    }
}

function Test-MachinePath {
    param([string]$Folder)
    return (@(Get-MachinePath | Where-Object { $_.TrimEnd('\') -eq $Folder.TrimEnd('\') }).Count -gt 0)
}

# Running other programs, with arguments that arrive as they were meant on every version of PowerShell.

function ConvertTo-Argument {
    # One argument as Windows programs split their command line.
    param([AllowEmptyString()][string]$Text)
    if ($Text -ne '' -and $Text -notmatch '[\s"]') {
        return $Text
    }
    $escaped = [regex]::Replace($Text, '(\\*)"', '$1$1\"')
    $escaped = [regex]::Replace($escaped, '(\\+)$', '$1$1')
    return '"' + $escaped + '"'
}

function ConvertTo-CommandLine {
    param([string[]]$Arguments)
    return (@($Arguments | ForEach-Object { ConvertTo-Argument $_ }) -join ' ')
}

function Invoke-Program {
    # Run a program to its end: exit code and what it said.
    param([string]$Path, [string[]]$Arguments = @(), [int]$Seconds = 300)
    $start = New-Object System.Diagnostics.ProcessStartInfo
    $start.FileName = $Path
    $start.Arguments = ConvertTo-CommandLine $Arguments
    $start.WorkingDirectory = $Node.Paths.binaries
    if (-not [System.IO.Directory]::Exists($start.WorkingDirectory)) {
        $start.WorkingDirectory = [Environment]::SystemDirectory
    }
    $start.UseShellExecute = $false
    $start.CreateNoWindow = $true
    $start.RedirectStandardOutput = $true
    $start.RedirectStandardError = $true
    $process = [System.Diagnostics.Process]::Start($start)
    $output = $process.StandardOutput.ReadToEndAsync()
    $errors = $process.StandardError.ReadToEndAsync()
    if (-not $process.WaitForExit($Seconds * 1000)) {
        $process.Kill()
        throw ('{0} did not end within {1} seconds' -f [System.IO.Path]::GetFileName($Path), $Seconds)
    }
    $process.WaitForExit()
    return [pscustomobject]@{
        ExitCode = $process.ExitCode
        Output   = ($output.Result + $errors.Result).Trim()
    }
}

function Invoke-Checked {
    # The same; anything but 0 is an error with the program's own last words.
    param([string]$Path, [string[]]$Arguments = @(), [int]$Seconds = 300)
    $result = Invoke-Program -Path $Path -Arguments $Arguments -Seconds $Seconds
    if ($result.ExitCode -ne 0) {
        $words = $result.Output
        if ($words.Length -gt 2000) {
            $words = $words.Substring($words.Length - 2000)
        }
        throw ('{0} {1} ended with {2}: {3}' -f [System.IO.Path]::GetFileName($Path), $Arguments[0], $result.ExitCode, $words)
    }
    return $result.Output
}

function Get-SystemProgram {
    param([string]$Name)
    return [System.IO.Path]::Combine([Environment]::SystemDirectory, $Name)
}

function ConvertTo-Release {
    # The numbers of a release, to compare by: 'v1.36.3-rc.1' is 1.36.3.
    param([string]$Text)
    $found = [regex]::Match($Text, '(\d+)\.(\d+)\.(\d+)')
    if (-not $found.Success) {
        throw "there is no version in '$Text'"
    }
    return New-Object System.Version ([int]$found.Groups[1].Value), ([int]$found.Groups[2].Value), ([int]$found.Groups[3].Value)
}

# What happened, with the time, on the screen and in a file; never a secret.

function Hide-Secret {
    # The text without tokens: those that were given, and whatever else looks like one.
    param([string]$Text)
    foreach ($secret in $Node.Secrets) {
        $Text = $Text.Replace($secret, '[token removed]')
    }
    return [regex]::Replace($Text, '\b[a-z0-9]{6}\.[a-z0-9]{16}\b', '[token removed]')
}

function Add-Secret {
    param([string]$Text)
    if ($Text -ne '' -and -not $Node.Secrets.Contains($Text)) {
        [void]$Node.Secrets.Add($Text)
    }
}

function Start-Log {
    # With -WhatIf nothing is written: the log would be a change of the machine.
    if ($Node.WhatIf -or -not (Test-Elevated)) {
        return
    }
    $folder = [System.IO.Path]::Combine($Node.Paths.state, 'logs')
    if (-not [System.IO.Directory]::Exists($folder)) {
        [void][System.IO.Directory]::CreateDirectory($Node.Paths.state)
        Set-Access -Path $Node.Paths.state -Kind 'secret'
        [void][System.IO.Directory]::CreateDirectory($folder)
    }
    $Node.LogFile = [System.IO.Path]::Combine($folder, 'node.log')
    Limit-Log -Path $Node.LogFile
    Write-Line ('{0} Kubernetes {1}' -f $Node.Command, $Node.Parameters.kubernetes)
}

function Limit-Log {
    # One older log is kept.
    param([string]$Path)
    if (-not [System.IO.File]::Exists($Path)) {
        return
    }
    if ((New-Object System.IO.FileInfo $Path).Length -gt 5MB) {
        $older = $Path + '.1'
        if ([System.IO.File]::Exists($older)) {
            [System.IO.File]::Delete($older)
        }
        [System.IO.File]::Move($Path, $older)
    }
}

function Write-Line {
    param([string]$Text)
    $clean = Hide-Secret $Text
    Write-Host $clean
    if ($Node.LogFile -ne '') {
        $stamp = [DateTime]::UtcNow.ToString('yyyy-MM-ddTHH:mm:ssZ', [Globalization.CultureInfo]::InvariantCulture)
        [System.IO.File]::AppendAllText($Node.LogFile, ('{0} {1}{2}' -f $stamp, $clean, [Environment]::NewLine))
    }
}

function Write-Failure {
    # Say what is wrong; the exit code that goes with it.
    param($Problem)
    $message = $Problem.Exception.Message
    $code = 1
    if ($Problem.Exception.Data.Contains('WrongInput')) {
        $code = 2
    }
    Write-Line "error: $message"
    if ($code -eq 1) {
        $place = $Problem.InvocationInfo
        Write-Line ('       at {0}, line {1}' -f [System.IO.Path]::GetFileName([string]$place.ScriptName), $place.ScriptLineNumber)
        if ($Node.LogFile -ne '') {
            Write-Line "       log: $($Node.LogFile)"
        }
    }
    return $code
}

function Stop-WrongInput {
    # Ends with exit code 2: nothing was changed.
    param([string]$Message)
    $problem = New-Object System.InvalidOperationException $Message
    $problem.Data['WrongInput'] = $true
    throw $problem
}

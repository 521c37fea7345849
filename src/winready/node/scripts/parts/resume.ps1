# Going on after a reboot: a copy of the bundle, what was given on the command line, and a task that is removed again.

function Get-ResumePath {
    return [System.IO.Path]::Combine($Node.Paths.state, 'resume.json')
}

function Get-KeptBundle {
    return [System.IO.Path]::Combine($Node.Paths.state, 'bundle')
}

function Test-KeptBundle {
    # Whether the copy is whole and the same as the bundle that runs.
    $kept = Get-KeptBundle
    if ($kept -eq $Node.Root) {
        return $true
    }
    $list = [System.IO.Path]::Combine($kept, 'SHA256SUMS')
    if (-not [System.IO.File]::Exists($list)) {
        return $false
    }
    $mine = Get-Sha256 ([System.IO.Path]::Combine($Node.Root, 'SHA256SUMS'))
    return ((Get-BundleProblem -Root $kept -Digest $mine) -eq '')
}

function Copy-Bundle {
    # Only what the list names; the folder above is closed to others already.
    $kept = Get-KeptBundle
    if ([System.IO.Directory]::Exists($kept)) {
        [System.IO.Directory]::Delete($kept, $true)
    }
    $names = @('SHA256SUMS')
    foreach ($line in [System.IO.File]::ReadAllLines([System.IO.Path]::Combine($Node.Root, 'SHA256SUMS'))) {
        $names += $line.Substring(66)
    }
    foreach ($name in $names) {
        $target = [System.IO.Path]::Combine($kept, $name.Replace('/', '\'))
        [void][System.IO.Directory]::CreateDirectory([System.IO.Path]::GetDirectoryName($target))
        [System.IO.File]::Copy([System.IO.Path]::Combine($Node.Root, $name.Replace('/', '\')), $target)
    }
}

function Save-Resume {
    # The token stays in a file that only administrators and the system can read, and only until it was used.
    param([string]$Token, [string[]]$CaHash)
    $kept = [ordered]@{ token = $Token; ca_hash = @($CaHash); node = $Node.Name }
    Write-Secret -Path (Get-ResumePath) -Text (ConvertTo-Json -InputObject $kept)
    $entry = [System.IO.Path]::Combine((Get-KeptBundle), 'node.ps1')
    Register-ResumeTask -Arguments (ConvertTo-CommandLine @(
            '-NoProfile', '-NonInteractive', '-ExecutionPolicy', 'Bypass', '-File', $entry, $Node.Command, '-Resume'
        ))
    if (-not (Test-Task 'winready-node')) {
        throw 'the task that goes on after the reboot could not be made'
    }
}

function Read-Resume {
    # Nothing when there is nothing to go on with.
    if (-not [System.IO.File]::Exists((Get-ResumePath))) {
        return $null
    }
    return (ConvertFrom-Json -InputObject ([System.IO.File]::ReadAllText((Get-ResumePath))))
}

function Remove-Resume {
    # As soon as it was read: what fails after a reboot must not be tried again at every start.
    if ([System.IO.File]::Exists((Get-ResumePath))) {
        [System.IO.File]::Delete((Get-ResumePath))
    }
    if (Test-Task 'winready-node') {
        Unregister-Task 'winready-node'
        Write-Line 'done    task for going on after a reboot removed'
    }
}

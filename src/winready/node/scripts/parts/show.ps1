# What no stand-in for Windows can show, looked at on a real machine, with a report to send in.

function New-Claim {
    # Shown is 'yes', 'no', or 'unknown' where this machine cannot tell.
    param([string]$Claim, [string]$Shown, [string]$Words)
    return [pscustomobject][ordered]@{ claim = $Claim; shown = $Shown; words = (Hide-Secret $Words) }
}

function Test-Claim {
    # The block gives 'yes', 'no' or 'unknown', and words; what it throws are words, too.
    param([string]$Claim, [scriptblock]$Block)
    try {
        $answer = @(& $Block)
        return (New-Claim -Claim $Claim -Shown ([string]$answer[0]) -Words ([string]$answer[1]))
    }
    catch {
        return (New-Claim -Claim $Claim -Shown 'no' -Words $_.Exception.Message)
    }
}

function Read-AsUser {
    # Whether a process of this user without the rights of administrators can read a file; 'unknown' if none can be started.
    param([string]$Path)
    $program = Get-SystemProgram 'runas.exe'
    if (-not [System.IO.File]::Exists($program)) {
        return 'unknown'
    }
    $told = [System.IO.Path]::Combine([System.IO.Path]::GetTempPath(), [Guid]::NewGuid().ToString('N') + '.txt')
    $line = 'cmd.exe /c type "{0}" >nul 2>&1 && (echo readable>"{1}") || (echo denied>"{1}")' -f $Path, $told
    try {
        [void](Invoke-Program -Path $program -Arguments @('/trustlevel:0x20000', $line) -Seconds 60)
        $end = [DateTime]::UtcNow.AddSeconds(20)
        while (-not [System.IO.File]::Exists($told) -and [DateTime]::UtcNow -lt $end) {
            Start-Sleep -Milliseconds 300
        }
        if (-not [System.IO.File]::Exists($told)) {
            return 'unknown'
        }
        return [System.IO.File]::ReadAllText($told).Trim()
    }
    finally {
        [System.IO.File]::Delete($told)
    }
}

function Get-LogLines {
    # The end of our own log; tokens never get into it.
    $path = [System.IO.Path]::Combine($Node.Paths.state, 'logs', 'node.log')
    if (-not [System.IO.File]::Exists($path)) {
        return @()
    }
    $lines = @([System.IO.File]::ReadAllLines($path))
    return @($lines | Select-Object -Last 300 | ForEach-Object { Hide-Secret $_ })
}

function Get-Claims {
    # Each is a line of the table in docs/windows-workers.md, under 'not shown'.
    param([object[]]$Results)
    return @(
        (Test-Claim -Claim 'the scripts run in Windows PowerShell 5.1' -Block {
            $version = $PSVersionTable.PSVersion
            if ($version.Major -eq 5) { 'yes' } else { 'no' }
            "this is PowerShell $version"
        }),
        (Test-Claim -Claim 'every step of a join holds' -Block {
            $wrong = @($Results | Where-Object { -not $_.ok } | ForEach-Object { $_.step })
            if ($wrong.Count -eq 0) { 'yes' } else { 'no' }
            $wrong -join '; '
        }),
        (Test-Claim -Claim 'a user who is no administrator cannot read our record' -Block {
            $answer = Read-AsUser -Path (Get-RecordPath)
            if ($answer -eq 'denied') { 'yes' } elseif ($answer -eq 'unknown') { 'unknown' } else { 'no' }
            "a process without the rights of administrators: $answer"
        }),
        (Test-Claim -Claim 'a join went on by itself after a reboot' -Block {
            $seen = @(Get-LogLines | Where-Object { $_ -match 'task for going on after a reboot removed' })
            if ($seen.Count -gt 0) { 'yes' } else { 'unknown' }
            'by the log of this machine'
        }),
        (Test-Claim -Claim 'the kubelet runs as a service under kube-log-runner, and writes its log' -Block {
            $log = [System.IO.Path]::Combine($Node.Paths.logs, 'kubelet.log')
            $processes = @(Get-Process -Name 'kube-log-runner', 'kubelet' -ErrorAction SilentlyContinue)
            $names = @($processes | ForEach-Object { $_.ProcessName } | Sort-Object)
            $good = (Get-ServiceStatus 'kubelet') -eq 'Running' -and $names.Count -eq 2 -and [System.IO.File]::Exists($log)
            if ($good) { 'yes' } else { 'no' }
            "service $(Get-ServiceStatus 'kubelet'), processes $($names -join ', ')"
        }),
        (Test-Claim -Claim 'the real containerd answers' -Block {
            $program = [System.IO.Path]::Combine($Node.Paths.binaries, 'crictl.exe')
            $arguments = @('--runtime-endpoint', 'npipe:////./pipe/containerd-containerd', 'version')
            $answer = Invoke-Program -Path $program -Arguments $arguments -Seconds 60
            if ($answer.ExitCode -eq 0) { 'yes' } else { 'no' }
            $answer.Output
        }),
        (Test-Claim -Claim 'the network of the cluster is known to the host networking service' -Block {
            $names = @(Get-HnsNames)
            $wanted = $Node.Parameters.network.name
            if (-not (Test-Hns)) { 'unknown' } elseif (@($names | Where-Object { $_.StartsWith("$wanted (") }).Count -gt 0) { 'yes' } else { 'no' }
            $names -join ', '
        })
    )
}

function Invoke-Show {
    # Looks, and changes nothing. The kubelet being Ready is for 'winready node verify' to show.
    param([string]$Report)
    Assert-Elevated
    Set-NodeName -Given ''
    if ($Report -eq '') {
        Stop-WrongInput 'say with -Report where the report is to go'
    }
    $path = Resolve-GivenPath $Report
    $results = @(Test-AllSteps)
    $claims = @(Get-Claims -Results $results)
    foreach ($claim in $claims) {
        Write-Line ('{0,-8}{1}: {2}' -f $claim.shown, $claim.claim, $claim.words)
    }
    Write-Report -Path $path -Results $results -Claims $claims -Log @(Get-LogLines)
    Write-Line "report: $path"
    Write-Line 'it names the node and the API server and holds no token; please send it in'
    if (@($claims | Where-Object { $_.shown -eq 'no' }).Count -gt 0) {
        return 1
    }
    return 0
}

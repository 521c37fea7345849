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

function Invoke-AsUser {
    # What becomes of a command in a process of this user without the rights of administrators: 'done', 'denied', or 'unknown' if
    # no such process can be started.
    param([string]$Command)
    $program = Get-SystemProgram 'runas.exe'
    if (-not [System.IO.File]::Exists($program)) {
        return 'unknown'
    }
    $told = [System.IO.Path]::Combine([System.IO.Path]::GetTempPath(), [Guid]::NewGuid().ToString('N') + '.txt')
    $line = 'cmd.exe /c {0} >nul 2>&1 && (echo done>"{1}") || (echo denied>"{1}")' -f $Command, $told
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

function Test-Recovery {
    # Ends the process of the kubelet as a crash would, and waits. Whoever started it again is told.
    $before = @(Get-Process -Name 'kubelet' -ErrorAction SilentlyContinue)
    if ($before.Count -ne 1) {
        return @('no', "there are $($before.Count) processes of the kubelet, nothing was ended")
    }
    $old = $before[0].Id
    $before[0].Kill()
    $start = [DateTime]::UtcNow
    while (([DateTime]::UtcNow - $start).TotalSeconds -lt 60) {
        Start-Sleep -Seconds 1
        $now = @(Get-Process -Name 'kubelet' -ErrorAction SilentlyContinue | Where-Object { $_.Id -ne $old })
        if ($now.Count -eq 1 -and (Get-ServiceStatus 'kubelet') -eq 'Running' -and (Test-KubeletHealthy)) {
            $seconds = [int]([DateTime]::UtcNow - $start).TotalSeconds
            return @('yes', "process $old was ended; $seconds seconds later the service ran and was healthy as process $($now[0].Id)")
        }
    }
    $status = Get-ServiceStatus 'kubelet'
    Stop-ServiceAndWait -Name 'kubelet'
    Start-ServiceAndWait -Name 'kubelet'
    $after = 'healthy'
    if (-not (Wait-KubeletHealthy -Seconds 60)) {
        $after = 'NOT healthy'
    }
    return @('no', "process $old was ended; after 60 seconds the service was $status; this script started it again, and it is $after")
}

function Test-Volumes {
    # A folder where the kubelet puts volumes, used by somebody who is no administrator, and removed again.
    $folder = [System.IO.Path]::Combine($Node.Paths.kubelet, 'pods', 'winready-show-' + [Guid]::NewGuid().ToString('N'))
    [void][System.IO.Directory]::CreateDirectory($folder)
    try {
        $file = [System.IO.Path]::Combine($folder, 'read.txt')
        [System.IO.File]::WriteAllText($file, 'x')
        $read = Invoke-AsUser -Command ('type "{0}"' -f $file)
        $written = Invoke-AsUser -Command ('copy /y "{0}" "{1}"' -f $file, [System.IO.Path]::Combine($folder, 'written.txt'))
        $beside = Invoke-AsUser -Command ('type "{0}"' -f (Get-KubeconfigPath))
    }
    finally {
        Remove-Path $folder
    }
    $words = "a process without the rights of administrators: reading a file there $read, writing one $written, reading the kubelet's kubeconfig $beside; removed again"
    if (@($read, $written, $beside) -contains 'unknown') {
        return @('unknown', $words)
    }
    if ($read -eq 'done' -and $written -eq 'done' -and $beside -eq 'denied') {
        return @('yes', $words)
    }
    return @('no', $words)
}

function Get-LoggedClaim {
    # What our own log tells: the last line of the good kind, or of the bad one if that came later.
    param([string]$Good, [string]$Bad)
    $found = @(Get-LogLines | Where-Object { $_ -match $Good -or $_ -match $Bad })
    if ($found.Count -eq 0) {
        return @('unknown', 'the log of this machine tells of none')
    }
    $shown = 'no'
    if ($found[-1] -match $Good) {
        $shown = 'yes'
    }
    return @($shown, "by the log: $($found[-1])")
}

function Get-TriedClaims {
    # What is seen only when it happens. Without -Try nothing is done, and nothing is claimed.
    param([bool]$Try)
    $words = 'not tried: show -Try does it'
    return @(
        (Test-Claim -Claim 'the service manager starts a kubelet again that was killed' -Block {
            if ($Try) { Test-Recovery } else { @('unknown', "$words (it ends the kubelet once)") }
        }),
        (Test-Claim -Claim 'somebody who is no administrator can use a volume, and nothing beside it' -Block {
            if ($Try) { Test-Volumes } else { @('unknown', "$words (it makes a file and removes it)") }
        }),
        (Test-Claim -Claim 'an upgrade was done on this machine' -Block {
            Get-LoggedClaim -Good ' has Kubernetes \S+; the old programs are in ' -Bad ' the upgrade to \S+ failed'
        }),
        (Test-Claim -Claim 'a reset was done on this machine, and what was to go was gone' -Block {
            Get-LoggedClaim -Good ' done +read back: ' -Bad ' not everything could be removed'
        })
    )
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
            $answer = Invoke-AsUser -Command ('type "{0}"' -f (Get-RecordPath))
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
    # Looks, and changes nothing unless it is told to try. The kubelet being Ready is for 'winready node verify' to show.
    param([string]$Report, [switch]$Try)
    Assert-Elevated
    Set-NodeName -Given ''
    if ($Report -eq '') {
        Stop-WrongInput 'say with -Report where the report is to go'
    }
    $path = Resolve-GivenPath $Report
    $results = @(Test-AllSteps)
    $claims = @(Get-Claims -Results $results) + @(Get-TriedClaims -Try ([bool]$Try -and -not $Node.WhatIf))
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

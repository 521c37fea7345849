# How far this machine is: every step is tested and none applied. The same as a report that can be sent in.

function Test-AllSteps {
    # Name, result and words of every step of a join, as the machine is now.
    $steps = @(Get-StateSteps) + @(Get-FeatureSteps) + @(Get-PrepareSteps) + @(Get-ContainerdSteps) + @(Get-KubeletSteps)
    $steps += @(Get-JoinSteps -Token '' -CaHash @())
    $results = @()
    foreach ($step in $steps) {
        $words = ''
        $good = $false
        try {
            $good = Test-Step -Block $step.Test -Step $step
        }
        catch {
            $words = Hide-Secret $_.Exception.Message
        }
        $results += [pscustomobject][ordered]@{ step = $step.Name; ok = $good; words = $words }
    }
    return $results
}

function Write-Report {
    # What this machine shows; names and builds, no secrets and no addresses but that of the API server.
    param([string]$Path, [object[]]$Results, [object[]]$Claims = @(), [string[]]$Log = @())
    $rights = @(Get-Folders | Where-Object { [System.IO.Directory]::Exists($_.Path) } | ForEach-Object {
            [ordered]@{ path = $_.Path; sddl = (Get-Acl -LiteralPath $_.Path).Sddl }
        })
    $document = [ordered]@{
        schema     = 'winready-node-report/1'
        bundle     = Get-Sha256 ([System.IO.Path]::Combine($Node.Root, 'SHA256SUMS'))
        kubernetes = $Node.Parameters.kubernetes
        windows    = Get-WindowsBuild
        powershell = [string]$PSVersionTable.PSVersion
        reboot     = Test-RebootPending
        steps      = @($Results)
        networks   = @(Get-HnsNames)
        rights     = $rights
        claims     = @($Claims)
        log        = @($Log)
    }
    Write-Text -Path $Path -Text (ConvertTo-Json -InputObject $document -Depth 5)
}

function Invoke-Status {
    param([string]$Report)
    Assert-Elevated
    Set-NodeName -Given ''
    Write-Line "node $($Node.Name), Windows build $(Get-WindowsBuild), Kubernetes $(Get-RecordEntry 'kubernetes')"
    if (Test-RebootPending) {
        Write-Line 'a reboot is pending'
    }
    if ([System.IO.File]::Exists((Get-ResumePath))) {
        Write-Line 'the join goes on after a reboot'
    }
    $results = @(Test-AllSteps)
    foreach ($result in $results) {
        $mark = 'wrong   '
        if ($result.ok) {
            $mark = 'ok      '
        }
        Write-Line ('{0}{1} {2}' -f $mark, $result.step, $result.words).TrimEnd()
    }
    if ($Report -ne '') {
        $Report = Resolve-GivenPath $Report
        Write-Report -Path $Report -Results $results
        Write-Line "report: $Report"
    }
    if (@($results | Where-Object { -not $_.ok }).Count -gt 0) {
        return 1
    }
    return 0
}

# A newer release on a machine that has joined: new programs beside the old ones, and a way back.

function Assert-Upgradable {
    param([string]$BundleDigest)
    if (-not (Test-Joined)) {
        Stop-WrongInput 'this machine has not joined a cluster by this script: run the join line'
    }
    if ($BundleDigest -eq '') {
        Stop-WrongInput "-BundleDigest is missing: use the line that 'winready node upgrade-command' prints"
    }
    if ((Get-RecordEntry 'joined') -ne (Get-Endpoint)) {
        Stop-WrongInput "this machine is a node of the cluster at $(Get-RecordEntry 'joined'), this bundle is for $(Get-Endpoint)"
    }
    $from = ConvertTo-Release (Get-RecordEntry 'kubernetes')
    $to = ConvertTo-Release $Node.Parameters.kubernetes
    if ($to -lt $from) {
        Stop-WrongInput "Kubernetes $from is installed; kubeadm does not go back to $to"
    }
    if ($to.Minor -gt $from.Minor + 1) {
        Stop-WrongInput "from Kubernetes $from to $to would skip a minor version, which kubeadm does not do; take 1.$($from.Minor + 1) first"
    }
}

function Assert-ServerFits {
    # By what the API server says now: the bundle may be older than the last upgrade or downgrade of the control plane.
    $to = ConvertTo-Release $Node.Parameters.kubernetes
    $server = Get-ServerRelease
    if ($to.Major -ne $server.Major -or $to.Minor -gt $server.Minor) {
        Stop-WrongInput "Kubernetes $to is newer than the API server ($server): upgrade the control plane first"
    }
    if ($to.Minor -lt $server.Minor - 3) {
        Stop-WrongInput "Kubernetes $to is more than three minor versions older than the API server ($server): make a bundle with a newer one"
    }
}

function Get-Swaps {
    # Every file that is not installed as node.json says.
    return @($Node.Parameters.files | Where-Object { -not (Test-FileInstalled $_) })
}

function Get-PreviousFolder {
    return [System.IO.Path]::Combine($Node.Paths.state, 'previous')
}

function Get-SavedPath {
    return [System.IO.Path]::Combine((Get-PreviousFolder), 'saved.json')
}

function Get-WayBackTargets {
    # Files that an upgrade may change: programs, and settings that we, kubeadm or the kubelet's next release write.
    $found = @()
    foreach ($file in @($Node.Parameters.files)) {
        $found += @(Get-Targets $file)
    }
    foreach ($name in @('config.yaml', 'instance-config.yaml', 'kubeadm-flags.env')) {
        $found += [System.IO.Path]::Combine($Node.Paths.kubelet, $name)
    }
    if ($Node.Parameters.containerd.version -ne '') {
        $found += Get-ContainerdConfig
        $found += @(Get-MirrorFiles | ForEach-Object { $_.Path }) + @(Get-RecordedMirrors)
    }
    return @($found | Sort-Object -Unique)
}

function Save-Previous {
    # Copies of what may be replaced, with what the record and the service manager say of it. An upgrade that was cut off has
    # saved the old ones already: what is in place now may be half of each.
    $folder = Get-PreviousFolder
    if ((Get-RecordEntry 'upgrading') -ne '' -and [System.IO.File]::Exists((Get-SavedPath))) {
        return
    }
    if ([System.IO.Directory]::Exists($folder)) {
        [System.IO.Directory]::Delete($folder, $true)
    }
    [void][System.IO.Directory]::CreateDirectory($folder)
    $files = @()
    foreach ($target in @(Get-WayBackTargets)) {
        $copy = ''
        if ([System.IO.File]::Exists($target)) {
            $copy = [System.IO.Path]::Combine($folder, [System.IO.Path]::GetFileName($target))
            if ([System.IO.File]::Exists($copy)) {
                $copy = [System.IO.Path]::Combine($folder, "$($files.Count)-" + [System.IO.Path]::GetFileName($target))
            }
            [System.IO.File]::Copy($target, $copy)
        }
        $files += [ordered]@{ target = $target; copy = $copy; installed = (Get-RecordEntry "installed:$target"); file = (Get-RecordEntry "file:$target") }
    }
    $services = @()
    foreach ($name in @('containerd', 'kubelet')) {
        if ((Get-RecordEntry "service:$name") -ne '') {
            $services += [ordered]@{ name = $name; memory = (Get-ServiceMemory $name) }
        }
    }
    $saved = [ordered]@{ configured = (Get-RecordEntry 'configured'); files = $files; services = $services }
    Write-Text -Path (Get-SavedPath) -Text (ConvertTo-Json -InputObject $saved -Depth 4)
}

function Restore-Entry {
    # A record entry as it was; empty: there was none.
    param([string]$Key, [string]$Value)
    if ($Value -eq '') {
        Remove-RecordEntry $Key
    }
    else {
        Set-RecordEntry -Key $Key -Value $Value
    }
}

function Restore-Previous {
    # The way back: the old programs, settings and services.
    $saved = ConvertFrom-Json -InputObject ([System.IO.File]::ReadAllText((Get-SavedPath)))
    Stop-ServiceAndWait -Name 'kubelet'
    if ($Node.Parameters.containerd.version -ne '') {
        Stop-ServiceAndWait -Name 'containerd'
    }
    foreach ($one in @($saved.files)) {
        $aside = $one.target + '.' + [Guid]::NewGuid().ToString('N') + '.old'
        if ([System.IO.File]::Exists($one.target)) {
            [System.IO.File]::Move($one.target, $aside)
        }
        if ($one.copy -ne '') {
            [System.IO.File]::Copy($one.copy, $one.target)
        }
        Remove-Quietly -Path $aside
        Restore-Entry -Key "installed:$($one.target)" -Value $one.installed
        Restore-Entry -Key "file:$($one.target)" -Value $one.file
    }
    Restore-Entry -Key 'configured' -Value $saved.configured
    foreach ($service in @($saved.services)) {
        Restore-Service -Name $service.name -Memory $service.memory
    }
    if ($Node.Parameters.containerd.version -ne '') {
        Start-ServiceAndWait -Name 'containerd'
    }
    Start-ServiceAndWait -Name 'kubelet'
    if (-not (Wait-KubeletHealthy -Seconds 120)) {
        throw "the old programs are in place again, and the kubelet is not healthy; its log is in $($Node.Paths.logs)"
    }
}

function Get-StopSteps {
    # A program that runs cannot be replaced: the kubelet stops for any, containerd only for its own.
    $swaps = @(Get-Swaps | Where-Object { $_.name -ne 'kubeadm' })
    $names = @()
    if ($swaps.Count -gt 0) {
        $names += 'kubelet'
    }
    if (@($swaps | Where-Object { $_.name -eq 'containerd' }).Count -gt 0) {
        $names += 'containerd'
    }
    $steps = @()
    foreach ($name in $names) {
        $steps += New-Step -Name "$name stopped" -Subject $name -Test {
            param($Name)
            @('', 'Stopped') -contains (Get-ServiceStatus $Name)
        } -Apply {
            param($Name)
            Stop-ServiceAndWait -Name $Name
        }
    }
    return $steps
}

function Get-UpgradeSteps {
    # kubeadm first, since it writes the new kubelet's configuration; then everything else while nothing runs.
    $steps = @(Get-FileSteps | Where-Object { $_.Subject.name -eq 'kubeadm' })
    $steps += New-Step -Name 'kubeadm upgrade node' -Test { (Get-ConfiguredRelease) -eq $Node.Parameters.kubernetes } -Apply {
        $kubeadm = [System.IO.Path]::Combine($Node.Paths.binaries, 'kubeadm.exe')
        Write-Line (Invoke-Checked -Path $kubeadm -Arguments @('upgrade', 'node') -Seconds 600)
        Set-RecordEntry -Key 'configured' -Value $Node.Parameters.kubernetes
    } -Verify { [System.IO.File]::Exists([System.IO.Path]::Combine($Node.Paths.kubelet, 'config.yaml')) }
    $others = @(Get-PrepareSteps | Where-Object { $_.Name -ne 'program kubeadm' })
    return $steps + @(Get-StopSteps) + $others + @(Get-ContainerdSteps) + @(Get-KubeletSteps) + @(Get-HealthSteps)
}

function Get-ConfiguredRelease {
    # The release whose kubeadm wrote the kubelet's configuration: that of the join, until an upgrade.
    $found = Get-RecordEntry 'configured'
    if ($found -eq '') {
        $found = Get-RecordEntry 'kubernetes'
    }
    return $found
}

function Invoke-Upgrade {
    param([string]$BundleDigest)
    Assert-Elevated
    Set-NodeName -Given ''
    Assert-Machine
    Assert-Upgradable -BundleDigest $BundleDigest
    $same = (Get-RecordEntry 'kubernetes') -eq $Node.Parameters.kubernetes -and (Get-RecordEntry 'upgrading') -eq ''
    $steps = @(Get-UpgradeSteps)
    $open = @($steps | Where-Object { -not (Test-Step -Block $_.Test -Step $_) } | ForEach-Object { $_.Name })
    if ($same -and $open.Count -eq 0 -and (Test-KeptBundle)) {
        Write-Line "node $($Node.Name) has Kubernetes $($Node.Parameters.kubernetes): nothing had to be changed"
        return 0
    }
    Assert-ServerFits
    if ($Node.WhatIf) {
        [void](Invoke-Steps -Steps (@(Get-FetchSteps) + $steps))
        Write-Line 'nothing was changed (-WhatIf)'
        return 0
    }
    # All files are fetched and verified before the first one is replaced.
    Invoke-Beginning -Steps @(Get-FetchSteps)
    # What is only started again needs no way back, and must not take the place of the one that is there.
    $swapped = -not $same -or @($open | Where-Object { $_ -notmatch ' runs and ' }).Count -gt 0
    if ($swapped) {
        Save-Previous
        Set-RecordEntry -Key 'upgrading' -Value $Node.Parameters.kubernetes
    }
    try {
        [void](Invoke-Steps -Steps $steps)
    }
    catch {
        if (-not $swapped) {
            throw
        }
        $problem = $_.Exception.Message
        Write-Line "undoing the upgrade: $problem"
        Restore-Previous
        Remove-RecordEntry 'upgrading'
        throw "the upgrade to $($Node.Parameters.kubernetes) failed and was undone: $problem"
    }
    Set-RecordEntry -Key 'kubernetes' -Value $Node.Parameters.kubernetes
    if (-not (Test-KeptBundle)) {
        Copy-Bundle
    }
    Remove-RecordEntry 'upgrading'
    Write-Line "node $($Node.Name) has Kubernetes $($Node.Parameters.kubernetes); the old programs are in $(Get-PreviousFolder)"
    Write-Line "next: winready node verify $($Node.Name)"
    return 0
}

# A newer release on a machine that has joined: new programs beside the old ones, and a way back.

function Assert-Upgradable {
    if (-not (Test-Joined)) {
        Stop-WrongInput 'this machine has not joined a cluster by this script: run the join line'
    }
    if ((Get-RecordEntry 'joined') -ne (Get-Endpoint)) {
        Stop-WrongInput "this machine is a node of the cluster at $(Get-RecordEntry 'joined'), this bundle is for $(Get-Endpoint)"
    }
    $from = ConvertTo-Release (Get-RecordEntry 'kubernetes')
    $to = ConvertTo-Release $Node.Parameters.kubernetes
    $server = ConvertTo-Release $Node.Parameters.server
    if ($to -lt $from) {
        Stop-WrongInput "Kubernetes $from is installed; kubeadm does not go back to $to"
    }
    if ($to.Minor -gt $from.Minor + 1) {
        Stop-WrongInput "from Kubernetes $from to $to would skip a minor version, which kubeadm does not do; take 1.$($from.Minor + 1) first"
    }
    if ($to.Minor -gt $server.Minor) {
        Stop-WrongInput "Kubernetes $to is newer than the API server ($server): upgrade the control plane first"
    }
}

function Get-Swaps {
    # Every target of a file that is not installed as node.json says.
    $found = @()
    foreach ($file in @($Node.Parameters.files)) {
        if (-not (Test-FileInstalled $file)) {
            $found += $file
        }
    }
    return $found
}

function Save-Previous {
    # Copies of what is about to be replaced, with what the record says of each.
    param([object[]]$Files)
    $folder = [System.IO.Path]::Combine($Node.Paths.state, 'previous')
    if ([System.IO.Directory]::Exists($folder)) {
        [System.IO.Directory]::Delete($folder, $true)
    }
    [void][System.IO.Directory]::CreateDirectory($folder)
    $saved = @()
    foreach ($file in $Files) {
        foreach ($target in @(Get-Targets $file)) {
            $copy = [System.IO.Path]::Combine($folder, [System.IO.Path]::GetFileName($target))
            if ([System.IO.File]::Exists($target)) {
                [System.IO.File]::Copy($target, $copy)
            }
            $saved += @{ Target = $target; Copy = $copy; Entry = (Get-RecordEntry "installed:$target") }
        }
    }
    foreach ($path in @((Get-ContainerdConfig), [System.IO.Path]::Combine($Node.Paths.kubelet, 'config.yaml'), [System.IO.Path]::Combine($Node.Paths.kubelet, 'kubeadm-flags.env'))) {
        if ([System.IO.File]::Exists($path)) {
            $copy = [System.IO.Path]::Combine($folder, [System.IO.Path]::GetFileName($path))
            [System.IO.File]::Copy($path, $copy)
            $saved += @{ Target = $path; Copy = $copy; Entry = '' }
        }
    }
    return $saved
}

function Restore-Previous {
    # The way back: the old programs, settings and command line.
    param([object[]]$Saved, [string]$CommandLine)
    Stop-ServiceAndWait -Name 'kubelet'
    if ($Node.Parameters.containerd.version -ne '') {
        Stop-ServiceAndWait -Name 'containerd'
    }
    foreach ($one in $Saved) {
        if (-not [System.IO.File]::Exists($one.Copy)) {
            continue
        }
        $aside = $one.Target + '.' + [Guid]::NewGuid().ToString('N') + '.old'
        if ([System.IO.File]::Exists($one.Target)) {
            [System.IO.File]::Move($one.Target, $aside)
        }
        [System.IO.File]::Copy($one.Copy, $one.Target)
        Remove-Quietly -Path $aside
        if ($one.Entry -ne '') {
            Set-RecordEntry -Key "installed:$($one.Target)" -Value $one.Entry
        }
    }
    $manager = Get-SystemProgram 'sc.exe'
    [void](Invoke-Checked -Path $manager -Arguments @('config', 'kubelet', 'binPath=', $CommandLine) -Seconds 60)
    if ($Node.Parameters.containerd.version -ne '') {
        Start-ServiceAndWait -Name 'containerd'
    }
    Start-ServiceAndWait -Name 'kubelet'
}

function Invoke-Swap {
    # kubeadm first, since it writes the new kubelet's configuration; then everything else while nothing runs.
    param([object[]]$Files)
    foreach ($file in @($Files | Where-Object { $_.name -eq 'kubeadm' })) {
        Install-VerifiedFile $file
    }
    $kubeadm = [System.IO.Path]::Combine($Node.Paths.binaries, 'kubeadm.exe')
    Write-Line (Invoke-Checked -Path $kubeadm -Arguments @('upgrade', 'node') -Seconds 600)
    Stop-ServiceAndWait -Name 'kubelet'
    $others = @($Files | Where-Object { $_.name -ne 'kubeadm' })
    if (@($others | Where-Object { $_.name -eq 'containerd' }).Count -gt 0) {
        Stop-ServiceAndWait -Name 'containerd'
    }
    foreach ($file in $others) {
        Install-VerifiedFile $file
    }
    foreach ($step in (@(Get-ContainerdSteps) + @(Get-KubeletSteps))) {
        Invoke-Step -Step $step
    }
    Start-ServiceAndWait -Name 'kubelet'
    if (-not (Wait-KubeletHealthy -Seconds 120)) {
        throw "the new kubelet is not healthy after two minutes; its log is in $($Node.Paths.logs)"
    }
}

function Invoke-Upgrade {
    Assert-Elevated
    Set-NodeName -Given ''
    Assert-Machine
    Assert-Upgradable
    $files = @(Get-Swaps)
    $same = (Get-RecordEntry 'kubernetes') -eq $Node.Parameters.kubernetes
    if ($same -and $files.Count -eq 0 -and (Test-ServiceSettings -Service (Get-KubeletService))) {
        Write-Line "node $($Node.Name) has Kubernetes $($Node.Parameters.kubernetes): nothing had to be changed"
        return 0
    }
    if ($Node.WhatIf) {
        foreach ($file in $files) {
            Write-Line "would   replace $($file.name)"
        }
        Write-Line 'would   kubeadm upgrade node, restart the kubelet'
        Write-Line 'nothing was changed (-WhatIf)'
        return 0
    }
    Start-Log
    # All files are fetched and verified before the first one is replaced.
    foreach ($file in $files) {
        [void](Get-Verified $file)
        Write-Line "ok      $($file.name) verified"
    }
    $commandLine = [string](Get-ServiceValue 'kubelet' 'ImagePath')
    $saved = @(Save-Previous -Files $files)
    try {
        Invoke-Swap -Files $files
    }
    catch {
        $problem = $_.Exception.Message
        Write-Line "undoing the upgrade: $problem"
        Restore-Previous -Saved $saved -CommandLine $commandLine
        throw "the upgrade to $($Node.Parameters.kubernetes) failed and was undone: $problem"
    }
    Set-RecordEntry -Key 'kubernetes' -Value $Node.Parameters.kubernetes
    if (-not (Test-KeptBundle)) {
        Copy-Bundle
    }
    Write-Line "node $($Node.Name) has Kubernetes $($Node.Parameters.kubernetes); the old programs are in $($Node.Paths.state)\previous"
    Write-Line "next: winready node verify $($Node.Name)"
    return 0
}

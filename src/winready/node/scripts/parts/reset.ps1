# Back to how the machine was found; what stays is said, with the reason.

function Add-Left {
    param([string]$What, [string]$Why)
    [void]$Node.Left.Add("$What ($Why)")
}

function Invoke-Tried {
    # A part of the reset that must not keep the others from happening.
    param([string]$What, [scriptblock]$Block, $Subject = $null)
    if ($Node.WhatIf) {
        Write-Line "would   $What"
        return
    }
    try {
        [void](& $Block $Subject)
        Write-Line "done    $What"
        $Node.Changed = $Node.Changed + 1
    }
    catch {
        $Node.Failed = $Node.Failed + 1
        Add-Left -What $What -Why $_.Exception.Message
    }
}

function Reset-Kubeadm {
    # kubeadm stops the kubelet, removes containers and its own files. An earlier reset may have brought somebody else's back.
    $kubeadm = [System.IO.Path]::Combine($Node.Paths.binaries, 'kubeadm.exe')
    $ours = (Get-RecordEntry "installed:$kubeadm").Split(' ')[-1]
    if (-not [System.IO.File]::Exists($kubeadm) -or (Get-Sha256 $kubeadm) -ne $ours) {
        return
    }
    Invoke-Tried -What 'kubeadm reset' -Subject $kubeadm -Block {
        param($Program)
        $arguments = @('reset', '--force', '--cri-socket', 'npipe:////./pipe/containerd-containerd')
        Write-Line (Invoke-Checked -Path $Program -Arguments $arguments -Seconds 600)
    }
}

function Reset-Images {
    # While containerd still runs: it takes the layers away in the way that Windows wants. Only for one that is ours alone.
    $crictl = [System.IO.Path]::Combine($Node.Paths.binaries, 'crictl.exe')
    $ours = (Get-RecordEntry 'service:containerd') -eq 'absent' -and (Get-RecordEntry "folder:$($Node.Paths.containerd_data)") -eq 'absent'
    if (-not $ours -or (Get-ServiceStatus 'containerd') -ne 'Running' -or -not [System.IO.File]::Exists($crictl)) {
        return
    }
    if ($Node.WhatIf) {
        Write-Line 'would   images'
        return
    }
    try {
        $arguments = @('--runtime-endpoint', 'npipe:////./pipe/containerd-containerd', 'rmi', '--all')
        [void](Invoke-Checked -Path $crictl -Arguments $arguments -Seconds 600)
        Write-Line 'done    images'
    }
    catch {
        # Deleting the folder is tried all the same, and what stays is said then.
        Write-Line "        containerd did not remove its images: $($_.Exception.Message)"
    }
}

function Reset-Services {
    foreach ($name in @(Get-RecordedNames -Prefix 'service:' -Value 'absent')) {
        Invoke-Tried -What "service $name" -Subject $name -Block {
            param($Name)
            Remove-ServiceAndWait $Name
        }
    }
    $entries = Read-Record
    foreach ($key in @($entries.Keys | Where-Object { $_.StartsWith('service:') -and $entries[$_] -ne 'absent' } | Sort-Object)) {
        $service = @{ Name = $key.Substring(8); Memory = $entries[$key] }
        Invoke-Tried -What "service $($service.Name) as it was" -Subject $service -Block {
            param($Service)
            Stop-ServiceAndWait -Name $Service.Name
            Restore-Service -Name $Service.Name -Memory $Service.Memory
        }
        Add-Left -What "service $($service.Name), stopped" -Why 'it was there before; start it when its own programs are back'
    }
}

function Reset-Networks {
    if (-not (Test-Hns)) {
        if ($Node.Parameters.network.cni -ne 'none') {
            Add-Left -What 'networks of the host networking service' -Why 'its PowerShell module is not on this machine; a reboot clears what is not persistent'
        }
        return
    }
    Invoke-Tried -What 'networks, endpoints and load balancers of the cluster' -Block {
        foreach ($problem in @(Remove-ClusterNetworks -Before @((Get-RecordEntry 'hns').Split(' ')))) {
            $Node.Failed = $Node.Failed + 1
            Add-Left -What 'host networking' -Why "$problem; a reboot may help"
        }
    }
}

function Get-NetworkState {
    # What the pod network and kube-proxy leave on the disk; a stale source address would break the next join.
    return @(Get-NetworkFolders | ForEach-Object { $_.Path }) + @(
        [System.IO.Path]::Combine($Node.Paths.binaries, 'kube-proxy'),
        [System.IO.Path]::Combine($Node.Paths.binaries, 'sourceVip.json')
    )
}

function Remove-Path {
    param([string]$Path)
    # Links are removed, never followed: behind one may be a share, or somebody else's folder.
    if (-not [System.IO.Directory]::Exists($Path) -and -not [System.IO.File]::Exists($Path)) {
        return
    }
    $attributes = [System.IO.File]::GetAttributes($Path)
    $folder = ($attributes -band [System.IO.FileAttributes]::Directory) -ne 0
    $link = ($attributes -band [System.IO.FileAttributes]::ReparsePoint) -ne 0
    if (-not $folder) {
        if (-not $link) {
            [System.IO.File]::SetAttributes($Path, [System.IO.FileAttributes]::Normal)
        }
        [System.IO.File]::Delete($Path)
        return
    }
    if (-not $link) {
        foreach ($entry in [System.IO.Directory]::GetFileSystemEntries($Path)) {
            Remove-Path -Path $entry
        }
    }
    [System.IO.Directory]::Delete($Path, $false)
}

function Reset-Settings {
    foreach ($name in @(Get-RecordedNames -Prefix 'firewall:' -Value 'absent')) {
        Invoke-Tried -What "firewall rule $name" -Subject $name -Block {
            param($Name)
            Remove-FirewallRule -Name $Name
        }
    }
    foreach ($name in @(Get-RecordedNames -Prefix 'defender:' -Value 'absent')) {
        Invoke-Tried -What "exception of the antivirus for $name" -Subject $name -Block {
            param($Name)
            Remove-DefenderExclusion $Name
        }
    }
    foreach ($name in @(Get-RecordedNames -Prefix 'task:' -Value 'absent' | Where-Object { Test-Task $_ })) {
        Invoke-Tried -What "scheduled task $name" -Subject $name -Block {
            param($Name)
            Unregister-Task $Name
        }
    }
    foreach ($name in @(Get-RecordedNames -Prefix 'path:' -Value 'absent')) {
        Invoke-Tried -What "search path without $name" -Subject $name -Block {
            param($Name)
            Set-MachinePath -Folders @(Get-MachinePath | Where-Object { $_.TrimEnd('\') -ne $Name.TrimEnd('\') })
        }
    }
}

function Reset-Files {
    $entries = Read-Record
    foreach ($key in @($entries.Keys | Where-Object { $_.StartsWith('file:') } | Sort-Object)) {
        $path = $key.Substring(5)
        Invoke-Tried -What "file $path" -Subject @{ Path = $path; Before = $entries[$key] } -Block {
            param($File)
            Restore-Foreign -Path $File.Path -Before $File.Before
        }
    }
    foreach ($path in @(Get-NetworkState)) {
        if ([System.IO.Directory]::Exists($path) -or [System.IO.File]::Exists($path)) {
            Invoke-Tried -What "network state $path" -Subject $path -Block {
                param($Path)
                Remove-Path $Path
            }
        }
    }
}

function Reset-Folders {
    # Folders that we made go with everything in them, the deepest first; those of others get their rights back.
    $entries = Read-Record
    foreach ($path in @(Get-RecordedNames -Prefix 'folder:' -Value 'absent' | Sort-Object -Property Length -Descending)) {
        if (-not [System.IO.Directory]::Exists($path)) {
            continue
        }
        Invoke-Tried -What "folder $path" -Subject $path -Block {
            param($Path)
            Remove-Path $Path
        }
    }
    foreach ($path in @(Get-RecordedNames -Prefix 'parent:' -Value 'absent' | Sort-Object -Property Length -Descending)) {
        if (-not [System.IO.Directory]::Exists($path) -or @([System.IO.Directory]::GetFileSystemEntries($path)).Count -gt 0) {
            continue
        }
        Invoke-Tried -What "empty folder $path" -Subject $path -Block {
            param($Path)
            [System.IO.Directory]::Delete($Path)
        }
    }
    foreach ($path in @(Get-RecordedNames -Prefix 'folder:' -Value 'present')) {
        if (-not [System.IO.Directory]::Exists($path) -or -not $entries.ContainsKey("access:$path")) {
            continue
        }
        Invoke-Tried -What "rights of $path as they were" -Subject @{ Path = $path; Rights = $entries["access:$path"] } -Block {
            param($Folder)
            $security = New-Object System.Security.AccessControl.DirectorySecurity
            $security.SetSecurityDescriptorSddlForm($Folder.Rights)
            Set-Acl -LiteralPath $Folder.Path -AclObject $security
        }
    }
}

function Reset-State {
    # The log stays: it tells what was done, and holds no secret. A record stays while something is left to remove.
    foreach ($name in @('bundle', 'downloads', 'previous', 'before')) {
        $path = [System.IO.Path]::Combine($Node.Paths.state, $name)
        if ([System.IO.Directory]::Exists($path)) {
            Invoke-Tried -What "our own $name" -Subject $path -Block {
                param($Path)
                Remove-Path $Path
            }
        }
    }
    Invoke-Tried -What 'record of what the machine was like' -Block { Remove-Path (Get-RecordPath) }
    Add-Left -What ([System.IO.Path]::Combine($Node.Paths.state, 'logs')) -Why 'the log of what was done; delete it when you like'
}

function Invoke-Reset {
    Assert-Elevated
    $Node['Left'] = New-Object System.Collections.ArrayList
    $Node['Failed'] = 0
    if (-not [System.IO.File]::Exists((Get-RecordPath))) {
        Write-Line "nothing to reset: there is no record of this script in $($Node.Paths.state)"
        return 0
    }
    Set-NodeName -Given ''
    Start-Log
    $joined = Get-RecordEntry 'joined'
    foreach ($name in @(Get-RecordedNames -Prefix 'feature:' -Value 'Disabled')) {
        Add-Left -What "Windows feature $name" -Why 'others may use it by now, and disabling it needs a reboot: Disable-WindowsOptionalFeature'
    }
    if (-not $Node.WhatIf) {
        Remove-Resume
    }
    Invoke-Tried -What 'kubelet stopped' -Block { Stop-ServiceAndWait -Name 'kubelet' }
    Reset-Kubeadm
    if (-not $Node.WhatIf) {
        Remove-RecordEntry 'joined'
    }
    Reset-Images
    Reset-Services
    Reset-Networks
    Reset-Settings
    Reset-Files
    Reset-Folders
    if (-not $Node.WhatIf) {
        Confirm-Gone
        Add-FoldersLeft
        Add-ImagesLeft
    }
    if ($Node.Failed -eq 0) {
        Reset-State
    }
    foreach ($left in $Node.Left) {
        Write-Line "left    $left"
    }
    if ($Node.WhatIf) {
        Write-Line 'nothing was changed (-WhatIf)'
        return 0
    }
    if ($joined -ne '') {
        Write-Line "next: winready node remove $($Node.Name)    (the cluster at $joined still knows this node)"
    }
    if ($Node.Failed -gt 0) {
        Write-Line 'not everything could be removed: run node.ps1 reset again, after a reboot if something is in use'
        return 1
    }
    return 0
}

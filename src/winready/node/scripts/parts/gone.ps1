# After a reset: what was to go is looked for once more, and what stays is said with the reason.

function Get-KeysOf {
    # Pairs of name and value whose key begins with a prefix, sorted.
    param([hashtable]$Entries, [string]$Prefix)
    $keys = @($Entries.Keys | Where-Object { $_.StartsWith($Prefix) } | Sort-Object)
    return @($keys | ForEach-Object { @{ Name = $_.Substring($Prefix.Length); Value = $Entries[$_] } })
}

function Get-ExplicitRights {
    # Who was given what on a path itself; what it inherits is the business of the folder above.
    param([System.Security.AccessControl.DirectorySecurity]$Security)
    $rules = @($Security.GetAccessRules($true, $false, [System.Security.Principal.SecurityIdentifier]) | ForEach-Object {
            '{0} {1} {2} {3} {4}' -f $_.IdentityReference.Value, [int]$_.FileSystemRights, $_.AccessControlType, $_.InheritanceFlags, $_.PropagationFlags
        } | Sort-Object)
    return (@([string]$Security.AreAccessRulesProtected) + $rules) -join '; '
}

function Get-RemainingSettings {
    param([hashtable]$Entries)
    $found = @()
    foreach ($service in @(Get-KeysOf -Entries $Entries -Prefix 'service:')) {
        if ($service.Value -eq 'absent') {
            if (Test-ServicePresent $service.Name) {
                $found += "service $($service.Name) is still there"
            }
        }
        elseif ((Get-ServiceSummary (Get-ServiceMemory $service.Name)) -ne (Get-ServiceSummary $service.Value)) {
            $found += "service $($service.Name) is not as it was"
        }
    }
    foreach ($rule in @(Get-KeysOf -Entries $Entries -Prefix 'firewall:')) {
        if (Test-FirewallName $rule.Name) {
            $found += "firewall rule $($rule.Name) is still there"
        }
    }
    foreach ($program in @(Get-KeysOf -Entries $Entries -Prefix 'defender:')) {
        if ((Test-Defender) -and @(Get-DefenderExclusions) -contains $program.Name) {
            $found += "the antivirus still has an exception for $($program.Name)"
        }
    }
    foreach ($folder in @(Get-KeysOf -Entries $Entries -Prefix 'path:')) {
        if (Test-MachinePath $folder.Name) {
            $found += "$($folder.Name) is still in the search path"
        }
    }
    foreach ($name in @('winready-node', 'winready-containerd-log')) {
        if (Test-Task $name) {
            $found += "scheduled task $name is still there"
        }
    }
    return $found
}

function Get-RemainingFiles {
    param([hashtable]$Entries)
    $found = @()
    foreach ($file in @(Get-KeysOf -Entries $Entries -Prefix 'file:')) {
        if ($file.Value -eq 'absent') {
            if ([System.IO.File]::Exists($file.Name)) {
                $found += "file $($file.Name) is still there"
            }
        }
        elseif (-not [System.IO.File]::Exists($file.Name) -or (Get-Sha256 $file.Name) -ne (Get-Sha256 $file.Value)) {
            $found += "file $($file.Name) is not what it was"
        }
    }
    foreach ($folder in @(Get-KeysOf -Entries $Entries -Prefix 'folder:')) {
        if ($folder.Value -eq 'absent') {
            if ([System.IO.Directory]::Exists($folder.Name)) {
                $found += "folder $($folder.Name) is still there"
            }
        }
        elseif ($Entries.ContainsKey("access:$($folder.Name)") -and [System.IO.Directory]::Exists($folder.Name)) {
            $was = New-Object System.Security.AccessControl.DirectorySecurity
            $was.SetSecurityDescriptorSddlForm($Entries["access:$($folder.Name)"])
            if ((Get-ExplicitRights (Get-Acl -LiteralPath $folder.Name)) -ne (Get-ExplicitRights $was)) {
                $found += "the rights of $($folder.Name) are not what they were"
            }
        }
    }
    foreach ($path in @(Get-NetworkState)) {
        if ([System.IO.Directory]::Exists($path) -or [System.IO.File]::Exists($path)) {
            $found += "$path is still there"
        }
    }
    return $found
}

function Confirm-Gone {
    # Doing something and being told that it worked is not enough: the machine is asked.
    $entries = Read-Record
    $remaining = @(Get-RemainingSettings -Entries $entries) + @(Get-RemainingFiles -Entries $entries)
    foreach ($problem in $remaining) {
        $Node.Failed = $Node.Failed + 1
        Add-Left -What $problem -Why 'seen when it was looked for after the reset'
    }
    if ($remaining.Count -eq 0) {
        Write-Line 'done    read back: services, rules, exceptions, search path, tasks, files, folders and rights are as they were found'
    }
}

function Add-FoldersLeft {
    # Parents that we made and others use by now, and folders that were there before us with something in them.
    foreach ($path in @(Get-RecordedNames -Prefix 'parent:' -Value 'absent')) {
        if ([System.IO.Directory]::Exists($path)) {
            Add-Left -What "folder $path" -Why "this script made it on the way to its own; now others have in it: $(Get-FolderWords $path)"
        }
    }
    foreach ($path in @(Get-RecordedNames -Prefix 'folder:' -Value 'present')) {
        if ([System.IO.Directory]::Exists($path) -and @([System.IO.Directory]::GetFileSystemEntries($path)).Count -gt 0) {
            Add-Left -What "folder $path" -Why "it was there before; what is in it stays: $(Get-FolderWords $path)"
        }
    }
}

function Get-FolderWords {
    # A few names out of a folder.
    param([string]$Path)
    $names = @([System.IO.Directory]::GetFileSystemEntries($Path) | ForEach-Object { [System.IO.Path]::GetFileName($_) } | Sort-Object)
    $words = @($names | Select-Object -First 3) -join ', '
    if ($names.Count -gt 3) {
        $words += " and $($names.Count - 3) more"
    }
    return $words
}

function Add-ImagesLeft {
    # Layers of images are made and guarded by Windows; only a running containerd can take all of them away.
    $data = $Node.Paths.containerd_data
    if ($Node.Parameters.containerd.version -eq '') {
        Add-Left -What 'images that this node has pulled' -Why "the runtime is the machine's own; 'crictl rmi --all' takes away all that it has"
        return
    }
    if (-not [System.IO.Directory]::Exists($data)) {
        return
    }
    if ((Get-RecordEntry "folder:$data") -eq 'present') {
        Add-Left -What "images and their layers below $data" -Why "the folder was there before; 'crictl rmi --all' takes all images away while a containerd runs on it"
        return
    }
    Add-Left -What "layers of images below $data" -Why ('Windows guards them, and containerd did not take them away: reboot and run reset again; what still stays goes ' +
        "when a containerd runs on this folder: 'crictl rmi --all', then 'ctr -n k8s.io snapshots rm NAME' for what 'ctr -n k8s.io snapshots ls' lists")
}

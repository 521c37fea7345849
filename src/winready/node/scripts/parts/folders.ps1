# Our folders: made and closed before anything is in them, with those on the way to them.

function Get-Folders {
    # Our folders and who may use them, parents first.
    $paths = $Node.Paths
    return @(
        @{ Path = $paths.binaries; Kind = 'programs' },
        @{ Path = $paths.kubernetes; Kind = 'secret' },
        @{ Path = [System.IO.Path]::Combine($paths.kubernetes, 'pki'); Kind = 'secret' },
        @{ Path = [System.IO.Path]::Combine($paths.kubernetes, 'manifests'); Kind = 'secret' },
        @{ Path = $paths.kubelet; Kind = 'secret' },
        @{ Path = [System.IO.Path]::Combine($paths.kubelet, 'pods'); Kind = 'volumes' },
        @{ Path = $paths.logs; Kind = 'secret' },
        @{ Path = 'C:\var\log\pods'; Kind = 'secret' },
        @{ Path = 'C:\var\log\containers'; Kind = 'secret' },
        @{ Path = $paths.cni_binaries; Kind = 'programs' },
        @{ Path = $paths.cni_configuration; Kind = 'secret' }
    ) + @(Get-NetworkFolders) + @(Get-RuntimeFolders)
}

function Get-NetworkFolders {
    # What the pod network keeps on the disk; its programs run as the system.
    if ($Node.Parameters.network.cni -ne 'flannel') {
        return @()
    }
    return @(@('C:\run\flannel', 'C:\var\lib\cni', 'C:\etc\kube-flannel') | ForEach-Object { @{ Path = $_; Kind = 'secret' } })
}

function Get-RuntimeFolders {
    if ($Node.Parameters.containerd.version -eq '') {
        return @()
    }
    $mirrors = @(Get-MirrorFiles | ForEach-Object { @{ Path = [System.IO.Path]::GetDirectoryName($_.Path); Kind = 'programs' } })
    return @(
        @{ Path = $Node.Paths.containerd; Kind = 'programs' },
        @{ Path = $Node.Paths.containerd_data; Kind = 'runtime' }
    ) + $mirrors
}

function Get-ParentsMade {
    # Folders above this one that we made, which are to be closed as long as they are there.
    param([string]$Path)
    $found = @()
    foreach ($parent in @(Get-RecordedNames -Prefix 'parent:' -Value 'absent')) {
        if ($Path.StartsWith($parent + '\') -and [System.IO.Directory]::Exists($parent)) {
            $found += $parent
        }
    }
    return $found
}

function Get-WantedAccess {
    # The runtime's data are closed as containerd itself would close them, but only in a folder that we make: layers of images
    # that are there already carry rights of their own, which would be worked out anew.
    param([hashtable]$Folder)
    if ($Folder.Kind -ne 'runtime') {
        return $Folder.Kind
    }
    if ((Get-RecordEntry "folder:$($Folder.Path)") -eq 'absent') {
        return 'secret'
    }
    return ''
}

function Test-Folder {
    param([hashtable]$Folder)
    if (-not [System.IO.Directory]::Exists($Folder.Path)) {
        return $false
    }
    foreach ($parent in @(Get-ParentsMade -Path $Folder.Path)) {
        if ((Get-AccessProblem -Path $parent -Kind 'parent') -ne '') {
            return $false
        }
    }
    $wanted = Get-WantedAccess -Folder $Folder
    return ($wanted -eq '' -or (Get-AccessProblem -Path $Folder.Path -Kind $wanted) -eq '')
}

function New-Folder {
    # The folder is ours to remove; those on the way to it only while nobody else uses them.
    param([hashtable]$Folder)
    $missing = @()
    $path = $Folder.Path
    while ($path -and -not [System.IO.Directory]::Exists($path)) {
        $missing += $path
        $path = [System.IO.Path]::GetDirectoryName($path)
    }
    [array]::Reverse($missing)
    foreach ($path in $missing) {
        $kind = 'parent'
        if ($path -eq $Folder.Path) {
            $kind = 'folder'
        }
        Add-RecordEntry -Key "${kind}:$path" -Value 'absent'
        [void][System.IO.Directory]::CreateDirectory($path)
        if ($kind -eq 'parent') {
            Set-Access -Path $path -Kind 'parent'
        }
    }
    foreach ($parent in @(Get-ParentsMade -Path $Folder.Path)) {
        if ((Get-AccessProblem -Path $parent -Kind 'parent') -ne '') {
            Set-Access -Path $parent -Kind 'parent'
        }
    }
    if ($missing.Count -eq 0 -and (Get-RecordEntry "folder:$($Folder.Path)") -eq '') {
        Add-RecordEntry -Key "folder:$($Folder.Path)" -Value 'present'
        Add-RecordEntry -Key "access:$($Folder.Path)" -Value (Get-Acl -LiteralPath $Folder.Path).Sddl
    }
    $wanted = Get-WantedAccess -Folder $Folder
    if ($wanted -ne '') {
        Set-Access -Path $Folder.Path -Kind $wanted
    }
}

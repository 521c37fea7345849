# From a bare machine to a node that has joined.

function Get-Features {
    $names = @('Containers')
    if ([bool]$Node.Parameters.hyperv) {
        $names += 'Microsoft-Hyper-V'
    }
    return $names
}

function Get-DefenderPrograms {
    $programs = @(
        [System.IO.Path]::Combine($Node.Paths.binaries, 'kubelet.exe'),
        [System.IO.Path]::Combine($Node.Paths.binaries, 'kube-proxy.exe')
    )
    if ($Node.Parameters.containerd.version -ne '') {
        $programs += [System.IO.Path]::Combine($Node.Paths.containerd, 'containerd.exe')
        $programs += [System.IO.Path]::Combine($Node.Paths.containerd, 'ctr.exe')
    }
    return $programs
}

function Get-StateSteps {
    return @(
        (New-Step -Name 'folder for our own state, closed to others' -Test {
            [System.IO.Directory]::Exists($Node.Paths.state) -and (Get-AccessProblem -Path $Node.Paths.state -Kind 'secret') -eq ''
        } -Apply {
            [void][System.IO.Directory]::CreateDirectory($Node.Paths.state)
            Set-Access -Path $Node.Paths.state -Kind 'secret'
        }),
        (New-Step -Name 'record of what the machine was like' -Test { (Get-RecordEntry 'node') -eq $Node.Name } -Apply {
            Add-RecordEntry -Key 'hns' -Value (@(Get-HnsIdentifiers) -join ' ')
            Set-RecordEntry -Key 'node' -Value $Node.Name
        }),
        (New-Step -Name 'copy of the bundle' -Test { Test-KeptBundle } -Apply { Copy-Bundle })
    )
}

function Get-FeatureSteps {
    $steps = @()
    foreach ($name in @(Get-Features)) {
        $steps += New-Step -Name "Windows feature $name" -Subject $name -Test {
            param($Name)
            (Get-FeatureState $Name) -eq 'Enabled'
        } -Apply {
            param($Name)
            Add-RecordEntry -Key "feature:$Name" -Value (Get-FeatureState $Name)
            if (Enable-Feature $Name) {
                $Node.Reboot = $true
            }
        } -Verify {
            # One reboot is enough for all of them, so the others are asked for first.
            param($Name)
            $Node.Reboot -or (Get-FeatureState $Name) -eq 'Enabled'
        }
    }
    return $steps
}

function Get-FetchSteps {
    # Before anything but our own folder is touched: a file with another digest changes nothing.
    $steps = @()
    foreach ($file in @($Node.Parameters.files)) {
        $steps += New-Step -Name "$($file.name) at hand, with the digest of node.json" -Subject $file -Test {
            param($File)
            (Test-FileInstalled $File) -or (Test-Fetched $File)
        } -Apply {
            param($File)
            [void](Get-Verified $File)
        }
    }
    return $steps
}

function Get-PrepareSteps {
    $steps = @()
    foreach ($folder in @(Get-Folders)) {
        $steps += New-Step -Name "folder $($folder.Path)" -Subject $folder -Test {
            param($Folder)
            Test-Folder $Folder
        } -Apply {
            param($Folder)
            New-Folder $Folder
        }
    }
    $steps += @(Get-FileSteps)
    $steps += New-Step -Name 'programs found by name' -Test { Test-MachinePath $Node.Paths.binaries } -Apply {
        Add-RecordEntry -Key "path:$($Node.Paths.binaries)" -Value 'absent'
        Set-MachinePath -Folders (@(Get-MachinePath) + $Node.Paths.binaries)
    }
    foreach ($rule in @(Get-FirewallRules)) {
        $steps += New-Step -Name "firewall rule $($rule.Name)" -Subject $rule -Test {
            param($Rule)
            Test-FirewallRule $Rule
        } -Apply {
            param($Rule)
            Add-RecordEntry -Key "firewall:$($Rule.Name)" -Value 'absent'
            Set-FirewallRule $Rule
        }
    }
    return $steps + @(Get-DefenderSteps)
}

function Get-FileSteps {
    $steps = @()
    foreach ($file in @($Node.Parameters.files)) {
        $steps += New-Step -Name "program $($file.name)" -Subject $file -Test {
            param($File)
            Test-FileInstalled $File
        } -Apply {
            param($File)
            Install-VerifiedFile $File
        }
    }
    return $steps
}

function Get-DefenderSteps {
    if (-not [bool]$Node.Parameters.defender_exclusions -or -not (Test-Defender)) {
        return @()
    }
    $steps = @()
    foreach ($program in @(Get-DefenderPrograms)) {
        $steps += New-Step -Name "antivirus leaves $program alone" -Subject $program -Test {
            param($Program)
            @(Get-DefenderExclusions) -contains $Program
        } -Apply {
            param($Program)
            Add-RecordEntry -Key "defender:$Program" -Value 'absent'
            Add-DefenderExclusion $Program
        }
    }
    return $steps
}

function Get-JoinConfiguration {
    # JSON is YAML; whatever is in these values cannot become anything but a value.
    param([string]$Token, [string[]]$CaHash)
    $document = [ordered]@{
        apiVersion       = $Node.Parameters.join_api
        kind             = 'JoinConfiguration'
        discovery        = [ordered]@{
            bootstrapToken = [ordered]@{
                token             = $Token
                apiServerEndpoint = Get-Endpoint
                caCertHashes      = @($CaHash)
            }
        }
        nodeRegistration = [ordered]@{
            name      = $Node.Name
            criSocket = 'npipe:////./pipe/containerd-containerd'
            taints    = @()
        }
    }
    return (ConvertTo-Json -InputObject $document -Depth 6)
}

function Get-LeftBehind {
    # What a join that was refused leaves, and what keeps the next one from starting.
    return @(
        [System.IO.Path]::Combine($Node.Paths.kubernetes, 'bootstrap-kubelet.conf'),
        [System.IO.Path]::Combine($Node.Paths.kubernetes, 'pki', 'ca.crt')
    )
}

function Invoke-KubeadmJoin {
    param([string]$Token, [string[]]$CaHash)
    foreach ($path in @(Get-LeftBehind)) {
        Backup-Foreign -Path $path
        [System.IO.File]::Delete($path)
    }
    $path = [System.IO.Path]::Combine($Node.Paths.state, 'join.yaml')
    try {
        Write-Secret -Path $path -Text (Get-JoinConfiguration -Token $Token -CaHash $CaHash)
        $kubeadm = [System.IO.Path]::Combine($Node.Paths.binaries, 'kubeadm.exe')
        # Said beforehand: a machine that loses power now must not be taken for somebody else's node.
        Set-RecordEntry -Key 'joined' -Value (Get-Endpoint)
        Set-RecordEntry -Key 'kubernetes' -Value $Node.Parameters.kubernetes
        Write-Line (Invoke-Checked -Path $kubeadm -Arguments @('join', '--config', $path) -Seconds 600)
    }
    catch {
        $problem = $_.Exception.Message
        Remove-RecordEntry 'joined'
        Undo-Join
        throw "kubeadm could not join this machine: $problem"
    }
    finally {
        [System.IO.File]::Delete($path)
    }
}

function Undo-Join {
    # Nothing of a join that was refused may keep the next one from starting.
    try {
        Stop-ServiceAndWait -Name 'kubelet'
        foreach ($left in (@(Get-LeftBehind) + @(Get-KubeconfigPath))) {
            [System.IO.File]::Delete($left)
        }
    }
    catch {
        Write-Line "        after the failure: $($_.Exception.Message)"
    }
}

function Get-JoinSteps {
    param([string]$Token, [string[]]$CaHash)
    return @(
        (New-Step -Name "join the cluster at $(Get-Endpoint) as node $($Node.Name)" -Subject @{ Token = $Token; CaHash = $CaHash } -Test {
            Test-Joined
        } -Apply {
            param($Credentials)
            Invoke-KubeadmJoin -Token $Credentials.Token -CaHash $Credentials.CaHash
        })
    ) + @(Get-KubeletSteps) + @(Get-HealthSteps)
}

function Get-HealthSteps {
    return @(
        (New-Step -Name 'kubelet runs and is healthy' -Test {
            (Get-ServiceStatus 'kubelet') -eq 'Running' -and (Test-KubeletHealthy)
        } -Apply {
            Start-ServiceAndWait -Name 'kubelet'
            if (-not (Wait-KubeletHealthy -Seconds 120)) {
                throw "the kubelet is not healthy after two minutes; its log is in $($Node.Paths.logs)"
            }
        })
    )
}

function Read-Token {
    # From the command line, a file, or the keyboard; never from the log.
    param([string]$Token, [string]$TokenFile)
    if ($Token -eq '' -and $TokenFile -ne '') {
        $TokenFile = Resolve-GivenPath $TokenFile
        if (-not [System.IO.File]::Exists($TokenFile)) {
            Stop-WrongInput "there is no file $TokenFile"
        }
        $Token = [System.IO.File]::ReadAllText($TokenFile).Trim()
    }
    if ($Token -eq '' -and [Environment]::UserInteractive) {
        try {
            $typed = Read-Host -Prompt 'Bootstrap token' -AsSecureString
            $Token = (New-Object System.Management.Automation.PSCredential 'token', $typed).GetNetworkCredential().Password
        }
        catch [System.Management.Automation.PSInvalidOperationException] {
            Stop-WrongInput 'there is no token, and nobody to ask for it: give it with -Token or -TokenFile'
        }
    }
    Add-Secret $Token
    return $Token
}

function Invoke-Beginning {
    # Steps that touch nothing but our own folder. What they made goes again when one of them fails.
    param([object[]]$Steps, [switch]$Started)
    $before = @(Get-StateNames)
    if (-not $Started) {
        Start-Log
    }
    $Node.Early = $true
    try {
        [void](Invoke-Steps -Steps $Steps)
    }
    catch {
        Undo-Beginning -Before $before
        throw
    }
    $Node.Early = $false
}

function Get-StateNames {
    # What is in our own folder; a dot for the folder itself.
    if (-not [System.IO.Directory]::Exists($Node.Paths.state)) {
        return @()
    }
    $names = @([System.IO.Directory]::GetFileSystemEntries($Node.Paths.state) | ForEach-Object { [System.IO.Path]::GetFileName($_) })
    return @('.') + $names
}

function Undo-Beginning {
    # Only what was not there; an older log stays, and tells of this, too.
    param([string[]]$Before)
    if ($Before -notcontains 'logs') {
        $Node.LogFile = ''
    }
    foreach ($name in @(Get-StateNames | Where-Object { $_ -ne '.' -and $Before -notcontains $_ })) {
        Remove-Path -Path ([System.IO.Path]::Combine($Node.Paths.state, $name))
    }
    if ($Before -notcontains '.') {
        Remove-Path -Path $Node.Paths.state
    }
    Write-Line 'what this run had made is removed: the machine is as it was before'
}

function Invoke-Join {
    param([string]$Token, [string]$TokenExpires, [string]$TokenFile, [string[]]$CaHash, [string]$NodeName, [switch]$Resume)
    Assert-Elevated
    if ($Resume) {
        $kept = Read-Resume
        if ($null -eq $kept) {
            Stop-WrongInput 'there is nothing to go on with: run the join line'
        }
        $Token = $kept.token
        $CaHash = @($kept.ca_hash)
        $NodeName = $kept.node
        Add-Secret $Token
        # Nobody looks at the screen of a task: whatever goes wrong from here on has to be in the log.
        Start-Log
        if (-not $Node.WhatIf) {
            Remove-Resume
        }
    }
    Add-Secret $Token
    Set-NodeName -Given $NodeName
    Assert-Machine
    if (-not (Test-Joined)) {
        Assert-TokenFresh -Expires $TokenExpires
    }
    $patience = 0
    if ($Resume) {
        $patience = 300
    }
    Assert-Joinable -Seconds $patience
    # -WhatIf asks nobody for a token; one that is given is judged all the same.
    if (-not (Test-Joined) -and (-not $Node.WhatIf -or $Token -ne '' -or $TokenFile -ne '')) {
        $Token = Read-Token -Token $Token -TokenFile $TokenFile
        Assert-Credentials -Token $Token -CaHash $CaHash
        Assert-TokenKnown -Token $Token -CaHash $CaHash
    }
    Invoke-Beginning -Steps (@(Get-StateSteps) + @(Get-FetchSteps)) -Started:$Resume
    if (-not (Invoke-Steps -Steps @(Get-FeatureSteps))) {
        Save-Resume -Token $Token -CaHash $CaHash
        Write-Line 'a reboot is needed; after it the join goes on by itself (log: node.log in the state folder)'
        return 3010
    }
    $steps = @(Get-PrepareSteps) + @(Get-ContainerdSteps) + @(Get-KubeletSteps) + @(Get-JoinSteps -Token $Token -CaHash $CaHash)
    [void](Invoke-Steps -Steps $steps)
    if ($Node.WhatIf) {
        Write-Line 'nothing was changed (-WhatIf)'
        return 0
    }
    Remove-Resume
    Write-Line "node $($Node.Name): $(Get-ChangeWords)"
    Write-Line "next: winready node verify $($Node.Name)"
    return 0
}

function Get-ChangeWords {
    if ($Node.Changed -eq 0) {
        return 'nothing had to be changed'
    }
    return "$($Node.Changed) steps were done"
}

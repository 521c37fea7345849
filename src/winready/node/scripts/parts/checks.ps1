# What must be true before anything is changed; each failure is one sentence and exit code 2.

function Get-KubeconfigPath {
    return [System.IO.Path]::Combine($Node.Paths.kubernetes, 'kubelet.conf')
}

function Test-Joined {
    # Joined by us: kubeadm's own file, and our word for it.
    return ([System.IO.File]::Exists((Get-KubeconfigPath)) -and (Get-RecordEntry 'joined') -ne '')
}

function Get-Endpoint {
    $endpoint = $Node.Parameters.endpoint
    if ($endpoint.host.Contains(':')) {
        return '[{0}]:{1}' -f $endpoint.host, $endpoint.port
    }
    return '{0}:{1}' -f $endpoint.host, $endpoint.port
}

function Set-NodeName {
    # Given, recorded, or the machine's own; small letters, as Kubernetes wants them.
    param([string]$Given)
    $recorded = ''
    if (Test-Elevated) {
        $recorded = Get-RecordEntry 'node'
    }
    $name = $recorded
    if ($name -eq '') {
        $name = $Given
    }
    if ($name -eq '') {
        $name = [System.Net.Dns]::GetHostName()
    }
    $name = $name.ToLowerInvariant()
    if ($name -cnotmatch '^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$') {
        Stop-WrongInput "'$name' cannot be the name of a node: letters, digits, dots and dashes only; give one with -NodeName"
    }
    if ($recorded -ne '' -and $Given -ne '' -and $Given.ToLowerInvariant() -ne $recorded) {
        Stop-WrongInput "this machine is prepared as node $recorded; reset it before it gets the name $Given"
    }
    $Node.Name = $name
}

function Assert-Elevated {
    if (-not (Test-Elevated)) {
        Stop-WrongInput 'this needs an elevated PowerShell: start it with Run as administrator'
    }
}

function Assert-Machine {
    $build = Get-WindowsBuild
    if ($build -lt [int]$Node.Parameters.minimum_build) {
        Stop-WrongInput "this Windows (build $build) is too old: build $($Node.Parameters.minimum_build) (Windows Server 2022) or newer is needed"
    }
    if ($env:PROCESSOR_ARCHITECTURE -ne 'AMD64') {
        Stop-WrongInput "this machine is $($env:PROCESSOR_ARCHITECTURE); the programs of this bundle are for AMD64"
    }
    $free = Get-FreeGigabytes -Path $Node.Paths.binaries
    if ($free -lt 10) {
        Stop-WrongInput "only $free GB are free on the disk of $($Node.Paths.binaries); 10 GB are needed for programs and images"
    }
}

function Assert-Joinable {
    # Not a node of somebody else, and not one of ours in another version. After a boot the network may come up late.
    param([int]$Seconds)
    if (Test-Joined) {
        $joined = Get-RecordEntry 'joined'
        if ($joined -ne (Get-Endpoint)) {
            Stop-WrongInput "this machine is a node of the cluster at $joined; run node.ps1 reset first"
        }
        $installed = Get-RecordEntry 'kubernetes'
        if ($installed -ne $Node.Parameters.kubernetes) {
            Stop-WrongInput "this machine has joined with Kubernetes $installed, this bundle has $($Node.Parameters.kubernetes); run node.ps1 upgrade"
        }
        return
    }
    if ([System.IO.File]::Exists((Get-KubeconfigPath))) {
        Stop-WrongInput "$(Get-KubeconfigPath) is there, and not from this script: the machine belongs to a cluster already"
    }
    $end = [DateTime]::UtcNow.AddSeconds($Seconds)
    while (-not (Test-Reachable -HostName $Node.Parameters.endpoint.host -Port ([int]$Node.Parameters.endpoint.port))) {
        if ([DateTime]::UtcNow -ge $end) {
            Stop-WrongInput "the API server at $(Get-Endpoint) takes no connection from here: check names, routes and firewalls"
        }
        Start-Sleep -Seconds 2
    }
}

function Assert-Credentials {
    # A token and fingerprints of the form that kubeadm takes.
    param([string]$Token, [string[]]$CaHash)
    if ($Token -cnotmatch '^[a-z0-9]{6}\.[a-z0-9]{16}$') {
        Stop-WrongInput "this is no bootstrap token: use the line that 'winready node join-command' prints"
    }
    if (@($CaHash).Count -eq 0) {
        Stop-WrongInput "-CaHash is missing: use the line that 'winready node join-command' prints"
    }
    foreach ($hash in $CaHash) {
        if ($hash -cnotmatch '^sha256:[0-9a-f]{64}$') {
            Stop-WrongInput "'$hash' is no fingerprint of a certificate authority: it reads sha256: and 64 digits"
        }
    }
}

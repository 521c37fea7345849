# The kubelet: its command line from node.json and from what kubeadm wrote, and its service.

function ConvertFrom-KubeadmFlags {
    # The arguments in kubeadm-flags.env. The file is data: it is read, never run.
    param([string]$Text)
    $found = [regex]::Match($Text, '(?m)^[ \t]*KUBELET_KUBEADM_ARGS=(.*?)[ \t\r]*$')
    if (-not $found.Success) {
        return @()
    }
    $value = $found.Groups[1].Value
    if ($value.Length -ge 2 -and $value[0] -eq '"' -and $value[$value.Length - 1] -eq '"') {
        # kubeadm writes the text of a Go string.
        $value = [regex]::Replace($value.Substring(1, $value.Length - 2), '\\([\\"])', '$1')
    }
    $arguments = @()
    foreach ($part in [regex]::Matches($value, '(?:[^\s"]|"[^"]*")+')) {
        $arguments += $part.Value.Replace('"', '')
    }
    return $arguments
}

function Get-FlagName {
    param([string]$Argument)
    return [regex]::Replace($Argument, '^--?([^=]*).*$', '$1')
}

function Get-KubeletArguments {
    # Ours first, then what kubeadm adds, without what this kubelet no longer knows.
    param([string[]]$Kubeadm)
    $arguments = @($Node.Parameters.kubelet.flags | ForEach-Object { $_.Replace('{node}', $Node.Name) })
    $ours = @($arguments | ForEach-Object { Get-FlagName $_ })
    $removed = @($Node.Parameters.kubelet.removed_flags)
    foreach ($argument in $Kubeadm) {
        $name = Get-FlagName $argument
        if ($ours -notcontains $name -and $removed -notcontains $name) {
            $arguments += $argument
        }
    }
    return $arguments
}

function Get-KubeadmFlags {
    $path = [System.IO.Path]::Combine($Node.Paths.kubelet, 'kubeadm-flags.env')
    if (-not [System.IO.File]::Exists($path)) {
        return @()
    }
    return @(ConvertFrom-KubeadmFlags -Text ([System.IO.File]::ReadAllText($path)))
}

function Get-KubeletService {
    # The log runner writes and rotates the log; the kubelet itself answers the service manager.
    $arguments = @(
        [System.IO.Path]::Combine($Node.Paths.binaries, 'kube-log-runner.exe'),
        ('-log-file=' + [System.IO.Path]::Combine($Node.Paths.logs, 'kubelet.log')),
        '-log-file-size=20M', '-log-file-age=168h', '-flush-interval=5s',
        [System.IO.Path]::Combine($Node.Paths.binaries, 'kubelet.exe')
    )
    $arguments += @(Get-KubeletArguments -Kubeadm @(Get-KubeadmFlags))
    return @{
        Name        = 'kubelet'
        DisplayName = 'Kubernetes kubelet'
        CommandLine = ConvertTo-CommandLine $arguments
        DependsOn   = @(Get-KubeletDependencies)
        Environment = @(Get-ProxyEnvironment)
    }
}

function Get-KubeletDependencies {
    # A runtime that the machine brings may be no service at all.
    if ($Node.Parameters.containerd.version -ne '' -or (Test-ServicePresent 'containerd')) {
        return @('containerd')
    }
    return @()
}

function Test-KubeletHealthy {
    # What the kubelet says of itself on the loopback.
    try {
        $answer = Invoke-WebRequest -Uri 'http://127.0.0.1:10248/healthz' -UseBasicParsing -TimeoutSec 5
        return ([int]$answer.StatusCode -eq 200)
    }
    catch {
        return $false
    }
}

function Wait-KubeletHealthy {
    param([int]$Seconds)
    $end = [DateTime]::UtcNow.AddSeconds($Seconds)
    while (-not (Test-KubeletHealthy)) {
        if ([DateTime]::UtcNow -gt $end) {
            return $false
        }
        Start-Sleep -Seconds 1
    }
    return $true
}

function Get-KubeletSteps {
    return @(
        (New-Step -Name 'kubelet service' -Test { Test-ServiceSettings -Service (Get-KubeletService) } -Apply {
            $running = (Get-ServiceStatus 'kubelet') -eq 'Running'
            Set-ServiceSettings -Service (Get-KubeletService)
            if ($running) {
                Stop-ServiceAndWait -Name 'kubelet'
                Start-ServiceAndWait -Name 'kubelet'
            }
        })
    )
}

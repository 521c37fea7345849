# The container runtime: its settings, its service, and whether it answers.

function Get-ContainerdConfig {
    return [System.IO.Path]::Combine($Node.Paths.containerd, 'config.toml')
}

function Get-ContainerdSettings {
    # As the bundle carries them, made from node.json.
    return [System.IO.File]::ReadAllText([System.IO.Path]::Combine($Node.Root, 'config', 'containerd.toml'))
}

function Get-ContainerdService {
    $arguments = @(
        [System.IO.Path]::Combine($Node.Paths.containerd, 'containerd.exe'),
        '--run-service', '--config', (Get-ContainerdConfig),
        '--log-file', [System.IO.Path]::Combine($Node.Paths.containerd_data, 'containerd.log')
    )
    return @{
        Name        = 'containerd'
        DisplayName = 'containerd'
        CommandLine = ConvertTo-CommandLine $arguments
        DependsOn   = @()
        Environment = @(Get-ProxyEnvironment)
    }
}

function Get-ContainerdSteps {
    if ($Node.Parameters.containerd.version -eq '') {
        return @(New-Step -Name 'containerd of the machine answers' -Test { Test-Pipe 'containerd-containerd' } -Apply {
                throw 'there is no pipe containerd-containerd: this bundle was made with --containerd none, so start the runtime first'
            })
    }
    return @(
        (New-Step -Name 'containerd settings' -Test {
            $path = Get-ContainerdConfig
            [System.IO.File]::Exists($path) -and [System.IO.File]::ReadAllText($path) -ceq (Get-ContainerdSettings)
        } -Apply {
            Backup-Foreign -Path (Get-ContainerdConfig)
            Write-Text -Path (Get-ContainerdConfig) -Text (Get-ContainerdSettings)
            # Whoever runs with the old settings has to read the new ones.
            Stop-ServiceAndWait -Name 'containerd'
        }),
        (New-Step -Name 'containerd service' -Test { Test-ServiceSettings -Service (Get-ContainerdService) } -Apply {
            Set-ServiceSettings -Service (Get-ContainerdService)
            Stop-ServiceAndWait -Name 'containerd'
        }),
        (New-Step -Name 'containerd runs and answers' -Test {
            (Get-ServiceStatus 'containerd') -eq 'Running' -and (Test-Pipe 'containerd-containerd')
        } -Apply {
            Start-ServiceAndWait -Name 'containerd'
            $end = [DateTime]::UtcNow.AddSeconds(60)
            while (-not (Test-Pipe 'containerd-containerd') -and [DateTime]::UtcNow -lt $end) {
                Start-Sleep -Milliseconds 300
            }
        })
    )
}

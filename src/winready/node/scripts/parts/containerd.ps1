# The container runtime: its settings, its service, and whether it answers.

function Get-ContainerdConfig {
    return [System.IO.Path]::Combine($Node.Paths.containerd, 'config.toml')
}

function Get-ContainerdSettings {
    # As the bundle carries them, made from node.json.
    return [System.IO.File]::ReadAllText([System.IO.Path]::Combine($Node.Root, 'config', 'containerd.toml'))
}

function Get-MirrorFiles {
    # Path and text of the file in which containerd looks for mirrors of a registry, one for each. A colon cannot be in a name.
    $files = @()
    $hosts = @($Node.Parameters.containerd.mirrors | ForEach-Object { $_.host } | Select-Object -Unique)
    foreach ($registry in $hosts) {
        $folder = [regex]::Replace($registry, ':(\d+)$', '_$1_')
        $lines = @()
        foreach ($mirror in @($Node.Parameters.containerd.mirrors | Where-Object { $_.host -eq $registry })) {
            $lines += '[host."' + $mirror.endpoint + '"]'
            $lines += 'capabilities = ["pull", "resolve"]'
            # An address that says itself where the API begins is taken as it is.
            if ($mirror.endpoint -match '/v2(/|$)') {
                $lines += 'override_path = true'
            }
        }
        $path = [System.IO.Path]::Combine($Node.Paths.containerd, 'certs.d', $folder, 'hosts.toml')
        $files += @{ Host = $registry; Path = $path; Text = (($lines -join "`n") + "`n") }
    }
    return $files
}

function Get-RecordedMirrors {
    # Files of this kind that we wrote, with this bundle or another.
    $folder = [System.IO.Path]::Combine($Node.Paths.containerd, 'certs.d') + '\'
    $entries = Read-Record
    $keys = @($entries.Keys | Where-Object { $_.StartsWith("file:$folder") -and $_.EndsWith('\hosts.toml') })
    return @($keys | ForEach-Object { $_.Substring(5) } | Sort-Object)
}

function Get-StaleMirrors {
    $wanted = @(Get-MirrorFiles | ForEach-Object { $_.Path })
    return @(Get-RecordedMirrors | Where-Object { $wanted -notcontains $_ })
}

function Get-MirrorSteps {
    # containerd reads these files at every pull and need not be started again.
    $steps = @()
    foreach ($file in @(Get-MirrorFiles)) {
        $steps += New-Step -Name "mirrors of $($file.Host)" -Subject $file -Test {
            param($File)
            [System.IO.File]::Exists($File.Path) -and [System.IO.File]::ReadAllText($File.Path) -ceq $File.Text
        } -Apply {
            param($File)
            Backup-Foreign -Path $File.Path
            Write-Text -Path $File.Path -Text $File.Text
        }
    }
    foreach ($path in @(Get-StaleMirrors)) {
        $steps += New-Step -Name "no mirrors in $path any more" -Subject $path -Test {
            param($Path)
            (Get-RecordEntry "file:$Path") -eq ''
        } -Apply {
            param($Path)
            Restore-Foreign -Path $Path -Before (Get-RecordEntry "file:$Path")
            Remove-RecordEntry "file:$Path"
        }
    }
    return $steps
}

function Get-ContainerdLog {
    return [System.IO.Path]::Combine($Node.Paths.containerd_data, 'containerd.log')
}

function Get-RotateArguments {
    $entry = [System.IO.Path]::Combine((Get-KeptBundle), 'node.ps1')
    return (ConvertTo-CommandLine @('-NoProfile', '-NonInteractive', '-ExecutionPolicy', 'Bypass', '-File', $entry, 'rotate'))
}

function Invoke-Rotate {
    # containerd opens its log once, for appending, and no other program can take the file away from it. So it is copied and cut,
    # as the kubelet's is by its runner: pieces of 20 MB, kept for a week. Lines of the moment between the two are lost.
    Assert-Elevated
    $path = Get-ContainerdLog
    if (-not [System.IO.File]::Exists($path)) {
        return 0
    }
    $folder = [System.IO.Path]::GetDirectoryName($path)
    $long = (New-Object System.IO.FileInfo $path).Length -ge 20MB
    $old = @([System.IO.Directory]::GetFiles($folder, 'containerd-*T*.log') | Where-Object {
            [System.IO.File]::GetLastWriteTimeUtc($_) -lt [DateTime]::UtcNow.AddHours(-168)
        })
    if ($Node.WhatIf -or (-not $long -and $old.Count -eq 0)) {
        return 0
    }
    Start-Log
    if ($long) {
        $stamp = [DateTime]::UtcNow.ToString('yyyyMMddTHHmmssfff', [Globalization.CultureInfo]::InvariantCulture)
        $piece = [System.IO.Path]::Combine($folder, "containerd-$stamp.log")
        $source = [System.IO.File]::Open($path, 'Open', 'ReadWrite', 'ReadWrite')
        try {
            $target = [System.IO.File]::Open($piece, 'CreateNew', 'Write', 'None')
            try {
                $source.CopyTo($target)
            }
            finally {
                $target.Dispose()
            }
            $source.SetLength(0)
        }
        finally {
            $source.Dispose()
        }
        Write-Line "done    $path cut; its lines are in $piece"
    }
    foreach ($piece in $old) {
        Remove-Quietly -Path $piece
        Write-Line "done    $piece removed, it is older than a week"
    }
    return 0
}

function Get-ContainerdService {
    $arguments = @(
        [System.IO.Path]::Combine($Node.Paths.containerd, 'containerd.exe'),
        '--run-service', '--config', (Get-ContainerdConfig),
        '--log-file', (Get-ContainerdLog)
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
    return @(Get-MirrorSteps) + @(
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
        (New-Step -Name 'task that cuts the log of containerd' -Test { Test-RotateTask -Arguments (Get-RotateArguments) } -Apply {
            Add-RecordEntry -Key 'task:winready-containerd-log' -Value 'absent'
            Register-RotateTask -Arguments (Get-RotateArguments)
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

# Windows services: made once, changed when they differ, restarted when they fail.

function Open-ServiceKey {
    param([string]$Name, [bool]$Write = $false)
    return [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey("SYSTEM\CurrentControlSet\Services\$Name", $Write)
}

function Test-ServicePresent {
    param([string]$Name)
    return ($null -ne (Get-Service -Name $Name -ErrorAction SilentlyContinue))
}

function Get-ServiceValue {
    # A setting as the service manager stores it; nothing when it is not set.
    param([string]$Name, [string]$Value)
    $key = Open-ServiceKey -Name $Name
    if ($null -eq $key) {
        return $null
    }
    try {
        return $key.GetValue($Value, $null, [Microsoft.Win32.RegistryValueOptions]::DoNotExpandEnvironmentNames)
    }
    finally {
        $key.Dispose()
    }
}

function Get-ServiceStatus {
    # Running, Stopped and so on; empty when there is no such service.
    param([string]$Name)
    $service = Get-Service -Name $Name -ErrorAction SilentlyContinue
    if ($null -eq $service) {
        return ''
    }
    return [string]$service.Status
}

function Test-ServiceSettings {
    # Whether a service is there with this command line, dependencies and environment, started at boot, restarted on failure.
    param([hashtable]$Service)
    if (-not (Test-ServicePresent $Service.Name)) {
        return $false
    }
    if ([string](Get-ServiceValue $Service.Name 'ImagePath') -cne $Service.CommandLine) {
        return $false
    }
    if ([int](Get-ServiceValue $Service.Name 'Start') -ne 2) {
        return $false
    }
    if ((@(Get-ServiceValue $Service.Name 'DependOnService') -join ',') -ne ($Service.DependsOn -join ',')) {
        return $false
    }
    if ((@(Get-ServiceValue $Service.Name 'Environment') -join "`n") -ne ($Service.Environment -join "`n")) {
        return $false
    }
    return (Test-ServiceRecovery $Service.Name) -and (Get-ServiceFlag $Service.Name) -eq 1
}

function Test-ServiceRecovery {
    # Three restarts, as the service manager packs them: reset period, two unused, count, one unused, pairs of kind and delay.
    param([string]$Name)
    $bytes = Get-ServiceValue $Name 'FailureActions'
    if ($null -eq $bytes -or $bytes.Length -lt 44) {
        return $false
    }
    if ([BitConverter]::ToInt32($bytes, 12) -ne 3) {
        return $false
    }
    foreach ($index in 0..2) {
        if ([BitConverter]::ToInt32($bytes, 20 + 8 * $index) -ne 1) {
            return $false
        }
    }
    return $true
}

function Get-ServiceFlag {
    # 1: a service that ends with an error is restarted, too, and not only one that is killed.
    param([string]$Name)
    $found = Get-ServiceValue $Name 'FailureActionsOnNonCrashFailures'
    if ($null -eq $found) {
        return 0
    }
    return [int]$found
}

function Get-ServiceMemory {
    # All of a service that we change, as one text.
    param([string]$Name)
    $failure = Get-ServiceValue $Name 'FailureActions'
    $packed = ''
    if ($null -ne $failure) {
        $packed = [Convert]::ToBase64String([byte[]]$failure)
    }
    return (ConvertTo-Json -Compress -InputObject ([ordered]@{
                program     = [string](Get-ServiceValue $Name 'ImagePath')
                start       = [int](Get-ServiceValue $Name 'Start')
                delayed     = [int](Get-ServiceValue $Name 'DelayedAutostart')
                depends     = @(@(Get-ServiceValue $Name 'DependOnService') | Where-Object { $null -ne $_ })
                environment = @(@(Get-ServiceValue $Name 'Environment') | Where-Object { $null -ne $_ })
                failure     = $packed
                flag        = Get-ServiceFlag $Name
            }))
}

function Get-ServiceSummary {
    # A memory without what is stored in several ways: no action on failure is an empty list or nothing at all.
    param([string]$Memory)
    $was = ConvertFrom-Json -InputObject $Memory
    $recovery = @(Get-RecoveryWords -Packed $was.failure)[-1]
    $names = @($was.depends) + @($was.environment)
    return (@($was.program, $was.start, [int](Get-JsonValue -Document $was -Name 'flag'), $recovery) + $names) -join "`n"
}

function Restore-Service {
    # As it was when we came; it is neither started nor stopped.
    param([string]$Name, [string]$Memory)
    $was = ConvertFrom-Json -InputObject $Memory
    $start = @{ 2 = 'auto'; 3 = 'demand'; 4 = 'disabled' }[[int]$was.start]
    if ($start -eq 'auto' -and [int]$was.delayed -eq 1) {
        $start = 'delayed-auto'
    }
    $manager = Get-SystemProgram 'sc.exe'
    $depends = Get-DependencyWords -Names @($was.depends)
    $arguments = @('config', $Name, 'binPath=', $was.program, 'start=', $start, 'depend=', $depends)
    [void](Invoke-Checked -Path $manager -Arguments $arguments -Seconds 60)
    Set-ServiceEnvironment -Service @{ Name = $Name; Environment = @($was.environment) }
    $recovery = @('failure', $Name) + @(Get-RecoveryWords -Packed $was.failure)
    [void](Invoke-Checked -Path $manager -Arguments $recovery -Seconds 60)
    [void](Invoke-Checked -Path $manager -Arguments @('failureflag', $Name, [string][int](Get-JsonValue -Document $was -Name 'flag')) -Seconds 60)
}

function Get-DependencyWords {
    # Names are joined by slashes; a slash alone takes all dependencies away.
    param([string[]]$Names)
    if (@($Names).Count -eq 0) {
        return '/'
    }
    return ($Names -join '/')
}

function Get-RecoveryWords {
    # What the service manager has packed, in the words that its program takes; without anything packed, nothing is to happen.
    param([AllowEmptyString()][string]$Packed)
    if ($Packed -eq '') {
        return @('reset=', '0', 'actions=', '')
    }
    $bytes = [Convert]::FromBase64String($Packed)
    $kinds = @('', 'restart', 'reboot', 'run')
    $words = @()
    $index = 0
    while ($index -lt [BitConverter]::ToInt32($bytes, 12)) {
        $words += $kinds[[BitConverter]::ToInt32($bytes, 20 + 8 * $index)]
        $words += [string][BitConverter]::ToInt32($bytes, 24 + 8 * $index)
        $index += 1
    }
    return @('reset=', [string][BitConverter]::ToUInt32($bytes, 0), 'actions=', ($words -join '/'))
}

function Set-ServiceSettings {
    # Make the service, or change it to what it should be; it is neither started nor stopped.
    param([hashtable]$Service)
    $manager = Get-SystemProgram 'sc.exe'
    if (Test-ServicePresent $Service.Name) {
        Add-RecordEntry -Key "service:$($Service.Name)" -Value (Get-ServiceMemory $Service.Name)
        $depends = Get-DependencyWords -Names $Service.DependsOn
        $arguments = @('config', $Service.Name, 'binPath=', $Service.CommandLine, 'start=', 'auto', 'depend=', $depends)
        [void](Invoke-Checked -Path $manager -Arguments $arguments -Seconds 60)
    }
    else {
        Add-RecordEntry -Key "service:$($Service.Name)" -Value 'absent'
        $settings = @{
            Name           = $Service.Name
            BinaryPathName = $Service.CommandLine
            DisplayName    = $Service.DisplayName
            StartupType    = 'Automatic'
        }
        if ($Service.DependsOn.Count -gt 0) {
            $settings['DependsOn'] = $Service.DependsOn
        }
        [void](New-Service @settings)
    }
    Set-ServiceEnvironment -Service $Service
    $recovery = @('failure', $Service.Name, 'reset=', '86400', 'actions=', 'restart/10000/restart/10000/restart/60000')
    [void](Invoke-Checked -Path $manager -Arguments $recovery -Seconds 60)
    [void](Invoke-Checked -Path $manager -Arguments @('failureflag', $Service.Name, '1') -Seconds 60)
}

function Set-ServiceEnvironment {
    param([hashtable]$Service)
    $key = Open-ServiceKey -Name $Service.Name -Write $true
    try {
        if ($Service.Environment.Count -gt 0) {
            $key.SetValue('Environment', [string[]]$Service.Environment, [Microsoft.Win32.RegistryValueKind]::MultiString)
        }
        elseif ($null -ne $key.GetValue('Environment')) {
            $key.DeleteValue('Environment')
        }
    }
    finally {
        $key.Dispose()
    }
}

function Get-ProxyEnvironment {
    # The proxies as services read them.
    $proxy = $Node.Parameters.proxy
    $found = @()
    if ($proxy.http -ne '') {
        $found += 'HTTP_PROXY=' + $proxy.http
    }
    if ($proxy.https -ne '') {
        $found += 'HTTPS_PROXY=' + $proxy.https
    }
    if ($found.Count -gt 0) {
        $found += 'NO_PROXY=' + (@($proxy.no_proxy) -join ',')
    }
    return $found
}

function Stop-ServiceAndWait {
    param([string]$Name, [int]$Seconds = 60)
    if ((Get-ServiceStatus $Name) -eq '' -or (Get-ServiceStatus $Name) -eq 'Stopped') {
        return
    }
    Stop-Service -Name $Name -Force -ErrorAction SilentlyContinue
    Wait-ServiceStatus -Name $Name -Status 'Stopped' -Seconds $Seconds
}

function Start-ServiceAndWait {
    param([string]$Name, [int]$Seconds = 60)
    if ((Get-ServiceStatus $Name) -ne 'Running') {
        Start-Service -Name $Name
        Wait-ServiceStatus -Name $Name -Status 'Running' -Seconds $Seconds
    }
}

function Wait-ServiceStatus {
    param([string]$Name, [string]$Status, [int]$Seconds)
    $end = [DateTime]::UtcNow.AddSeconds($Seconds)
    while ((Get-ServiceStatus $Name) -ne $Status) {
        if ([DateTime]::UtcNow -gt $end) {
            throw "the service $Name is $(Get-ServiceStatus $Name) after $Seconds seconds, not $Status"
        }
        Start-Sleep -Milliseconds 300
    }
}

function Remove-ServiceAndWait {
    param([string]$Name)
    if (-not (Test-ServicePresent $Name)) {
        return
    }
    Stop-ServiceAndWait -Name $Name
    [void](Invoke-Checked -Path (Get-SystemProgram 'sc.exe') -Arguments @('delete', $Name) -Seconds 60)
    # A service is gone when the last one who looks at it has let go.
    $end = [DateTime]::UtcNow.AddSeconds(30)
    while ((Test-ServicePresent $Name) -and [DateTime]::UtcNow -lt $end) {
        Start-Sleep -Milliseconds 300
    }
}

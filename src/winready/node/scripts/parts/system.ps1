# The machine itself: features, firewall, antivirus, reboots. Whatever a stand-in for Windows lacks is called only here.

function Test-Elevated {
    $identity = [System.Security.Principal.WindowsIdentity]::GetCurrent()
    $principal = New-Object System.Security.Principal.WindowsPrincipal $identity
    return $principal.IsInRole([System.Security.Principal.WindowsBuiltInRole]::Administrator)
}

function Get-WindowsBuild {
    $key = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey('SOFTWARE\Microsoft\Windows NT\CurrentVersion')
    try {
        return [int]$key.GetValue('CurrentBuildNumber')
    }
    finally {
        $key.Dispose()
    }
}

function Test-RebootPending {
    $name = 'SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\RebootPending'
    $key = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($name)
    if ($null -eq $key) {
        return $false
    }
    $key.Dispose()
    return $true
}

function Get-FeatureState {
    # Enabled, Disabled, or what Windows calls the ways between.
    param([string]$Name)
    $feature = Get-WindowsOptionalFeature -Online -FeatureName $Name
    if ($null -eq $feature) {
        throw "this Windows offers no feature $Name"
    }
    return [string]$feature.State
}

function Enable-Feature {
    # Whether a reboot is needed for it.
    param([string]$Name)
    $result = Enable-WindowsOptionalFeature -Online -FeatureName $Name -All -NoRestart -WarningAction SilentlyContinue
    return [bool]$result.RestartNeeded
}

function Get-FirewallRules {
    # Name, protocol and port of what has to be open.
    $rules = @(@{ Name = 'winready-kubelet'; Protocol = 'TCP'; Port = 10250 })
    $network = $Node.Parameters.network
    if ($network.cni -eq 'flannel' -and $network.mode -eq 'overlay') {
        $rules += @{ Name = 'winready-vxlan'; Protocol = 'UDP'; Port = [int]$network.vxlan_port }
    }
    return $rules
}

function Test-FirewallRule {
    # A rule of this name for exactly this port.
    param([hashtable]$Rule)
    $found = @(Get-NetFirewallRule -Name $Rule.Name -ErrorAction SilentlyContinue)
    if ($found.Count -ne 1) {
        return $false
    }
    $filter = Get-NetFirewallPortFilter -AssociatedNetFirewallRule $found[0]
    $same = [string]$filter.Protocol -eq $Rule.Protocol -and [string]$filter.LocalPort -eq [string]$Rule.Port
    return ($same -and [string]$found[0].Enabled -eq 'True' -and [string]$found[0].Direction -eq 'Inbound' -and [string]$found[0].Action -eq 'Allow')
}

function Set-FirewallRule {
    param([hashtable]$Rule)
    Remove-FirewallRule -Name $Rule.Name
    $display = 'Kubernetes worker ({0} {1})' -f $Rule.Protocol, $Rule.Port
    [void](New-NetFirewallRule -Name $Rule.Name -DisplayName $display -Direction Inbound -Action Allow -Protocol $Rule.Protocol -LocalPort $Rule.Port)
}

function Test-FirewallName {
    param([string]$Name)
    return (@(Get-NetFirewallRule -Name $Name -ErrorAction SilentlyContinue).Count -gt 0)
}

function Remove-FirewallRule {
    param([string]$Name)
    if (Test-FirewallName $Name) {
        Remove-NetFirewallRule -Name $Name
    }
}

function Test-Defender {
    # Whether there is an antivirus of Windows to talk to.
    return ($null -ne (Get-Command -Name Get-MpPreference -ErrorAction SilentlyContinue))
}

function Get-DefenderExclusions {
    return @((Get-MpPreference).ExclusionProcess | Where-Object { $null -ne $_ })
}

function Add-DefenderExclusion {
    param([string]$Program)
    Add-MpPreference -ExclusionProcess $Program
}

function Remove-DefenderExclusion {
    param([string]$Program)
    Remove-MpPreference -ExclusionProcess $Program
}

function Test-Task {
    param([string]$Name)
    return ($null -ne (Get-ScheduledTask -TaskName $Name -ErrorAction SilentlyContinue))
}

function Register-Task {
    # As the system account.
    param([string]$Name, [string]$Arguments, $Trigger)
    $program = Get-SystemProgram 'WindowsPowerShell\v1.0\powershell.exe'
    $action = New-ScheduledTaskAction -Execute $program -Argument $Arguments
    $principal = New-ScheduledTaskPrincipal -UserId 'S-1-5-18' -LogonType ServiceAccount -RunLevel Highest
    [void](Register-ScheduledTask -TaskName $Name -Action $action -Trigger $Trigger -Principal $principal -Force)
}

function Unregister-Task {
    param([string]$Name)
    Unregister-ScheduledTask -TaskName $Name -Confirm:$false
}

function Register-ResumeTask {
    # Once the machine is up again.
    param([string]$Arguments)
    Register-Task -Name 'winready-node' -Arguments $Arguments -Trigger (New-ScheduledTaskTrigger -AtStartup)
}

function Test-RotateTask {
    # There, and with exactly this command line.
    param([string]$Arguments)
    $task = Get-ScheduledTask -TaskName 'winready-containerd-log' -ErrorAction SilentlyContinue
    return ($null -ne $task -and @($task.Actions).Count -eq 1 -and [string]@($task.Actions)[0].Arguments -eq $Arguments)
}

function Register-RotateTask {
    # Every hour, from a moment that is long past.
    param([string]$Arguments)
    $trigger = New-ScheduledTaskTrigger -Once -At ([DateTime]'2020-01-01') -RepetitionInterval ([TimeSpan]::FromHours(1))
    Register-Task -Name 'winready-containerd-log' -Arguments $Arguments -Trigger $trigger
}

function Restart-Machine {
    Restart-Computer -Force
}

function Test-Reachable {
    # Whether something takes a connection there.
    param([string]$HostName, [int]$Port, [int]$Seconds = 5)
    $client = New-Object System.Net.Sockets.TcpClient
    try {
        $attempt = $client.BeginConnect($HostName, $Port, $null, $null)
        if (-not $attempt.AsyncWaitHandle.WaitOne($Seconds * 1000)) {
            return $false
        }
        $client.EndConnect($attempt)
        return $true
    }
    catch {
        return $false
    }
    finally {
        $client.Close()
    }
}

function Test-Pipe {
    # Whether somebody listens on a named pipe.
    param([string]$Name)
    $direction = [System.IO.Pipes.PipeDirection]::InOut
    $client = New-Object System.IO.Pipes.NamedPipeClientStream '.', $Name, $direction
    try {
        $client.Connect(1000)
        return $true
    }
    catch {
        return $false
    }
    finally {
        $client.Dispose()
    }
}

function Get-FreeGigabytes {
    param([string]$Path)
    $drive = New-Object System.IO.DriveInfo ([System.IO.Path]::GetPathRoot($Path))
    return [Math]::Floor($drive.AvailableFreeSpace / 1GB)
}

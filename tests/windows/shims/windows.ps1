# What wine lacks, or lies about: cmdlets of Windows as far as the scripts call them, over a state in C:\shim\state.json.
# Every call is noted in C:\shim\calls.jsonl. Functions win over cmdlets of the same name.

$global:ShimState = 'C:\shim\state.json'
$global:ShimCalls = 'C:\shim\calls.jsonl'

function global:Read-Shim {
    return (ConvertFrom-Json -AsHashtable -InputObject ([IO.File]::ReadAllText($global:ShimState)))
}

function global:Write-Shim {
    param($State)
    [IO.File]::WriteAllText($global:ShimState, (ConvertTo-Json -InputObject $State -Depth 8))
}

function global:Test-Stubborn {
    # Whether this command is to say that it has done something, and to have done nothing.
    param([string]$Name)
    return (@((Read-Shim).stubborn) -contains $Name)
}

function global:Write-ShimCall {
    param([string]$Name, [System.Collections.IDictionary]$Given)
    $said = [ordered]@{}
    foreach ($key in @($Given.Keys | Sort-Object)) {
        if ($key -ne 'ErrorAction' -and $key -ne 'WarningAction') {
            $said[$key] = [string]$Given[$key]
        }
    }
    $line = ConvertTo-Json -InputObject ([ordered]@{ call = $Name; given = $said }) -Compress
    [IO.File]::AppendAllText($global:ShimCalls, $line + "`n")
}

# Features

function global:Get-WindowsOptionalFeature {
    [CmdletBinding()]
    param([switch]$Online, [string]$FeatureName)
    Write-ShimCall 'Get-WindowsOptionalFeature' $PSBoundParameters
    $state = Read-Shim
    if (-not $state.features.ContainsKey($FeatureName)) {
        throw "Feature name $FeatureName is unknown."
    }
    return [pscustomobject]@{ FeatureName = $FeatureName; State = $state.features[$FeatureName] }
}

function global:Enable-WindowsOptionalFeature {
    [CmdletBinding()]
    param([switch]$Online, [string]$FeatureName, [switch]$All, [switch]$NoRestart)
    Write-ShimCall 'Enable-WindowsOptionalFeature' $PSBoundParameters
    $state = Read-Shim
    $reboot = [bool]$state.features_need_reboot
    $state.features[$FeatureName] = 'Enabled'
    if ($reboot) {
        $state.features[$FeatureName] = 'EnablePending'
    }
    Write-Shim $state
    return [pscustomobject]@{ Online = $true; RestartNeeded = $reboot }
}

# Firewall

function global:Get-NetFirewallRule {
    [CmdletBinding()]
    param([string]$Name)
    Write-ShimCall 'Get-NetFirewallRule' $PSBoundParameters
    $state = Read-Shim
    if (-not $state.firewall.ContainsKey($Name)) {
        Write-Error "No MSFT_NetFirewallRule objects found with property 'InstanceID' equal to '$Name'."
        return
    }
    $rule = $state.firewall[$Name]
    return [pscustomobject]@{ Name = $Name; Enabled = 'True'; Direction = $rule.Direction; Action = $rule.Action }
}

function global:Get-NetFirewallPortFilter {
    [CmdletBinding()]
    param($AssociatedNetFirewallRule)
    Write-ShimCall 'Get-NetFirewallPortFilter' @{ AssociatedNetFirewallRule = $AssociatedNetFirewallRule.Name }
    $rule = (Read-Shim).firewall[$AssociatedNetFirewallRule.Name]
    return [pscustomobject]@{ Protocol = $rule.Protocol; LocalPort = $rule.LocalPort }
}

function global:New-NetFirewallRule {
    [CmdletBinding()]
    param([string]$Name, [string]$DisplayName, [string]$Direction, [string]$Action, [string]$Protocol, [string]$LocalPort)
    Write-ShimCall 'New-NetFirewallRule' $PSBoundParameters
    $state = Read-Shim
    if ($state.firewall.ContainsKey($Name)) {
        throw 'Cannot create a file when that file already exists.'
    }
    $state.firewall[$Name] = @{ Direction = $Direction; Action = $Action; Protocol = $Protocol; LocalPort = $LocalPort }
    Write-Shim $state
    return [pscustomobject]@{ Name = $Name }
}

function global:Remove-NetFirewallRule {
    [CmdletBinding()]
    param([string]$Name)
    Write-ShimCall 'Remove-NetFirewallRule' $PSBoundParameters
    $state = Read-Shim
    if (-not $state.firewall.ContainsKey($Name)) {
        throw "No MSFT_NetFirewallRule objects found with property 'InstanceID' equal to '$Name'."
    }
    if (-not (Test-Stubborn 'Remove-NetFirewallRule')) {
        $state.firewall.Remove($Name)
        Write-Shim $state
    }
}

# Defender

function global:Get-MpPreference {
    [CmdletBinding()]
    param()
    Write-ShimCall 'Get-MpPreference' $PSBoundParameters
    $found = @((Read-Shim).defender)
    if ($found.Count -eq 0) {
        $found = $null
    }
    return [pscustomobject]@{ ExclusionProcess = $found }
}

function global:Add-MpPreference {
    [CmdletBinding()]
    param([string[]]$ExclusionProcess)
    Write-ShimCall 'Add-MpPreference' $PSBoundParameters
    $state = Read-Shim
    $state.defender = @(@($state.defender) + $ExclusionProcess | Sort-Object -Unique)
    Write-Shim $state
}

function global:Remove-MpPreference {
    [CmdletBinding()]
    param([string[]]$ExclusionProcess)
    Write-ShimCall 'Remove-MpPreference' $PSBoundParameters
    $state = Read-Shim
    if (-not (Test-Stubborn 'Remove-MpPreference')) {
        $state.defender = @($state.defender | Where-Object { $ExclusionProcess -notcontains $_ })
        Write-Shim $state
    }
}

# Scheduled tasks and reboots

function global:Get-ScheduledTask {
    [CmdletBinding()]
    param([string]$TaskName)
    Write-ShimCall 'Get-ScheduledTask' $PSBoundParameters
    $state = Read-Shim
    if (-not $state.tasks.ContainsKey($TaskName)) {
        Write-Error "No MSFT_ScheduledTask objects found with property 'TaskName' equal to '$TaskName'."
        return
    }
    $action = [pscustomobject]@{ Execute = $state.tasks[$TaskName].Execute; Arguments = $state.tasks[$TaskName].Argument }
    return [pscustomobject]@{ TaskName = $TaskName; Actions = @($action) }
}

function global:New-ScheduledTaskAction {
    [CmdletBinding()]
    param([string]$Execute, [string]$Argument)
    return [pscustomobject]@{ Execute = $Execute; Argument = $Argument }
}

function global:New-ScheduledTaskTrigger {
    [CmdletBinding()]
    param([switch]$AtStartup, [switch]$Once, [datetime]$At, [timespan]$RepetitionInterval)
    if ($Once) {
        return [pscustomobject]@{ AtStartup = $false; Minutes = [int]$RepetitionInterval.TotalMinutes }
    }
    return [pscustomobject]@{ AtStartup = [bool]$AtStartup; Minutes = 0 }
}

function global:New-ScheduledTaskPrincipal {
    [CmdletBinding()]
    param([string]$UserId, [string]$LogonType, [string]$RunLevel)
    return [pscustomobject]@{ UserId = $UserId; LogonType = $LogonType; RunLevel = $RunLevel }
}

function global:Register-ScheduledTask {
    [CmdletBinding()]
    param([string]$TaskName, $Action, $Trigger, $Principal, [switch]$Force)
    Write-ShimCall 'Register-ScheduledTask' @{ TaskName = $TaskName; Argument = $Action.Argument }
    $state = Read-Shim
    $state.tasks[$TaskName] = @{
        Execute   = $Action.Execute
        Argument  = $Action.Argument
        AtStartup = $Trigger.AtStartup
        Minutes   = $Trigger.Minutes
        UserId    = $Principal.UserId
        RunLevel  = $Principal.RunLevel
    }
    Write-Shim $state
    return [pscustomobject]@{ TaskName = $TaskName }
}

function global:Unregister-ScheduledTask {
    [CmdletBinding(SupportsShouldProcess = $true)]
    param([string]$TaskName)
    Write-ShimCall 'Unregister-ScheduledTask' @{ TaskName = $TaskName }
    $state = Read-Shim
    if (-not (Test-Stubborn 'Unregister-ScheduledTask')) {
        $state.tasks.Remove($TaskName)
        Write-Shim $state
    }
}

function global:Restart-Computer {
    [CmdletBinding()]
    param([switch]$Force)
    Write-ShimCall 'Restart-Computer' $PSBoundParameters
}

# Host networking

function global:Get-ShimThings {
    param([string]$Kind)
    return @((Read-Shim).hns[$Kind] | ForEach-Object { [pscustomobject]$_ })
}

function global:Remove-ShimThing {
    param([string]$Kind, [string]$Id)
    Write-ShimCall "Remove-$Kind" @{ ID = $Id }
    $state = Read-Shim
    $state.hns[$Kind] = @($state.hns[$Kind] | Where-Object { $_.ID -ne $Id })
    Write-Shim $state
}

function global:Get-HnsNetwork { Get-ShimThings 'HnsNetwork' }
function global:Get-HnsEndpoint { Get-ShimThings 'HnsEndpoint' }
function global:Get-HnsPolicyList { Get-ShimThings 'HnsPolicyList' }
function global:Remove-HnsNetwork { process { Remove-ShimThing 'HnsNetwork' $_.ID } }
function global:Remove-HnsEndpoint { process { Remove-ShimThing 'HnsEndpoint' $_.ID } }
function global:Remove-HnsPolicyList { process { Remove-ShimThing 'HnsPolicyList' $_.ID } }

# Access rights: real objects of .NET, kept by path; what was never set inherits, as below C:\ of a new Windows.

$global:ShimInherited = 'O:BAG:SYD:AI(A;OICIID;FA;;;SY)(A;OICIID;FA;;;BA)(A;OICIID;0x1200a9;;;BU)(A;CIID;LC;;;BU)'

function global:Get-Acl {
    [CmdletBinding()]
    param([string]$LiteralPath)
    Write-ShimCall 'Get-Acl' $PSBoundParameters
    $security = New-Object System.Security.AccessControl.FileSecurity
    if ([IO.Directory]::Exists($LiteralPath)) {
        $security = New-Object System.Security.AccessControl.DirectorySecurity
    }
    elseif (-not [IO.File]::Exists($LiteralPath)) {
        throw "Cannot find path '$LiteralPath' because it does not exist."
    }
    $kept = (Read-Shim).rights
    $sddl = $global:ShimInherited
    if ($kept.ContainsKey($LiteralPath.ToLowerInvariant())) {
        $sddl = $kept[$LiteralPath.ToLowerInvariant()]
    }
    $security.SetSecurityDescriptorSddlForm($sddl)
    Add-Member -InputObject $security -NotePropertyName Sddl -NotePropertyValue $sddl
    return $security
}

function global:Set-Acl {
    [CmdletBinding()]
    param([string]$LiteralPath, $AclObject)
    $sections = [System.Security.AccessControl.AccessControlSections]'Access, Owner, Group'
    $sddl = $AclObject.GetSecurityDescriptorSddlForm($sections)
    $size = -1
    if ([IO.File]::Exists($LiteralPath)) {
        $size = (New-Object IO.FileInfo $LiteralPath).Length
    }
    Write-ShimCall 'Set-Acl' @{ LiteralPath = $LiteralPath; Sddl = $sddl; Size = $size }
    $state = Read-Shim
    if (-not (Test-Stubborn "Set-Acl $LiteralPath")) {
        $state.rights[$LiteralPath.ToLowerInvariant()] = $sddl
        Write-Shim $state
    }
}

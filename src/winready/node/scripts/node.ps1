<#
.SYNOPSIS
Makes this Windows machine a worker of a Kubernetes cluster, upgrades it, or takes it back.

.DESCRIPTION
  .\node.ps1 join -Token T -CaHash H -BundleDigest D    the line that 'winready node join-command' prints
  .\node.ps1 status [-Report FILE]                      how far this machine is, and what is wrong with it
  .\node.ps1 show -Report FILE                          what only a real Windows can show, as a report to send in
  .\node.ps1 upgrade -BundleDigest D                    from the folder of a newer bundle; 'winready node bundle' prints the line
  .\node.ps1 reset                                      back to how the machine was found
  .\node.ps1 rotate                                     cuts containerd's log when it is long; a task does so every hour

Every command may be run again; -WhatIf shows the steps and changes nothing. What it is told stands in node.json.
Exit codes: 0 done; 1 a step failed; 2 wrong input, nothing was changed; 3010 a reboot is needed, after which the command
goes on by itself.
#>
[CmdletBinding(SupportsShouldProcess = $true)]
param(
    [Parameter(Mandatory = $true, Position = 0)]
    [ValidateSet('join', 'reset', 'upgrade', 'status', 'show', 'rotate')]
    [string]$Command,

    # Bootstrap token; it is never logged. Without it and -TokenFile the command asks for it.
    [string]$Token = '',

    # When the token ends, such as 2026-01-31T12:30:00Z; a line that is too old is refused before anything is changed.
    [string]$TokenExpires = '',

    # A file that holds the token, instead of the command line.
    [string]$TokenFile = '',

    # Fingerprints of the cluster's certificate authority.
    [string[]]$CaHash = @(),

    # SHA-256 of SHA256SUMS; nothing of another bundle is run. An upgrade insists on it.
    [string]$BundleDigest = '',

    # Name of the node; the machine's own name by default.
    [string]$NodeName = '',

    # For status and show: also write what it found to this file, as JSON.
    [string]$Report = '',

    # For show: also try what can only be seen when it happens (ends the kubelet once, makes and removes a file).
    [switch]$Try,

    # Reboot when a reboot is needed, instead of only saying so.
    [switch]$Restart,

    # Used by the task that goes on after a reboot.
    [switch]$Resume
)

Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'

function Get-Sha256 {
    # The digest of a file, in small letters.
    param([string]$Path)
    $algorithm = [System.Security.Cryptography.SHA256]::Create()
    try {
        $stream = [System.IO.File]::Open($Path, 'Open', 'Read', 'Read')
        try {
            return [System.BitConverter]::ToString($algorithm.ComputeHash($stream)).Replace('-', '').ToLowerInvariant()
        }
        finally {
            $stream.Dispose()
        }
    }
    finally {
        $algorithm.Dispose()
    }
}

function Get-BundleProblem {
    # What is wrong with this bundle, or nothing: every file is listed, and has the digest that the list says.
    param([string]$Root, [string]$Digest)
    $list = [System.IO.Path]::Combine($Root, 'SHA256SUMS')
    if (-not [System.IO.File]::Exists($list)) {
        return 'there is no SHA256SUMS beside node.ps1'
    }
    if ($Digest -ne '' -and (Get-Sha256 $list) -ne $Digest.ToLowerInvariant()) {
        return 'its SHA256SUMS has another digest than -BundleDigest says: it is another bundle'
    }
    $listed = @{}
    foreach ($line in [System.IO.File]::ReadAllLines($list)) {
        $match = [regex]::Match($line, '^([0-9a-f]{64})  ([A-Za-z0-9][A-Za-z0-9._/-]*)$')
        if (-not $match.Success -or $line.Contains('..')) {
            return 'SHA256SUMS has a line that is no digest and file name'
        }
        $wanted = $match.Groups[1].Value
        $name = $match.Groups[2].Value
        $path = [System.IO.Path]::Combine($Root, $name.Replace('/', '\'))
        if (-not [System.IO.File]::Exists($path)) {
            return "$name is missing"
        }
        if ((Get-Sha256 $path) -ne $wanted) {
            return "$name is not the file that SHA256SUMS names"
        }
        $listed[$name] = $wanted
    }
    foreach ($name in @('node.ps1', 'node.json') + @($PartNames | ForEach-Object { "parts/$_.ps1" })) {
        if (-not $listed.ContainsKey($name)) {
            return "SHA256SUMS does not name $name"
        }
    }
    return ''
}

$PartNames = @(
    'log', 'programs', 'record', 'steps', 'access', 'folders', 'files', 'system', 'services', 'hns', 'containerd', 'kubelet',
    'server', 'checks', 'resume', 'join', 'reset', 'gone', 'upgrade', 'status', 'show'
)

$problem = Get-BundleProblem -Root $PSScriptRoot -Digest $BundleDigest
if ($problem -ne '') {
    Write-Host "error: this bundle cannot be used: $problem"
    Write-Host "       copy the folder that 'winready node bundle' wrote once more, whole"
    exit 2
}
foreach ($partName in $PartNames) {
    . ([System.IO.Path]::Combine($PSScriptRoot, 'parts', "$partName.ps1"))
}

$parametersText = [System.IO.File]::ReadAllText([System.IO.Path]::Combine($PSScriptRoot, 'node.json'))
$parameters = ConvertFrom-Json -InputObject $parametersText
$Node = @{
    Command    = $Command
    Parameters = $parameters
    Root       = $PSScriptRoot
    Paths      = $parameters.paths
    WhatIf     = [bool]$WhatIfPreference
    Secrets    = New-Object System.Collections.ArrayList
    Changed    = 0
    Reboot     = $false
    Early      = $false
    Name       = ''
    LogFile    = ''
}
# Steps decide by themselves what -WhatIf means; half of a step must not be left out by a cmdlet inside of it.
$WhatIfPreference = $false
$ConfirmPreference = 'None'

$code = 1
try {
    switch ($Command) {
        'join' {
            $given = @{ Token = $Token; TokenExpires = $TokenExpires; TokenFile = $TokenFile; CaHash = $CaHash; NodeName = $NodeName }
            $code = Invoke-Join @given -Resume:$Resume
        }
        'reset' { $code = Invoke-Reset }
        'upgrade' { $code = Invoke-Upgrade -BundleDigest $BundleDigest }
        'status' { $code = Invoke-Status -Report $Report }
        'show' { $code = Invoke-Show -Report $Report -Try:$Try }
        'rotate' { $code = Invoke-Rotate }
    }
}
catch {
    $code = Write-Failure -Problem $_
}
if (@($code)[-1] -eq 3010 -and $Restart -and -not $Node.WhatIf) {
    Write-Line 'rebooting now'
    Restart-Machine
}
# Whatever slipped into the output of a command, its last word is the code.
exit ([int]@($code)[-1])

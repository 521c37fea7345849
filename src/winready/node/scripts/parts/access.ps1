# Who may read and write our folders: by identifier, since names of groups are translated.

$AccessAdministrators = 'S-1-5-32-544'
$AccessSystem = 'S-1-5-18'
$AccessUsers = 'S-1-5-32-545'
$AccessCreator = 'S-1-3-0'

function Get-AccessWanted {
    # Identifier and right of everybody who may do something.
    param([string]$Kind)
    $wanted = @{}
    $wanted[$AccessAdministrators] = [System.Security.AccessControl.FileSystemRights]::FullControl
    $wanted[$AccessSystem] = [System.Security.AccessControl.FileSystemRights]::FullControl
    if ($Kind -eq 'programs' -or $Kind -eq 'parent') {
        $wanted[$AccessUsers] = [System.Security.AccessControl.FileSystemRights]::ReadAndExecute
    }
    if ($Kind -eq 'volumes') {
        # The accounts inside of containers are users to the host; without this no pod could read its volumes.
        $wanted[$AccessUsers] = [System.Security.AccessControl.FileSystemRights]'ReadAndExecute, Write'
        $wanted[$AccessCreator] = [System.Security.AccessControl.FileSystemRights]::FullControl
    }
    return $wanted
}

function Get-AccessInheritance {
    # Whether a right reaches what is made in a folder. Of a parent users see no more than the parent itself.
    param([string]$Path, [string]$Kind, [string]$Identifier)
    if (-not [System.IO.Directory]::Exists($Path) -or ($Kind -eq 'parent' -and $Identifier -eq $AccessUsers)) {
        return [System.Security.AccessControl.InheritanceFlags]::None
    }
    return [System.Security.AccessControl.InheritanceFlags]'ContainerInherit, ObjectInherit'
}

function Set-Access {
    # 'secret': administrators and the system; 'programs': users may also read and run; 'volumes': what pods mount;
    # 'parent': on the way to one of these, users may look and make nothing.
    param([string]$Path, [string]$Kind)
    $security = New-Object System.Security.AccessControl.FileSecurity
    if ([System.IO.Directory]::Exists($Path)) {
        $security = New-Object System.Security.AccessControl.DirectorySecurity
    }
    $security.SetAccessRuleProtection($true, $false)
    $security.SetOwner((New-Object System.Security.Principal.SecurityIdentifier $AccessAdministrators))
    $wanted = Get-AccessWanted $Kind
    foreach ($identifier in @($wanted.Keys | Sort-Object)) {
        $account = New-Object System.Security.Principal.SecurityIdentifier $identifier
        $inheritance = Get-AccessInheritance -Path $Path -Kind $Kind -Identifier $identifier
        $propagation = [System.Security.AccessControl.PropagationFlags]::None
        if ($identifier -eq $AccessCreator) {
            $propagation = [System.Security.AccessControl.PropagationFlags]::InheritOnly
        }
        $allow = [System.Security.AccessControl.AccessControlType]::Allow
        $rule = New-Object System.Security.AccessControl.FileSystemAccessRule $account, $wanted[$identifier], $inheritance, $propagation, $allow
        $security.AddAccessRule($rule)
    }
    Set-Acl -LiteralPath $Path -AclObject $security
    $problem = Get-AccessProblem -Path $Path -Kind $Kind
    if ($problem -ne '') {
        throw "the access rights of $Path could not be set: $problem"
    }
}

function Get-AccessProblem {
    # What the rights of a path allow that they should not, or the other way round; empty when they are right.
    param([string]$Path, [string]$Kind)
    $security = Get-Acl -LiteralPath $Path
    if (-not $security.AreAccessRulesProtected) {
        return 'it inherits rights from the folder above'
    }
    $wanted = Get-AccessWanted $Kind
    $seen = @{}
    # ReadAndExecute is granted together with Synchronize, whoever asks for it.
    $synchronize = [int][System.Security.AccessControl.FileSystemRights]::Synchronize
    foreach ($rule in $security.GetAccessRules($true, $true, [System.Security.Principal.SecurityIdentifier])) {
        $identifier = $rule.IdentityReference.Value
        if ($rule.AccessControlType -ne [System.Security.AccessControl.AccessControlType]::Allow) {
            return "it denies something to $identifier"
        }
        if (-not $wanted.ContainsKey($identifier)) {
            return "$identifier has rights"
        }
        $rights = [int]$rule.FileSystemRights -bor $synchronize
        if ($rights -ne ([int]$wanted[$identifier] -bor $synchronize)) {
            return "$identifier has other rights than $($wanted[$identifier])"
        }
        if ($rule.InheritanceFlags -ne (Get-AccessInheritance -Path $Path -Kind $Kind -Identifier $identifier)) {
            return "the rights of $identifier reach other things than they should"
        }
        $seen[$identifier] = $true
    }
    foreach ($identifier in $wanted.Keys) {
        if (-not $seen.ContainsKey($identifier)) {
            return "$identifier has no rights"
        }
    }
    return ''
}

function Write-Secret {
    # A file whose rights are set while it is still empty.
    param([string]$Path, [string]$Text)
    if ([System.IO.File]::Exists($Path)) {
        [System.IO.File]::Delete($Path)
    }
    [System.IO.File]::Create($Path).Dispose()
    Set-Access -Path $Path -Kind 'secret'
    [System.IO.File]::WriteAllText($Path, $Text, (New-Object System.Text.UTF8Encoding $false))
}

# Networks of the host networking service: what was there before, and what came with the cluster.

function Test-Hns {
    return ($null -ne (Get-Command -Name Get-HnsNetwork -ErrorAction SilentlyContinue))
}

function Get-HnsNames {
    # Names and types of the networks, for people.
    if (-not (Test-Hns)) {
        return @()
    }
    return @(Get-HnsNetwork | Where-Object { $null -ne $_ } | ForEach-Object { '{0} ({1})' -f $_.Name, $_.Type })
}

function Get-HnsIdentifiers {
    # Of networks, endpoints and policy lists, in capital letters; nothing without the service.
    if (-not (Test-Hns)) {
        return @()
    }
    $found = @(Get-HnsNetwork) + @(Get-HnsEndpoint) + @(Get-HnsPolicyList)
    return @($found | Where-Object { $null -ne $_ } | ForEach-Object { ([string]$_.ID).ToUpperInvariant() } | Sort-Object)
}

function Test-HnsForeign {
    # Whether it was there before us.
    param($Thing, [string[]]$Before)
    return ($Before -contains ([string]$Thing.ID).ToUpperInvariant())
}

function Remove-ClusterNetworks {
    # Policy lists and endpoints first, then networks; only what was not there before. What could not be removed, and why.
    param([string[]]$Before)
    $left = @()
    foreach ($list in @(Get-HnsPolicyList | Where-Object { $null -ne $_ -and -not (Test-HnsForeign $_ $Before) })) {
        try {
            [void]($list | Remove-HnsPolicyList)
        }
        catch {
            $left += "policy list $($list.ID): $($_.Exception.Message)"
        }
    }
    foreach ($endpoint in @(Get-HnsEndpoint | Where-Object { $null -ne $_ -and -not (Test-HnsForeign $_ $Before) })) {
        try {
            [void]($endpoint | Remove-HnsEndpoint)
        }
        catch {
            $left += "endpoint $($endpoint.Name): $($_.Exception.Message)"
        }
    }
    foreach ($network in @(Get-HnsNetwork | Where-Object { $null -ne $_ -and -not (Test-HnsForeign $_ $Before) })) {
        # The default network of the container feature comes with the feature, not with the cluster.
        if ([string]$network.Name -eq 'nat') {
            continue
        }
        try {
            [void]($network | Remove-HnsNetwork)
        }
        catch {
            $left += "network $($network.Name): $($_.Exception.Message)"
        }
    }
    return $left
}

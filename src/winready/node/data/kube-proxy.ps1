# Starts kube-proxy once the pod network is there. Its arguments stand in kube-proxy.args beside this file, one per line.
$ErrorActionPreference = 'Stop'
$folder = "$env:CONTAINER_SANDBOX_MOUNT_POINT\etc\winready-node"

if (-not (Test-Path $env:PROGRAM)) {
    Write-Host "There is no $env:PROGRAM on this node: run '.\node.ps1 join' or 'upgrade' from the bundle there."
    exit 1
}
$network = $null
for ($try = 1; $try -le 100; $try++) {
    $network = Get-HnsNetwork | Where-Object { $_.Name -eq $env:KUBE_NETWORK } | Select-Object -First 1
    if ($network) { break }
    Start-Sleep -Seconds 3
}
if (-not $network) {
    Write-Host "There is no HNS network $env:KUBE_NETWORK after 300 s: look at the pod network's pods on this node."
    exit 1
}
$arguments = @(Get-Content "$folder\kube-proxy.args") + "--hostname-override=$env:NODE_NAME"
$version = & $env:PROGRAM --version
if ("$version" -match 'v1\.(\d+)\.') {
    # Nodes of a cluster may have different versions. From 1.34 on these gates are locked, and one day unknown.
    if ((0 + $Matches[1]) -lt 34) { $arguments = $arguments + '--feature-gates=WinDSR=true,WinOverlay=true' }
}
if ($network.Type -eq 'Overlay') {
    $vip = ''
    if ($env:SOURCE_VIP -eq 'subnet') {
        # The second address of the node's pods: whoever writes the CNI configuration keeps it out of use.
        if ($network.Subnets[0].AddressPrefix -match '^(\d+\.\d+\.\d+)\.(\d+)/\d+$') {
            $vip = $Matches[1] + '.' + (2 + $Matches[2])
        }
    }
    else {
        $endpoint = Get-HnsEndpoint | Where-Object { $_.Name -eq "$($env:KUBE_NETWORK)_ep" } | Select-Object -First 1
        $vip = $endpoint.IPAddress
    }
    if (-not $vip) {
        Write-Host "The HNS network $env:KUBE_NETWORK is an overlay without an address for kube-proxy's own traffic."
        exit 1
    }
    $arguments = $arguments + "--source-vip=$vip"
}
Write-Host "$env:PROGRAM $arguments"
& $env:PROGRAM $arguments
exit $LASTEXITCODE

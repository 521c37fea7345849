# Keeps the second address of this node's pods out of use and writes the configuration of the CNI plug-ins, as soon as
# Flannel has its network. It stays, to write the file again when somebody removes or changes it.
$ErrorActionPreference = 'Stop'
$folder = "$env:CONTAINER_SANDBOX_MOUNT_POINT\etc\winready-node"
$target = "$env:CNI_CONFIGURATION\10-flannel.conf"
$wanted = @(Get-Content "$folder\cni-conf.json")
$missed = 0

while ($true) {
    $network = Get-HnsNetwork | Where-Object { $_.Name -eq $env:KUBE_NETWORK } | Select-Object -First 1
    if (-not $network) {
        $missed = $missed + 1
        if ($missed -ge 100) {
            Write-Host "There is no HNS network $env:KUBE_NETWORK after 300 s: look at the log of flanneld."
            exit 1
        }
        Start-Sleep -Seconds 3
        continue
    }
    $missed = 0
    $prefix = $network.Subnets[0].AddressPrefix
    if (-not ($prefix -match '^(\d+\.\d+\.\d+)\.(\d+)/\d+$')) {
        Write-Host "The HNS network $env:KUBE_NETWORK has no IPv4 subnet: '$prefix'."
        exit 1
    }
    $address = $Matches[1] + '.' + (2 + $Matches[2])
    $held = "C:\var\lib\cni\networks\$env:KUBE_NETWORK\$address"
    if (-not (Test-Path $held)) {
        # Pods on an L2 bridge have it as their gateway, kube-proxy on an overlay as its own source address.
        $env:CNI_COMMAND = 'ADD'
        $env:CNI_CONTAINERID = 'winready-node'
        $env:CNI_NETNS = 'none'
        $env:CNI_IFNAME = 'reserved'
        $env:CNI_PATH = $env:CNI_BINARIES
        $env:CNI_ARGS = "IP=$address"
        $request = '{"cniVersion":"0.3.1","name":"' + $env:KUBE_NETWORK + '","ipam":{"type":"host-local","subnet":"' + $prefix + '"}}'
        $answer = $request | & "$env:CNI_BINARIES\host-local.exe"
        if ($LASTEXITCODE -ne 0) {
            Write-Host "The address $address could not be kept out of use: $answer"
            exit 1
        }
    }
    $owner = @(Get-Content $held)[0]
    if ($owner -ne 'winready-node') {
        Write-Host "The address $address belongs to the container $owner already: drain the node and delete C:\var\lib\cni."
        exit 1
    }
    $there = @()
    if (Test-Path $target) { $there = @(Get-Content $target) }
    if ("$there" -ne "$wanted") {
        Set-Content -Path $target -Value $wanted -Encoding Ascii
        Write-Host "$target is written; $address is kept out of use."
    }
    Set-Content -Path "$env:CONTAINER_SANDBOX_MOUNT_POINT\ready" -Value $address -Encoding Ascii
    Start-Sleep -Seconds 60
}

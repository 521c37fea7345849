"""flanneld and host-local on a Windows node: the HNS network, the subnet file, and addresses kept in files."""

from __future__ import annotations

import ipaddress
import json
import re
from typing import Any

from winready_sandbox.machine.errors import FileError
from winready_sandbox.machine.process import Process
from winready_sandbox.machine.windows_host import HnsNetwork
from winready_sandbox.network.endpoint import NetworkError
from winready_sandbox.programs.agnhost.golang import klog
from winready_sandbox.programs.net import addresses, endpoint_of
from winready_sandbox.programs.node_agents import serve_health

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
SUBNET_FILE = "C:\\run\\flannel\\subnet.env"
LOWEST_VNI, ONLY_PORT = 4096, 4789
DIAL_SECONDS = 10.0
FLAGS = ("kube-subnet-mgr", "net-config-path", "iface", "healthz-port", "ip-masq")
_STORE = "C:\\var\\lib\\cni\\networks"


class Refusal(Exception):
    """Why flanneld does not start, in its own words."""


async def flanneld(process: Process) -> int:
    """Make the node's HNS network and keep it, as the subnet manager of Kubernetes tells."""
    try:
        given = _flags(process.argv[1:])
        await _reach_api(process)
        name, kind, network = _backend(process, given.get("net-config-path", "/etc/kube-flannel/net-conf.json"))
    except Refusal as refusal:
        klog(process, str(refusal), level="E", source="main.go:227")
        return 1
    node = endpoint_of(process).stack.node
    subnet = next(pool.network for pool in node.pools if pool.network.version == 4) if node else None
    if subnet is None:
        klog(process, "Failed to find any valid interface to use", level="E", source="main.go:189")
        return 1
    hns = process.container.machine.windows_host.hns
    for identifier, found in list(hns.networks.items()):
        if found.name == name and found.subnet != str(subnet):
            del hns.networks[identifier]
            klog(process, f"Deleted stale HostComputeNetwork {name}", source="device_windows.go:113")
    if not any(found.name == name for found in hns.networks.values()):
        hns.add(HnsNetwork(name, kind, str(subnet), str(subnet[1])))
        klog(process, f"Created HostComputeNetwork {name}", source="device_windows.go:145")
    process.files.mkdir(SUBNET_FILE.rpartition("\\")[0], parents=True)
    masquerade = str("ip-masq" in given).lower()
    text = f"FLANNEL_NETWORK={network}\nFLANNEL_SUBNET={subnet[1]}/{subnet.prefixlen}\n"
    process.files.write(SUBNET_FILE, f"{text}FLANNEL_MTU=1450\nFLANNEL_IPMASQ={masquerade}\n".encode())
    klog(process, f"Wrote subnet file to {SUBNET_FILE}", source="main.go:455")
    with serve_health(process, int(given.get("healthz-port") or 0)):
        await process.stop_requested.wait()
    return 0


def _flags(words: list[str]) -> dict[str, str]:
    found = {}
    for word in words:
        name, _, value = word.lstrip("-").partition("=")
        if name not in FLAGS:
            raise Refusal(f"flag provided but not defined: -{name}")
        found[name] = value
    return found


async def _reach_api(process: Process) -> None:
    """The API server must be reached by the address that the environment names, with the account's token."""
    if not process.files.exists(f"{ACCOUNT}/token", process.cwd):
        raise Refusal(f"Failed to create SubnetManager: fail to create kubernetes config: open {ACCOUNT}/token")
    host, port = process.env.get("KUBERNETES_SERVICE_HOST", ""), process.env.get("KUBERNETES_SERVICE_PORT", "0")
    try:
        (address, *_) = await addresses(process, host, timeout=DIAL_SECONDS)
        connection = await endpoint_of(process).connect(address, int(port), timeout=DIAL_SECONDS)
    except NetworkError as error:
        raise Refusal(f'Failed to create SubnetManager: Get "https://{host}:{port}/api": {error}') from None
    connection.close()


def _backend(process: Process, path: str) -> tuple[str, str, str]:
    """Name and type of the HNS network, and the range of all pods, from net-conf.json."""
    try:
        conf: dict[str, Any] = json.loads(process.files.read(path, process.cwd))
    except (FileError, ValueError) as error:
        raise Refusal(f"Failed to create SubnetManager: failed to read net conf: {error}") from None
    backend = conf.get("Backend") or {}
    match backend.get("Type"):
        case "vxlan":
            vni, port = backend.get("VNI", LOWEST_VNI), backend.get("Port", ONLY_PORT)
            if vni < LOWEST_VNI:
                detail = f"VNI [{vni}] must be greater than or equal to {LOWEST_VNI} on Windows"
                raise Refusal(f"invalid VXLAN backend config. {detail}")
            if port != ONLY_PORT:
                detail = f"Port [{port}] is not supported on Windows. Omit the setting to default to port {ONLY_PORT}"
                raise Refusal(f"invalid VXLAN backend config. {detail}")
            return backend.get("Name") or f"flannel.{vni}", "Overlay", str(conf.get("Network"))
        case "host-gw":
            return backend.get("Name") or "cbr0", "L2Bridge", str(conf.get("Network"))
    raise Refusal(f"Error creating backend: unknown backend type: {backend.get('Type')}")


async def host_local(process: Process) -> int:
    """Reserve the address that ``CNI_ARGS`` asks for: one file for each, with the container's name in it."""
    try:
        conf = json.loads((await process.stdin.read_all()).decode("utf-8-sig"))
        subnet = ipaddress.ip_network(conf["ipam"]["subnet"])
        wanted = re.search(r"(?:^|;)IP=([^;]+)", process.env.get("CNI_ARGS", ""))
        address = ipaddress.ip_address(wanted[1] if wanted else "")
    except (ValueError, KeyError):
        return _failed(process, 7, "failed to parse the network configuration")
    if process.env.get("CNI_COMMAND") != "ADD":
        return _failed(process, 4, f"unknown CNI_COMMAND: {process.env.get('CNI_COMMAND')}")
    if address not in subnet:
        return _failed(process, 999, f"{address} not in range set {subnet}")
    folder = f"{_STORE}\\{conf['name']}"
    process.files.mkdir(folder, parents=True)
    if process.files.exists(f"{folder}\\{address}"):
        return _failed(process, 999, f"requested IP address {address} is not available in range set {subnet}")
    owner = f"{process.env.get('CNI_CONTAINERID', '')}\r\n{process.env.get('CNI_IFNAME', '')}"
    process.files.write(f"{folder}\\{address}", owner.encode())
    ips = [{"version": "4", "address": f"{address}/{subnet.prefixlen}", "gateway": str(subnet[1])}]
    process.out(json.dumps({"cniVersion": conf.get("cniVersion"), "ips": ips, "dns": {}}, indent=4) + "\n")
    return 0


def _failed(process: Process, code: int, message: str) -> int:
    process.out(json.dumps({"code": code, "msg": message}) + "\n")
    return 1

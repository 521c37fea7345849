"""ipconfig, netstat, route."""

from __future__ import annotations

from winready_sandbox.machine.process import Process, Program
from winready_sandbox.network.pod_endpoint import NetworkEndpoint


def _endpoint(process: Process) -> NetworkEndpoint | None:
    endpoint = process.container.endpoint
    return endpoint if isinstance(endpoint, NetworkEndpoint) else None


def _row(name: str, value: str) -> str:
    return f"   {name}{' .' * ((36 - len(name)) // 2)} : {value}\r\n"


async def ipconfig(process: Process) -> int:
    """Addresses of this compartment."""
    words = [word.lower().replace("-", "/", 1) for word in process.argv[1:]]
    addresses = process.container.endpoint.addresses if process.container.endpoint else []
    endpoint = _endpoint(process)
    servers = list(endpoint.dns.nameservers) if endpoint else []
    suffixes = list(endpoint.dns.searches) if endpoint else []
    detailed = "/all" in words
    process.out("\r\nWindows IP Configuration\r\n\r\n")
    if detailed:
        process.out(_row("Host Name", process.container.hostname) + _row("Primary Dns Suffix ", ""))
        if suffixes:
            process.out(_row("DNS Suffix Search List", suffixes[0]))
            process.out("".join(f"{' ' * 39}{suffix}\r\n" for suffix in suffixes[1:]))
    name = "vEthernet (Ethernet)" if process.container.host_process else "vEthernet (eth0)"
    process.out(f"\r\nEthernet adapter {name}:\r\n\r\n")
    process.out(_row("Connection-specific DNS Suffix", suffixes[0] if suffixes else ""))
    if detailed:
        process.out(_row("Description", "Hyper-V Virtual Ethernet Adapter") + _row("DHCP Enabled", "No"))
    for address in addresses:
        process.out(_row("IPv6 Address" if ":" in address else "IPv4 Address", address))
        if ":" not in address:
            process.out(_row("Subnet Mask", "255.255.255.0"))
    gateway = f"{addresses[0].rpartition('.')[0]}.1" if addresses else ""
    process.out(_row("Default Gateway", gateway))
    if detailed and servers:
        process.out(_row("DNS Servers", servers[0]) + "".join(f"{' ' * 39}{server}\r\n" for server in servers[1:]))
    return 0


async def netstat(process: Process) -> int:
    """Listening ports and connections."""
    endpoint = _endpoint(process)
    process.out(
        "\r\nActive Connections\r\n\r\n  Proto  Local Address          Foreign Address        State           PID\r\n"
    )
    for protocol, address, port in sorted(endpoint.stack.ports if endpoint else []):
        local = f"{address or '0.0.0.0'}:{port}"
        state = "LISTENING" if protocol == "TCP" else ""
        remote = "0.0.0.0:0" if protocol == "TCP" else "*:*"
        process.out(f"  {protocol:<6} {local:<22} {remote:<22} {state:<15} {process.pid}\r\n")
    for connection in list(endpoint.stack.connections) if endpoint else []:
        local, remote = (":".join(str(part) for part in pair) for pair in (connection.local, connection.remote))
        process.out(f"  {'TCP':<6} {local:<22} {remote:<22} {'ESTABLISHED':<15} {process.pid}\r\n")
    return 0


async def route(process: Process) -> int:
    """The routing table."""
    words = [word.lower() for word in process.argv[1:]]
    if "print" not in words:
        process.err("The requested operation requires elevation.\r\n")
        return 1
    rule = "=" * 75
    process.out(f"{rule}\r\nIPv4 Route Table\r\n{rule}\r\nActive Routes:\r\n")
    process.out("Network Destination        Netmask          Gateway       Interface  Metric\r\n")
    for address in process.container.endpoint.addresses if process.container.endpoint else []:
        if ":" not in address:
            gateway = f"{address.rpartition('.')[0]}.1"
            process.out(f"{'0.0.0.0':>17}{'0.0.0.0':>17}{gateway:>17}{address:>16}{256:>7}\r\n")
            process.out(f"{address:>17}{'255.255.255.255':>17}{'On-link':>17}{address:>16}{256:>7}\r\n")
    process.out(f"{'127.0.0.0':>17}{'255.0.0.0':>17}{'On-link':>17}{'127.0.0.1':>16}{331:>7}\r\n{rule}\r\n")
    return 0


PROGRAMS: dict[str, Program] = {"ipconfig.exe": ipconfig, "netstat.exe": netstat, "route.exe": route}

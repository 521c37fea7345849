"""Cmdlets on addresses, connections and names."""

from __future__ import annotations

from winready_sandbox.network.endpoint import NetworkError
from winready_sandbox.programs.powershell.binding import Cmdlet, Invocation
from winready_sandbox.programs.powershell.values import PSObject, to_number, to_text


def _addresses(call: Invocation) -> list[str]:
    endpoint = call.session.process.container.endpoint
    return list(endpoint.addresses) if endpoint else []


async def get_net_ip_address(call: Invocation) -> None:
    """Addresses of this compartment."""
    family = call.text("AddressFamily").lower()
    for address in [*_addresses(call), "127.0.0.1"]:
        kind = "IPv6" if ":" in address else "IPv4"
        if family and family != kind.lower():
            continue
        values = {
            "IPAddress": address,
            "InterfaceIndex": 1 if address.startswith("127.") else 9,
            "InterfaceAlias": "Loopback Pseudo-Interface 1" if address.startswith("127.") else "Ethernet",
            "AddressFamily": kind,
            "PrefixLength": 8 if address.startswith("127.") else 24,
        }
        call.emit(PSObject("MSFT_NetIPAddress", values))


async def get_net_adapter(call: Invocation) -> None:
    """Network adapters."""
    values = {
        "Name": "Ethernet",
        "InterfaceDescription": "Hyper-V Virtual Ethernet Adapter",
        "ifIndex": 9,
        "Status": "Up",
    }
    call.emit(PSObject("MSFT_NetAdapter", values))


async def get_net_route(call: Invocation) -> None:
    """Routes."""
    values = {"ifIndex": 9, "DestinationPrefix": "0.0.0.0/0", "NextHop": "169.254.1.1", "RouteMetric": 0}
    call.emit(PSObject("MSFT_NetRoute", values))


async def test_net_connection(call: Invocation) -> None:
    """Can a port be reached?"""
    endpoint = call.session.process.container.endpoint
    name, port = call.text("ComputerName"), int(to_number(call.get("Port", 0)))
    address, open_ = "", False
    try:
        if endpoint is not None:
            found = [name] if name.replace(".", "").isdigit() or ":" in name else await endpoint.resolve(name)
            address = found[0] if found else ""
            if port:
                connection = await endpoint.connect(address, port, timeout=10)
                connection.close()
            else:
                await endpoint.ping(address, timeout=4)
            open_ = True
    except NetworkError:
        open_ = False
    if call.text("InformationLevel").lower() == "quiet":
        call.emit(open_)
        return
    values = {
        "ComputerName": name,
        "RemoteAddress": address,
        "RemotePort": port,
        "TcpTestSucceeded" if port else "PingSucceeded": open_,
    }
    call.emit(PSObject("TestNetConnectionResult", values))


async def resolve_dns_name(call: Invocation) -> None:
    """Ask DNS."""
    endpoint = call.session.process.container.endpoint
    name = call.text("Name")
    try:
        addresses = await endpoint.resolve(name) if endpoint else []
    except NetworkError:
        addresses = []
    if not addresses:
        call.error(f"{name} : DNS name does not exist", "DNS_ERROR_RCODE_NAME_ERROR", "ResourceUnavailable")
    for address in addresses:
        values = {"Name": name, "Type": "AAAA" if ":" in address else "A", "TTL": 30, "IPAddress": address}
        call.emit(
            PSObject(
                "Microsoft.DnsClient.Commands.DnsRecord",
                {**values, "Section": "Answer"},
                shown=("Name", "Type", "TTL", "IPAddress"),
            )
        )


async def test_connection(call: Invocation) -> None:
    """Ping."""
    endpoint = call.session.process.container.endpoint
    name = call.text("ComputerName")
    replies = 0
    for _ in range(int(to_number(call.get("Count", 4)))):
        try:
            if endpoint is not None:
                target = [name] if name.replace(".", "").isdigit() else await endpoint.resolve(name)
                await endpoint.ping(target[0], timeout=4)
                replies += 1
        except NetworkError:
            continue
    if call.on("Quiet"):
        call.emit(replies > 0)
    elif not replies:
        call.error(
            f"Testing connection to computer '{name}' failed: Error due to lack of resources",
            "TestConnectionException",
            "ResourceUnavailable",
        )
    else:
        call.emit(PSObject("Win32_PingStatus", {"Address": name, "StatusCode": 0, "Replies": replies}))


async def get_dns_server(call: Invocation) -> None:
    """Name servers of this compartment."""
    servers = getattr(call.session.process.container.endpoint, "nameservers", [])
    values = {
        "InterfaceAlias": "Ethernet",
        "InterfaceIndex": 9,
        "AddressFamily": 2,
        "ServerAddresses": [to_text(each) for each in servers],
    }
    call.emit(PSObject("DnsClientServerAddress", values))


CMDLETS = [
    Cmdlet(
        "Get-NetIPAddress",
        get_net_ip_address,
        ("IPAddress",),
        (),
        ("AddressFamily", "InterfaceAlias", "InterfaceIndex"),
        desktop_only=True,
    ),
    Cmdlet("Get-NetAdapter", get_net_adapter, ("Name",), desktop_only=True),
    Cmdlet("Get-NetRoute", get_net_route, ("DestinationPrefix",), (), ("AddressFamily",), desktop_only=True),
    Cmdlet(
        "Test-NetConnection",
        test_net_connection,
        ("ComputerName",),
        (),
        ("Port", "InformationLevel"),
        desktop_only=True,
    ),
    Cmdlet(
        "Resolve-DnsName",
        resolve_dns_name,
        ("Name", "Type"),
        ("DnsOnly", "NoHostsFile"),
        ("Server",),
        desktop_only=True,
    ),
    Cmdlet(
        "Test-Connection",
        test_connection,
        ("ComputerName",),
        ("Quiet",),
        ("Count",),
        aliases={"targetname": "computername"},
    ),
    Cmdlet(
        "Get-DnsClientServerAddress", get_dns_server, ("InterfaceAlias",), (), ("AddressFamily",), desktop_only=True
    ),
]

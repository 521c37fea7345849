"""`agnhost connect`: one attempt, and a word that says how it ended."""

from __future__ import annotations

from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import NetworkError, Refused, TimedOut
from winready_sandbox.network.pod_endpoint import NetworkEndpoint
from winready_sandbox.programs.agnhost import cobra, golang
from winready_sandbox.programs.net import addresses, endpoint_of, join_host_port

FLAGS: cobra.Known = {"timeout": ("duration", 0.0), "protocol": ("string", "tcp")}
SERVICES = {"http": 80, "https": 443, "domain": 53, "ssh": 22}


async def main(process: Process, flags: cobra.Flags) -> int:
    """Connect once."""
    protocol, timeout = flags.text("protocol") or "tcp", flags.seconds("timeout")
    if protocol not in ("tcp", "udp"):
        process.err(f"Unsupported protocol\n{protocol}")
        return 1
    target = flags.arguments[0]
    host, colon, port_text = _split(target)
    if not colon:
        label = "UNKNOWN" if protocol == "tcp" else "DNS"
        process.err(f"{label}: address {target}: missing port in address\n")
        return 1
    port = SERVICES.get(port_text, int(port_text) if port_text.isdigit() else -1)
    if not 0 <= port < 65536:
        numeric = port_text.isdigit()
        wrong = f"address {port_text}: invalid port" if numeric else f"lookup {protocol}/{port_text}: unknown port"
        process.err(f"DNS: {wrong}\n")
        return 1
    try:
        found = (await addresses(process, host or "127.0.0.1"))[0]
    except NetworkError as error:
        process.err(f"DNS: {golang.lookup_error(process, error, host)}\n")
        return 1
    endpoint = endpoint_of(process)
    return await (_udp if protocol == "udp" else _tcp)(process, endpoint, found, port, timeout)


def _split(target: str) -> tuple[str, str, str]:
    host, colon, port = target.rpartition(":")
    if host.count(":") and not host.startswith("["):
        return "", "", ""
    return host.strip("[]"), colon, port


async def _tcp(process: Process, endpoint: NetworkEndpoint, address: str, port: int, timeout: float) -> int:
    try:
        connection = await endpoint.connect(address, port, timeout=timeout)
    except TimedOut:
        process.err("TIMEOUT\n")
    except Refused as error:
        # Fact 1.2: Go's ECONNREFUSED on Windows is an invented value, so a refusal never shows as REFUSED there.
        text = f"OTHER: {golang.dial_error(process, error, address, port)}" if process.windows else "REFUSED"
        process.err(text + "\n")
    except NetworkError as error:
        process.err(f"OTHER: {golang.dial_error(process, error, address, port)}\n")
    else:
        connection.close()
        return 0
    return 1


async def _udp(process: Process, endpoint: NetworkEndpoint, address: str, port: int, timeout: float) -> int:
    try:
        await endpoint.exchange(address, port, b"hostname\n", timeout=timeout)
    except NetworkError as error:
        local = join_host_port(next(iter(endpoint.addresses), ""), 50000)
        text = golang.read_error(process, error, local, join_host_port(address, port))
        word = "TIMEOUT" if isinstance(error, TimedOut) else "UNKNOWN" if process.windows else "REFUSED"
        process.err(f"{word}: {text}\n")
        return 1
    return 0

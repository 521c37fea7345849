"""How a Go program logs and words network errors on each OS; agnhost's callers read these texts."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from winready_sandbox.clock import monotonic, utc_now, wall_time
from winready_sandbox.machine.errors import FileError
from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import AddressInUse, DnsFailure, NetworkError, NoSuchName, Refused, TimedOut
from winready_sandbox.programs.net import endpoint_of, join_host_port

_JSON = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def klog(process: Process, message: str, *, level: str = "I", source: str = "log.go:244") -> None:
    """One line of log on standard error."""
    now = utc_now().isoformat(" ", "microseconds")
    # "2026-01-02 03:04:05.000006+00:00": taking it apart is much cheaper than strftime, and logs are long.
    process.err(f"{level}{now[5:7]}{now[8:26]} {process.pid:7d} {source}] {message.rstrip()}\n")


def fatal(process: Process, message: str) -> int:
    """Log a last line and end with code 1."""
    klog(process, message)
    return 1


def go_json(value: object) -> str:
    """JSON as Go marshals it: compact, and with the characters of HTML escaped."""
    text = _JSON.encode(value)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def now_text() -> str:
    """A time as Go prints it, with its monotonic part."""
    now = int(wall_time() * 1e9)
    stamp = datetime.fromtimestamp(now // 10**9, UTC)
    return f"{stamp:%Y-%m-%d %H:%M:%S}.{now % 10**9:09d} +0000 UTC m=+{monotonic():.9f}"


def dial_error(process: Process, error: NetworkError, address: str, port: int, network: str = "tcp") -> str:
    """The text of a failed dial to an address."""
    return f"dial {network} {join_host_port(address, port)}: {_cause(process, error)}"


def _cause(process: Process, error: NetworkError) -> str:
    if process.windows:
        if isinstance(error, Refused):
            return "connectex: No connection could be made because the target machine actively refused it."
        if isinstance(error, TimedOut):
            if not error.gave_up:
                return "i/o timeout"
            return (
                "connectex: A connection attempt failed because the connected party did not properly respond after a "
                "period of time, or established connection failed because connected host has failed to respond."
            )
        return "connectex: A socket operation was attempted to an unreachable network."
    if isinstance(error, Refused):
        return "connect: connection refused"
    if isinstance(error, TimedOut):
        return "connect: connection timed out" if error.gave_up else "i/o timeout"
    return "connect: no route to host"


def read_error(process: Process, error: NetworkError, local: str, remote: str, network: str = "udp") -> str:
    """The text of a failed read."""
    if isinstance(error, TimedOut):
        cause = "i/o timeout"
    elif process.windows:
        cause = "wsarecv: An existing connection was forcibly closed by the remote host."
    else:
        cause = "read: connection refused"
    return f"read {network} {local}->{remote}: {cause}"


def lookup_error(process: Process, error: NetworkError, name: str) -> str:
    """The text of a failed name lookup."""
    if process.windows:
        if isinstance(error, DnsFailure):
            return (
                f"lookup {name}: getaddrinfow: This is usually a temporary error during hostname resolution and means "
                "that the local server did not receive a response from an authoritative server."
            )
        return f"lookup {name}: no such host"
    server = next(iter(endpoint_of(process).dns.nameservers), "127.0.0.1")
    if isinstance(error, NoSuchName):
        return f"lookup {name} on {server}:53: no such host"
    local = next(iter(endpoint_of(process).addresses), "127.0.0.1")
    return f"lookup {name} on {server}:53: read udp {local}:40000->{server}:53: i/o timeout"


def listen_error(process: Process, error: NetworkError, port: int) -> str:
    """The text of a port that cannot be opened."""
    if not isinstance(error, AddressInUse):
        return f"listen tcp :{port}: {error}"
    if process.windows:
        text = "Only one usage of each socket address (protocol/network address/port) is normally permitted."
        return f"listen tcp :{port}: bind: {text}"
    return f"listen tcp :{port}: bind: address already in use"


def open_error(process: Process, path: str, error: FileError) -> str:
    """The text of a file that cannot be opened."""
    text = error.text(process.container.os)
    return f"open {path}: {text if process.windows else text.lower()}"

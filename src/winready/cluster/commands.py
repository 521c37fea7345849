"""Commands as each OS wants them: argv without a shell, so that no quoting is left to go wrong.

Windows joins argv into one line and splits it again; only ``cmd`` built-ins go through ``cmd``, and
never with inner quotes, which it does not understand.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlencode

from winready.cluster.timing import TABLE

Os = Literal["windows", "linux"]
NETEXEC_HTTP, NETEXEC_UDP = 8080, 8081
DIAL_MOST = 10
_VERSION = re.compile(r"\[Version (\d+\.\d+\.\d+)(?:\.\d+)?\]")


def fetch(os: Os, url: str, *, max_time: float = TABLE.answer) -> list[str]:
    """GET a URL with a new connection. ``-g`` keeps IPv6 brackets alone."""
    program = "curl.exe" if os == "windows" else "curl"
    limits = ["--connect-timeout", f"{TABLE.connect:g}", "--max-time", f"{max_time:g}"]
    return [program, "-g", "-s", "-S", *limits, url]


def dial(os: Os, host: str, port: int, tries: int, *, protocol: Literal["http", "udp"] = "http") -> list[str]:
    """Let the pod's own netexec open ``tries`` new connections and collect who answered."""
    query = urlencode({"host": host, "port": port, "protocol": protocol, "request": "hostname", "tries": tries})
    url = f"http://127.0.0.1:{NETEXEC_HTTP}/dial?{query}"
    return fetch(os, url, max_time=dial_seconds(tries))


def dial_seconds(tries: int) -> float:
    """How long a dial may take in the worst case."""
    return TABLE.dial_try * tries + 10


def connect(address: str) -> list[str]:
    """Open one TCP connection to ``host:port``; the same on both systems, since agnhost has no ``.exe``."""
    return ["/agnhost", "connect", f"--timeout={TABLE.tcp_connect:g}s", address]


def system_version(os: Os) -> list[str]:
    """Make a container say what it is."""
    return ["cmd", "/c", "ver"] if os == "windows" else ["uname", "-s"]


def windows_build(output: str) -> str:
    """The build in what ``ver`` prints, such as ``10.0.20348``; empty when it is not Windows that answered."""
    match = _VERSION.search(output)
    return match[1] if match else ""


def lines(output: bytes) -> list[str]:
    """Output as stripped lines, whatever the line ends."""
    return [line.strip() for line in output.decode("utf-8", errors="replace").splitlines() if line.strip()]


@dataclass
class Dialled:
    """What came of a dial."""

    answers: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    understood: bool = True
    """netexec leaves the answers out when the last try failed; then nothing is known about the others."""


def read_dial(output: bytes) -> Dialled:
    """Read netexec's answer to a dial."""
    try:
        document = json.loads(output)
    except ValueError:
        return Dialled(errors=[output[:200].decode(errors="replace")], understood=False)
    answers = [str(item) for item in document.get("responses") or []]
    errors = [str(item) for item in document.get("errors") or []]
    return Dialled(answers, errors, understood="responses" in document)


def name_error(stderr: bytes) -> bool:
    """Whether ``agnhost connect`` failed because the name was not resolved."""
    return any(line.startswith("DNS:") for line in lines(stderr))

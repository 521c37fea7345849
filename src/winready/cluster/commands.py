"""Commands as each OS wants them: argv without a shell, so that no quoting is left to go wrong.

Windows joins argv into one line and splits it again; only ``cmd`` built-ins go through ``cmd``, and
never with inner quotes, which it does not understand.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlencode

from winready.cluster.timing import TABLE

Os = Literal["windows", "linux"]
NETEXEC_HTTP, NETEXEC_UDP = 8080, 8081
DIAL_MOST = 10
MEMORY_BLOCK = 8 * 2**20


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


def read_file(os: Os, path: str) -> list[str]:
    """Print a file."""
    return ["cmd", "/c", "type", path] if os == "windows" else ["cat", path]


def write_file(os: Os, path: str, text: str, *, append: bool = False) -> list[str]:
    """Write one line. The text must end in a letter: ``cmd`` reads a digit before ``>`` as a file handle."""
    if not text or not text[-1].isalpha():
        raise ValueError(f"{text!r} does not end in a letter")
    line = f"echo {text}{'>>' if append else '>'}{path}"
    return ["cmd", "/c", line] if os == "windows" else ["sh", "-c", line]


def make_folder(path: str) -> list[str]:
    """Make a folder on a Windows node, with those above it; one that is there already is as good."""
    return ["cmd", "/c", "mkdir", path]


def remove_folder(path: str) -> list[str]:
    """Remove a folder of a Windows node with all that is in it."""
    return ["cmd", "/c", "rmdir", "/s", "/q", path]


def powershell(script: str) -> list[str]:
    """A PowerShell script; only single quotes may be in it."""
    return ["powershell.exe", "-NoProfile", "-NonInteractive", "-Command", script]


def burn_cpu() -> list[str]:
    """Ask for a whole core, for ever."""
    return powershell("while ($true) {}")


def fill_memory(blocks: int, hold_seconds: float) -> list[str]:
    """Take blocks of memory until there are enough or Windows refuses, say how many it were, and keep them a while."""
    script = (
        f"$all = @(); $n = 0; try {{ while ($n -lt {blocks}) {{ $all += ,(New-Object byte[] {MEMORY_BLOCK}); $n++ }} "
        f"}} catch {{ }}; Write-Output ('blocks=' + $n); Start-Sleep -Seconds {hold_seconds:g}; exit 0"
    )
    return powershell(script)


def read_blocks(output: bytes) -> int | None:
    """How many blocks `fill_memory` got; None when it did not get to say so."""
    found = [line for line in lines(output) if line.startswith("blocks=")]
    return int(found[0].removeprefix("blocks=")) if found and found[0][7:].isdigit() else None


def restart_computer(delay_seconds: float) -> list[str]:
    """Restart a Windows node from a HostProcess container, after a delay in which that container can end."""
    return ["shutdown.exe", "/r", "/t", f"{delay_seconds:g}"]


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

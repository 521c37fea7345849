"""Commands as each OS wants them: argv without a shell, so that no quoting is left to go wrong.

Windows joins argv into one line and splits it again; only ``cmd`` built-ins go through ``cmd``, and
never with inner quotes, which it does not understand.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import urlencode

from winready.cluster.timing import TABLE

Os = Literal["windows", "linux"]
NETEXEC_HTTP, NETEXEC_UDP = 8080, 8081
DIAL_MOST = 10
BODY = 4000
"""Bytes of a large body: more than one packet of any usual size, and little enough for a line of arguments."""
DATAGRAM = 1340
"""Bytes of a large datagram: with its headers one packet of the pod networks in use, and more than most of them carry
when an overlay is not reckoned with. Larger ones come in pieces, which Windows does not pass on everywhere."""
MEMORY_BLOCK = 8 * 2**20
LONGEST_COUNT = 9
"""Digits of a number that something can be counted by."""
SHOWN = "#winready "
"""Begins the line above each file that `show_files` prints; no file of ours has such a line."""


def fetch(os: Os, url: str, *, max_time: float = TABLE.answer) -> list[str]:
    """GET a URL with a new connection. ``-g`` keeps IPv6 brackets alone."""
    program = "curl.exe" if os == "windows" else "curl"
    limits = ["--connect-timeout", f"{TABLE.connect:g}", "--max-time", f"{max_time:g}"]
    return [program, "-g", "-s", "-S", *limits, url]


def fetch_all(os: Os, urls: Sequence[str], *, max_time: float = TABLE.answer) -> list[str]:
    """GET several URLs by one command, one after the other; each prints a line, which is empty without an answer."""
    return [*fetch(os, urls[0], max_time=max_time)[:-1], "-w", "\\n", *urls]


@dataclass(frozen=True)
class Ask:
    """So many tries at one port, each on a connection of its own, or each a datagram."""

    host: str
    port: int
    tries: int = 1
    protocol: Literal["http", "udp"] = "http"
    body: int = 0
    """Bytes to send and to get back; without them the server says its name."""
    back: bool = True
    """False: they are only sent, and the server says its name."""
    request: str = ""
    """What is asked instead, if that is anything else."""

    @property
    def one(self) -> Ask:
        """The same question, put once."""
        return self if self.tries == 1 else replace(self, tries=1)

    @property
    def text(self) -> str:
        """What is sent and must come back."""
        return "x" * self.body

    @property
    def url(self) -> str:
        """How the pod's own netexec is told to ask."""
        echo = "echo " if self.protocol == "udp" else "echo?msg="
        request = self.request or ("hostname" if not self.body else echo if self.back else "hostname?pad=")
        query = {"host": self.host, "port": self.port, "protocol": self.protocol, "tries": self.tries}
        return f"http://127.0.0.1:{NETEXEC_HTTP}/dial?{urlencode({**query, 'request': request})}{self.text}"


PAUSE = Ask("127.0.0.1", NETEXEC_UDP, protocol="udp", request="pause")
"""netexec does not answer datagrams that it does not know, and waits for the answer: `TABLE.dial_try` seconds pass."""


def dial(os: Os, host: str, port: int, tries: int, *, protocol: Literal["http", "udp"] = "http") -> list[str]:
    """Let the pod's own netexec open ``tries`` new connections and collect who answered."""
    return dial_all(os, [Ask(host, port, tries, protocol)])


def dial_all(os: Os, asks: Sequence[Ask]) -> list[str]:
    """Several dials by one command, one after the other; each prints a line."""
    return fetch_all(os, [ask.url for ask in asks], max_time=max(dial_seconds(ask.tries) for ask in asks))


KEPT_TRIES = 2
KEPT_PAUSE = KEPT_TRIES * TABLE.dial_try
"""Cluster seconds between two uses of one connection: Windows forgets one that is idle for minutes, and may."""


def keep(os: Os, url: str, uses: int) -> list[str]:
    """GET a URL so many times over one connection, with a pause after each; see `read_kept`.

    curl uses a connection again for the next URL at the same place, and opens a new one where it has ended; each line
    says how many were opened for it.
    """
    urls = [url, replace(PAUSE, tries=KEPT_TRIES).url] * uses
    return [*fetch(os, urls[0], max_time=dial_seconds(KEPT_TRIES))[:-1], "-w", "#%{num_connects}\\n", *urls[:-1]]


@dataclass(frozen=True)
class Use:
    """One use of a connection that is kept."""

    answer: str
    connects: int
    """New connections that it took."""


def _counts(text: str) -> bool:
    """Whether a program wrote a number here that something can be counted by."""
    return text.isdecimal() and len(text) <= LONGEST_COUNT


def read_kept(output: bytes, uses: int) -> list[Use]:
    """Read what `keep` printed; empty when there are not as many lines, and nothing is known."""
    found = [line.rpartition("#") for line in lines(output)]
    if len(found) != 2 * uses - 1 or not all(_counts(count) for _, _, count in found):
        return []
    return [Use(answer, int(count)) for answer, _, count in found[::2]]


def without_padding(texts: list[str]) -> list[str]:
    """Words as evidence keeps them: how many bytes a body had says as much as all of them."""
    for size in (BODY, DATAGRAM):
        texts = [text.replace("x" * size, f"({size}-bytes)") for text in texts]
    return texts


def dial_seconds(tries: int) -> float:
    """How long a dial may take in the worst case."""
    return TABLE.dial_try * tries + 10


def connect(address: str, *, seconds: float = TABLE.tcp_connect) -> list[str]:
    """Open one TCP connection to ``host:port``; the same on both systems, since agnhost has no ``.exe``."""
    return ["/agnhost", "connect", f"--timeout={seconds:g}s", address]


def system_version(os: Os) -> list[str]:
    """Make a container say what it is."""
    return ["cmd", "/c", "ver"] if os == "windows" else ["uname", "-s"]


def read_file(os: Os, path: str) -> list[str]:
    """Print a file."""
    return ["cmd", "/c", "type", path] if os == "windows" else ["cat", path]


def show_files(paths: Sequence[str]) -> list[str]:
    """Print several files of a Windows container in one command, each below its name; see `read_shown`."""
    return ["cmd", "/c", "&".join(f"echo.&echo {SHOWN}{path}&type {path}" for path in paths)]


def read_shown(output: bytes) -> dict[str, list[str]]:
    """The lines of each file that `show_files` printed; none for one that is empty or not there."""
    files: dict[str, list[str]] = {}
    found: list[str] = []
    for line in lines(output):
        if line.startswith(SHOWN):
            found = files.setdefault(line.removeprefix(SHOWN), [])
        else:
            found.append(line)
    return files


def write_lines(path: str, text: str, count: int) -> list[str]:
    """Write a file of many numbered lines in a Windows container: ``1 text``, ``2 text`` and so on."""
    return ["cmd", "/c", f"(for /l %i in (1,1,{count}) do @echo %i {text})>{path}"]


def numbered(text: str, count: int) -> list[str]:
    """The lines that `write_lines` writes."""
    return [f"{number} {text}" for number in range(1, count + 1)]


def list_folder(path: str) -> list[str]:
    """Print the names in a folder; nothing when it is empty or not there."""
    return ["cmd", "/c", "dir", "/b", path]


def hash_files(paths: Sequence[str]) -> list[str]:
    """Print the SHA-256 of files of a Windows container, one in a line: the way to compare what is no text."""
    return powershell("; ".join(f"(Get-FileHash '{path}').Hash" for path in paths))


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


BURN = "while ($true) {}"
"""Asks for a whole core, for ever."""


def burn_cpu(until: str) -> list[str]:
    """Ask for a whole core until there is a file of that name."""
    return powershell(f"while (!(Test-Path '{until}')) {{}}; exit 0")


def fill_memory(blocks: int, rounds: int, pause_seconds: float) -> list[str]:
    """Take blocks of memory until there are enough or Windows refuses, say how many there are, and try again later."""
    take = f"while ($n -lt {blocks}) {{ $all += ,(New-Object byte[] {MEMORY_BLOCK}); $n++ }}"
    once = f"try {{ {take} }} catch {{ }}; Write-Output ('blocks=' + $n); Start-Sleep -Seconds {pause_seconds:g}; $r++"
    return powershell(f"$all = @(); $n = 0; $r = 0; while ($r -lt {rounds}) {{ {once} }}; exit 0")


def read_blocks(output: bytes) -> list[int]:
    """How many blocks `fill_memory` had after each round."""
    found = [line.removeprefix("blocks=") for line in lines(output) if line.startswith("blocks=")]
    return [int(count) for count in found if _counts(count)]


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
    """netexec leaves the answers out when the last try failed; then nobody knows who gave the others."""
    tried: bool = True
    """False when it said why it does not even try."""


def read_dials(output: bytes, asks: Sequence[Ask]) -> list[Dialled]:
    """Read netexec's answers to several dials; empty when there are not as many, and nothing is known."""
    found = lines(output)
    if len(found) != len(asks):
        return []
    return [_counted(read_dial(line.encode()), ask) for line, ask in zip(found, asks, strict=True)]


def _counted(dialled: Dialled, ask: Ask) -> Dialled:
    """What netexec refused to try, such as a name that it could not look up, has failed as often as it was asked."""
    return dialled if dialled.tried else replace(dialled, errors=dialled.errors * ask.tries)


def read_dial(output: bytes) -> Dialled:
    """Read netexec's answer to a dial."""
    try:
        document = json.loads(output)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        return Dialled(errors=[output[:200].decode(errors="replace")], understood=False, tried=False)
    answers = [str(item) for item in document.get("responses") or []]
    errors = without_padding([str(item) for item in document.get("errors") or []])
    return Dialled(answers, errors, understood="responses" in document)


def name_error(stderr: bytes) -> bool:
    """Whether ``agnhost connect`` failed because the name was not resolved."""
    return any(line.startswith("DNS:") for line in lines(stderr))


def dig(names: Sequence[str], *, server: str = "", tries: int = 0, seconds: float = TABLE.question) -> list[str]:
    """Ask a nameserver for complete names, past every cache; ``tries``: how often, 0 leaves it to dig."""
    command = ["dig", *([f"@{server}"] if server else []), "+noall", "+comments", "+answer"]
    command += [f"+tries={tries}", f"+time={seconds:g}"] if tries else []
    return [*command, *(f"{name.rstrip('.')}." for name in names)]


@dataclass
class Reply:
    """What came of one question to a nameserver."""

    status: str = ""
    """``NOERROR``, ``NXDOMAIN``, ``SERVFAIL``...; empty when nobody answered."""
    addresses: list[str] = field(default_factory=list)
    ttl: int = 0


def read_replies(output: bytes) -> list[Reply]:
    """Read what dig printed, question by question."""
    replies: list[Reply] = []
    for line in lines(output):
        words = line.split()
        if "no servers could be reached" in line:
            replies.append(Reply())
        elif "->>HEADER<<-" in line and "status:" in words:
            replies.append(Reply(words[words.index("status:") + 1].rstrip(",")))
        elif replies and len(words) == 5 and words[2] == "IN" and words[3] in ("A", "AAAA") and _counts(words[1]):
            replies[-1].addresses.append(words[4])
            replies[-1].ttl = int(words[1])
    return replies

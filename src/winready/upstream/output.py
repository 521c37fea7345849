"""What a running e2e.test says: which spec it is at, how specs ended, and which namespaces they made.

Both ginkgos announce a spec after a ruler, its text on one line or several, then the place in the source; and end it
with a bullet. Lines of any length and bytes of any kind must pass: what cannot be understood is only not understood.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from winready.upstream.junit import Bounded, Status
from winready.upstream.listing import plain

LINE_LIMIT = 64 * 1024
HEADER_LINES = 12
_RULER = "-" * 30
_PLACE = re.compile(r"\.go:\d+$")
_RUN = re.compile(r'Starting e2e run "([0-9a-f-]{36})"')
_END = re.compile(r"^(?P<mark>[•SP]) ?(?P<words>(?:\[[^\]]*\]|Failure|Panic|\W)*)")
_NAMESPACE = re.compile(r'[Nn]amespace "([a-z0-9][a-z0-9-]*)"')
_BAD = ("FAILED", "PANICKED", "TIMEDOUT", "INTERRUPTED", "ABORTED", "Failure", "Panic", "Timeout")


@dataclass
class Seen:
    """What was seen of one spec while it ran."""

    text: str
    status: Status | None = None
    namespaces: set[str] = field(default_factory=set)
    output: Bounded = field(default_factory=Bounded)


class Follower:
    """Takes the output in pieces and tells of starts and ends."""

    def __init__(
        self, texts: Iterable[str], tell: Callable[[Seen], None], started: Callable[[str], object] = lambda _: None
    ) -> None:
        self._by_length = sorted((plain(text) for text in texts), key=len, reverse=True)
        self._tell = tell
        self._started = started
        self._rest = b""
        self._header: list[str] | None = None
        self._current: Seen | None = None
        self.seen: dict[str, Seen] = {}
        self.run_id = ""
        """The value of the label ``e2e-run`` on every namespace that this process makes."""

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._line(line[:LINE_LIMIT].decode("utf-8", errors="replace").rstrip("\r"))
        self._rest = self._rest[-LINE_LIMIT:]

    def _line(self, line: str) -> None:
        if not self.run_id and (match := _RUN.search(line)):
            self.run_id = match[1]
            self._started(match[1])
        if line.startswith(_RULER):
            self._header = []
            return
        if self._header is not None:
            self._read_header(self._header, line)
        current = self._current
        if current is None:
            return
        current.output.add(f"{line}\n")
        current.namespaces.update(_NAMESPACE.findall(line))
        if line[:1] in "•SP" and (match := _END.match(line)) and (match["mark"] == "•" or "[" in match["words"]):
            bad = any(word in match["words"] for word in _BAD)
            current.status = "failed" if bad else "passed" if match["mark"] == "•" else "skipped"
            self._current = None
            self._tell(current)

    def _read_header(self, header: list[str], line: str) -> None:
        if not _PLACE.search(line):
            header.append(line)
            if len(header) > HEADER_LINES:
                self._header = None
            return
        text = plain(" ".join(header))
        self._header = None
        name = next((known for known in self._by_length if text.startswith(known)), None)
        if name is not None and name not in self.seen:
            self._current = self.seen[name] = Seen(name)
            self._tell(self._current)

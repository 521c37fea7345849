"""What is known so far: every spec's last result in a file of lines, so that a run that was ended goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from winready.upstream.suite import Result

MESSAGE = 2000


class Measured(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a spec ended on the sandbox of a round."""

    round: str
    text: str
    status: str
    message: str = ""
    seconds: float = 0.0
    at: str = ""
    systems: dict[str, int] = {}
    """Pods by operating system."""
    uses: dict[str, list[str]] = {}
    """What its containers executed, with the options."""

    @property
    def passed(self) -> bool:
        """Did it pass?"""
        return self.status == "passed"

    @property
    def said(self) -> str:
        """The first line of what it said."""
        return next((line.strip() for line in self.message.splitlines() if line.strip()), "no message")


class About(msgspec.Struct, frozen=True, tag="about", tag_field="kind"):
    """What judged, and the nodes that were judged in a round."""

    round: str
    version: str
    nodes: list[str]


class State:
    """The results of one file, and those of others beside it."""

    def __init__(self, path: Path, others: Iterable[Path] = ()) -> None:
        self._path = path
        self.results: dict[tuple[str, str], Measured] = {}
        self.about: dict[str, About] = {}
        for each in (*others, path):
            if each.exists():
                self._read(each.read_bytes())

    def _read(self, data: bytes) -> None:
        for line in data.splitlines():
            try:
                raw = msgspec.json.decode(line)
                if raw.get("kind") == "about":
                    about = msgspec.convert(raw, About)
                    self.about[about.round] = about
                else:
                    found = msgspec.convert(raw, Measured)
                    self.results[found.round, found.text] = found
            except (msgspec.DecodeError, msgspec.ValidationError):
                # A line that a kill cut short; the spec is run again.
                continue

    def add(self, item: Measured | About) -> None:
        """Keep it, on disk first."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab+") as file:
            # A line that a kill cut short must not take the next one with it.
            file.seek(max(file.tell() - 1, 0))
            file.write((b"\n" if file.read(1) not in (b"", b"\n") else b"") + msgspec.json.encode(item) + b"\n")
        if isinstance(item, About):
            self.about[item.round] = item
        else:
            self.results[item.round, item.text] = item

    def wanted(self, on: str, text: str, again: str) -> bool:
        """Whether a spec is still to be run: it has no result, or one that is not enough."""
        found = self.results.get((on, text))
        return found is None or again == "all" or (again == "failed" and not found.passed)

    def seconds(self, on: str, text: str, default: float) -> float:
        """How long a spec took the last time."""
        found = self.results.get((on, text))
        return found.seconds if found is not None and found.seconds else default


def measured(on: str, result: Result, uses: Mapping[str, set[str]], at: str) -> Measured:
    """What is kept of a result."""
    return Measured(
        round=on,
        text=result.text,
        status=result.status,
        message=result.message[:MESSAGE],
        seconds=float(f"{result.seconds:.1f}"),
        at=at,
        systems=dict(Counter(pod.fact.os for pod in result.pods)),
        uses={command: sorted(options) for command, options in sorted(uses.items())},
    )

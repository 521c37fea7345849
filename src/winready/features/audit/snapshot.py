"""One Kubernetes version in lines of text: the fields of its pods, its feature gates, and its specs about Windows.

Snapshots of known versions are part of the package (``tools/api_snapshot.py`` writes them from the real programs). Each
fact is a line of its own, so that two versions can be compared by anybody who can read a diff.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from winready.lint.gates import Gate
from winready.spec.versions import Version, release_order

HEADER = "# winready snapshot of Kubernetes"
MOST_LINES = 50_000


class SnapshotError(ValueError):
    """A snapshot that cannot be used; the message begins with a verb."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is known of one version; a part that could not be had is None."""

    source: str
    version: str
    """Such as ``1.36.3``; empty where nobody said."""
    fields: Mapping[str, str] | None = None
    gates: Mapping[str, Gate] | None = None
    specs: tuple[str, ...] | None = None
    """Of [sig-windows], without tags."""
    linux_only: Mapping[str, int] | None = None
    """Texts tagged [LinuxOnly], without tags, and how often each occurs."""

    @property
    def minor(self) -> int | None:
        """Of its version."""
        try:
            return Version.parse(self.version).minor
        except ValueError:
            return None


@cache
def bundled() -> Mapping[str, Snapshot]:
    """The snapshots in the package by minor version, oldest first."""
    folder = resources.files("winready.features.audit") / "data"
    found = [
        parse(file.read_text(encoding="utf-8"), "bundled") for file in folder.iterdir() if file.name.endswith(".txt")
    ]
    found.sort(key=lambda one: release_order(one.version))
    return {f"1.{one.minor}": one for one in found}


def render(snapshot: Snapshot) -> Iterator[str]:
    """The lines of a snapshot."""
    yield f"{HEADER} {snapshot.version}; written by tools/api_snapshot.py\n"
    yield f"kubernetes {snapshot.version}\n"
    for name, kind in (snapshot.fields or {}).items():
        yield f"field {name} {kind}\n"
    for name, gate in (snapshot.gates or {}).items():
        yield f"gate {name} {gate}\n"
    for text in snapshot.specs or ():
        yield f"spec {text}\n"
    for text, count in (snapshot.linux_only or {}).items():
        yield f"linux-only {count} {text}\n"


def parse(text: str, source: str) -> Snapshot:
    """Read what `render` wrote."""
    version = ""
    fields: dict[str, str] = {}
    gates: dict[str, Gate] = {}
    specs: list[str] = []
    linux_only: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        word, _, rest = line.partition(" ")
        try:
            if number > MOST_LINES:
                raise ValueError
            match word:
                case "" | "#":
                    pass
                case "kubernetes":
                    Version.parse(rest)
                    version = rest
                case "field":
                    name, kind = rest.split()
                    fields[name] = kind
                case "gate":
                    name, stage, state = rest.split()
                    gates[name] = Gate(stage, state == "on")
                case "spec":
                    specs.append(rest)
                case "linux-only":
                    count, _, spec = rest.partition(" ")
                    linux_only[spec] = int(count)
                case _:
                    raise ValueError
        except ValueError:
            raise SnapshotError(f"has no line of a snapshot in line {number}: {line[:80]!r}") from None
    return Snapshot(source, version, fields or None, gates or None, tuple(specs) or None, linux_only or None)

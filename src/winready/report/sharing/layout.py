"""A run as objects: ``RUN/journal-OFFSET.jsonl`` as it grows, ``junit.xml``, ``report.html``, and ``run.json`` last.

Parts of a journal are named by the byte that they begin with, so that anybody who has the journal can tell whether one
is right and where the next one begins. None is ever written twice; whoever finds ``run.json`` finds a whole run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from winready.report import junit, record
from winready.report.html import page
from winready.store.objects import Entry, valid_key

PAGES = (junit.NAME, page.NAME)
FILES = (*PAGES, record.NAME)
"""In the order in which they are sent."""
PART_BYTES = 4 << 20
LARGEST_FILE = 64 << 20
LARGEST_JOURNAL = 256 << 20
MOST_PARTS = 100_000
_PART = re.compile(r"journal-([0-9]{12})\.jsonl")
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def part(offset: int) -> str:
    """The name of the part of a journal that begins there."""
    return f"journal-{offset:012d}.jsonl"


def is_run(name: str) -> bool:
    """Whether a run may be called so."""
    return _RUN.fullmatch(name) is not None


@dataclass
class Stored:
    """What a place has of a run."""

    name: str
    files: dict[str, Entry] = field(default_factory=dict)
    parts: dict[int, Entry] = field(default_factory=dict)
    """By the byte that they begin with."""

    @property
    def finished(self) -> bool:
        """Whether all of it is there."""
        return record.NAME in self.files

    @property
    def whole_parts(self) -> list[Entry]:
        """The parts from the start, as far as none is missing."""
        found, offset = [], 0
        while (entry := self.parts.get(offset)) is not None and entry.size > 0:
            found.append(entry)
            offset += entry.size
        return found

    @property
    def keys(self) -> list[str]:
        """Everything, the record last: as long as it is there, the rest is no run that was cut off."""
        names = [entry.key for entry in self.parts.values()]
        names += [entry.key for name, entry in self.files.items() if name != record.NAME]
        return [*names, *(entry.key for name, entry in self.files.items() if name == record.NAME)]


def sort(entries: Iterable[Entry]) -> tuple[dict[str, Stored], list[str]]:
    """The runs in a place by name, and the keys of objects that are none of ours."""
    runs: dict[str, Stored] = {}
    foreign: list[str] = []
    for entry in entries:
        run, slash, name = entry.key.partition("/")
        if not slash or not is_run(run) or not valid_key(entry.key):
            foreign.append(entry.key)
        elif name in FILES:
            runs.setdefault(run, Stored(run)).files[name] = entry
        elif match := _PART.fullmatch(name):
            runs.setdefault(run, Stored(run)).parts[int(match[1])] = entry
        else:
            foreign.append(entry.key)
    # Pages alone tell nothing.
    for run in [run for run, stored in runs.items() if not stored.finished and not stored.parts]:
        foreign += runs.pop(run).keys
    return runs, foreign

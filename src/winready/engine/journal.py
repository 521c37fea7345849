"""The journal of a run: every event, one line each, on disk before anyone acts on it."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from winready.engine.events import AnyEvent

NAME = "journal.jsonl"


class Journal:
    """Appends events; each is synced, so that a killed run loses nothing that was finished."""

    def __init__(self, folder: Path) -> None:
        self._file = (folder / NAME).open("ab")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def append(self, event: AnyEvent) -> None:
        """Write one event and wait until it is on disk."""
        self._file.write(msgspec.json.encode(event) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def read(folder: Path) -> list[AnyEvent]:
    """The events of a run; a last line that a kill cut short is left out."""
    events: list[AnyEvent] = []
    lines = (folder / NAME).read_bytes().split(b"\n")
    for number, line in enumerate(lines):
        if not line:
            continue
        try:
            events.append(msgspec.json.decode(line, type=AnyEvent))
        except (msgspec.DecodeError, msgspec.ValidationError):
            if number < len(lines) - 1:
                raise
    return events

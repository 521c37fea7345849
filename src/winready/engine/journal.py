"""The journal of a run: every event, one line each, on disk before anyone acts on it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from winready.engine.events import AnyEvent

NAME = "journal.jsonl"
NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding junk raises; recursion, because somebody may nest a million brackets."""


class Unreadable(Exception):
    """A file of a run cannot be read; the message names it and says why."""


class Journal:
    """Appends events; each is synced, so that a killed run loses nothing that was finished."""

    def __init__(self, folder: Path) -> None:
        self._file = (folder / NAME).open("ab")
        # The kernel takes the lock back however the run ends, so nobody takes a killed run for a live one. Where a
        # file system has no locks, the run matters more than who watches it.
        with contextlib.suppress(OSError):
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

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


def in_progress(folder: Path) -> bool:
    """Whether somebody is still writing the journal."""
    try:
        with (folder / NAME).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def read(folder: Path) -> list[AnyEvent]:
    """The events of a run; a last line that a kill cut short is left out. Raises `Unreadable`."""
    path = folder / NAME
    try:
        *lines, rest = path.read_bytes().split(b"\n")
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}") from None
    events: list[AnyEvent] = []
    for number, line in enumerate(lines, 1):
        try:
            events.append(msgspec.json.decode(line, type=AnyEvent))
        except NOT_JSON as error:
            raise Unreadable(f"{path}, line {number} is no event of this version: {error}") from None
    if rest:
        # A kill may have cut off no more than the end of the line.
        with contextlib.suppress(*NOT_JSON):
            events.append(msgspec.json.decode(rest, type=AnyEvent))
    return events

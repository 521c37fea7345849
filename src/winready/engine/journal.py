"""The journal of a run: every event, one line each, on disk before anyone acts on it; written and read here alone."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path
from typing import IO

import msgspec

from winready.engine.events import AnyEvent

NAME = "journal.jsonl"
HEARD = "journal.heard"
"""Beside the copy of a journal that is written elsewhere: its time is when the run was last heard of."""
QUIET = 900.0
"""Seconds after which a run that is not heard of any more counts as cut off."""
NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding junk raises; recursion, because somebody may nest a million brackets."""


class Unreadable(Exception):
    """A file of a run cannot be read; the message names it and says why."""


class Journal:
    """Appends events; each is synced, so that a killed run loses nothing that was finished."""

    name = NAME

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._file: IO[bytes] | None = None

    def start(self) -> None:
        """Open the file, for this run alone."""
        self._file = self._path.open("ab", buffering=0)
        # The kernel takes the lock back however the run ends, so nobody takes a killed run for a live one. Where a
        # file system has no locks, the run matters more than who watches it.
        with contextlib.suppress(OSError):
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def handle(self, event: AnyEvent) -> None:
        """Write one event and wait until it is on disk."""
        if self._file is None:
            raise RuntimeError("the journal was not started")
        line = memoryview(msgspec.json.encode(event) + b"\n")
        while line:
            line = line[self._file.write(line) :]
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Nothing more will come."""
        if self._file is not None:
            self._file.close()


def in_progress(folder: Path) -> bool:
    """Whether somebody is still writing the journal; of a copy, whether the run was heard of lately."""
    with contextlib.suppress(OSError):
        return time.time() - (folder / HEARD).stat().st_mtime < QUIET
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
        data = path.read_bytes()
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}") from None
    return parse(data, str(path))


def parse(data: bytes, source: str) -> list[AnyEvent]:
    """The events in a journal that was read from ``source``; raises `Unreadable`."""
    *lines, rest = data.split(b"\n")
    happened: list[AnyEvent] = []
    for number, line in enumerate(lines, 1):
        try:
            happened.append(decode(line))
        except NOT_JSON as error:
            raise Unreadable(f"{source}, line {number} is no event of this version: {error}") from None
    if rest:
        # A kill may have cut off no more than the end of the line.
        with contextlib.suppress(*NOT_JSON):
            happened.append(decode(rest))
    return happened


def decode(line: bytes) -> AnyEvent:
    """One line of a journal; raises one of `NOT_JSON`."""
    event: AnyEvent = msgspec.json.decode(line, type=AnyEvent)
    return event

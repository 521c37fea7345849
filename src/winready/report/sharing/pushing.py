"""Bringing a run into a place: what is there is compared, what is missing is added, nothing is overwritten."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from winready.engine import journal
from winready.report.sharing import layout
from winready.store.errors import AlreadyThere, TooLarge
from winready.store.objects import Conflict, Objects, put_once

SENT = ".sent"
"""In the folder of a run that a place has all of."""


@dataclass
class Pushed:
    """What came of it."""

    run: str
    sent: int = 0
    there: int = 0
    finished: bool = False


class JournalCopy:
    """The journal of a run as parts of a place, from the first byte on; whoever else sends it as well does no harm."""

    def __init__(self, objects: Objects, run: str, path: Path, known: Collection[int] = ()) -> None:
        self._objects = objects
        self._run = run
        self._path = path
        self._known = known
        """Where parts begin that are there already."""
        self._offset = 0
        self.sent = 0
        self.there = 0

    def advance(self) -> bool:
        """Send one more part; False when there is no whole line yet that was not sent."""
        data = self._next()
        if not data:
            return False
        key = f"{self._run}/{layout.part(self._offset)}"
        if self._offset not in self._known:
            try:
                self._objects.create(key, data)
            except AlreadyThere:
                pass
            else:
                self.sent += 1
                self._offset += len(data)
                return True
        self._offset += self._compared(key)
        self.there += 1
        return True

    def _next(self) -> bytes:
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read(layout.PART_BYTES)
            while data and b"\n" not in data:
                more = file.read(layout.PART_BYTES)
                if not more or len(data) > layout.LARGEST_FILE:
                    return b""
                data += more
        later = [offset for offset in self._known if offset > self._offset]
        if later:
            # Somebody took away a part in the middle; the next one says where it ended.
            data = data[: min(later) - self._offset]
        return data[: data.rfind(b"\n") + 1]

    def _compared(self, key: str) -> int:
        """The length of a part that is there, if it is what the journal has."""
        where = self._objects.place.below(key).address
        remedy = "find out who wrote it; it is left as it is, and nothing more of this run is sent"
        try:
            there = self._objects.read(key, layout.LARGEST_FILE).data
        except TooLarge:
            raise Conflict(f"{where} is there with other contents", remedy) from None
        with self._path.open("rb") as file:
            file.seek(self._offset)
            if not there or file.read(len(there)) != there:
                raise Conflict(f"{where} is there with other contents", remedy)
        return len(there)


def put_files(objects: Objects, folder: Path, pushed: Pushed) -> None:
    """Send what a finished run has written, its record last."""
    for name in layout.FILES:
        path = folder / name
        if not path.is_file():
            continue
        data = path.read_bytes()
        if len(data) > layout.LARGEST_FILE:
            raise TooLarge(f"{path} has more than {layout.LARGEST_FILE >> 20} MB", "no reader would take it")
        if put_once(objects, f"{folder.name}/{name}", data):
            pushed.sent += 1
        else:
            pushed.there += 1
        pushed.finished = pushed.finished or name == layout.FILES[-1]


def push(objects: Objects, folder: Path) -> Pushed:
    """See to it that a place has all of the run in a folder; raises a `StoreError` or ``OSError``."""
    pushed = Pushed(folder.name)
    stored, _ = layout.sort(objects.list(folder.name))
    known = stored[folder.name].parts if folder.name in stored else {}
    if (folder / journal.NAME).is_file():
        copy = JournalCopy(objects, folder.name, folder / journal.NAME, set(known))
        try:
            while copy.advance():
                pass
        finally:
            pushed.sent, pushed.there = copy.sent, copy.there
    put_files(objects, folder, pushed)
    return pushed

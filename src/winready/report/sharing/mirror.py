"""A place as an ordinary report folder on this machine: whatever reads runs reads it there.

The whole place is listed each time and only what is missing is fetched, so that a run that was sent a month late
appears, and one that was removed goes. Of a finished run that is its record; the journal comes when somebody asks for
the run itself, and of runs without a record always. Nothing that a key says leads out of the mirror.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import msgspec

from winready.engine import events, journal
from winready.report import record
from winready.report.files import write_whole
from winready.report.sharing import layout
from winready.store.errors import NoSuchObject, TooLarge
from winready.store.objects import Entry, Objects

AT_ONCE = 16
SAVED_EVERY = 200
_STATE = ".mirror.json"
_LOCK = ".mirror.lock"
Progress = Callable[[int, int], None]


class _State(msgspec.Struct):
    """What was fetched: by key, the token that it had."""

    fetched: dict[str, str] = {}


@dataclass
class Seen:
    """What a look at a place came to."""

    runs: dict[str, layout.Stored]
    foreign: list[str]
    left_out: dict[str, str] = field(default_factory=dict)
    """Objects that are not taken in, and why."""
    fetched: int = 0


class Mirror:
    """The runs of a place, in a folder."""

    def __init__(self, objects: Objects, folder: Path) -> None:
        self.folder = folder
        self._objects = objects

    def refresh(self, only: str | None = None, progress: Progress | None = None) -> Seen:
        """Take over what changed; with ``only`` of one run, all of it. Raises a `StoreError` or ``OSError``."""
        with self._alone():
            state = self._read_state()
            runs, foreign = layout.sort(self._objects.list(only or ""))
            seen = Seen(runs, foreign)
            if only is None:
                self._forget(state, seen)
            elif only not in runs:
                shutil.rmtree(self._path(only), ignore_errors=True)
            wanted = [entry for run in runs.values() for entry in self._missing(run, state, seen)]
            try:
                self._fetch(wanted, state, seen, progress)
                for run in runs.values():
                    if only is not None or not run.finished:
                        self._take_journal(run, state, seen)
            finally:
                self._write_state(state)
        return seen

    def _missing(self, run: layout.Stored, state: _State, seen: Seen) -> Iterator[Entry]:
        entry = run.files.get(record.NAME)
        if entry is None:
            return
        if entry.size > layout.LARGEST_FILE:
            seen.left_out[entry.key] = f"it has more than {layout.LARGEST_FILE >> 20} MB"
        elif state.fetched.get(entry.key) != entry.token or not self._path(entry.key).is_file():
            yield entry

    def _fetch(self, wanted: list[Entry], state: _State, seen: Seen, progress: Progress | None) -> None:
        """Fetch objects, many at once; what was fetched stays known if one fails."""
        with ThreadPoolExecutor(AT_ONCE) as threads:
            try:
                for number, (entry, why) in enumerate(threads.map(self._fetch_one, wanted), 1):
                    if why:
                        seen.left_out[entry.key] = why
                    else:
                        state.fetched[entry.key] = entry.token
                        seen.fetched += 1
                    if progress:
                        progress(number, len(wanted))
                    if number % SAVED_EVERY == 0:
                        self._write_state(state)
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                raise

    def _fetch_one(self, entry: Entry) -> tuple[Entry, str]:
        try:
            data = self._objects.read(entry.key, layout.LARGEST_FILE).data
        except (TooLarge, NoSuchObject) as error:
            return entry, error.message
        path = self._path(entry.key)
        path.parent.mkdir(exist_ok=True)
        write_whole(path, data)
        return entry, ""

    def _take_journal(self, run: layout.Stored, state: _State, seen: Seen) -> None:
        """Make the journal as long as the parts that are there; it only ever grows, so what is known is kept."""
        parts = run.whole_parts
        if len(parts) < len(run.parts):
            seen.left_out[f"{run.name}/{layout.part(0)} to the end"] = "a part of the journal is missing"
        if sum(entry.size for entry in parts) > layout.LARGEST_JOURNAL or len(parts) > layout.MOST_PARTS:
            seen.left_out[parts[0].key] = f"the journal has more than {layout.LARGEST_JOURNAL >> 20} MB"
            return
        path = self._path(run.name) / journal.NAME
        have = path.stat().st_size if path.is_file() else 0
        known, offset = 0, 0
        for entry in parts:
            if state.fetched.get(entry.key) != entry.token or offset + entry.size > have:
                break
            known, offset = known + 1, offset + entry.size
        path.parent.mkdir(exist_ok=True)
        with path.open("r+b" if path.is_file() else "w+b") as file:
            file.truncate(offset)
            file.seek(offset)
            for entry in parts[known:]:
                try:
                    data = self._objects.read(entry.key, entry.size).data
                except (NoSuchObject, TooLarge):
                    break
                if len(data) != entry.size:
                    break
                file.write(data)
                state.fetched[entry.key] = entry.token
                seen.fetched += 1
        if not run.finished:
            _mark(path)

    def _forget(self, state: _State, seen: Seen) -> None:
        """Let go of runs that are no longer there, and of records that are not."""
        known = {key.partition("/")[0] for key in state.fetched}
        known |= {each.name for each in self.folder.iterdir() if each.is_dir() and layout.is_run(each.name)}
        for name in known - seen.runs.keys():
            shutil.rmtree(self._path(name), ignore_errors=True)
        there = {key for run in seen.runs.values() for key in run.keys}
        for key in [key for key in state.fetched if key not in there]:
            del state.fetched[key]
            with contextlib.suppress(OSError):
                self._path(key).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.folder / key

    def _read_state(self) -> _State:
        try:
            return msgspec.json.decode((self.folder / _STATE).read_bytes(), type=_State)
        except (OSError, *journal.NOT_JSON):
            return _State()

    def _write_state(self, state: _State) -> None:
        write_whole(self.folder / _STATE, msgspec.json.encode(state))

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Two readers at once would fetch everything twice."""
        with (self.folder / _LOCK).open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _mark(path: Path) -> None:
    """Say when the run was last heard of, by its own clock: nobody holds a lock on a run elsewhere."""
    last = 0.0
    with contextlib.suppress(OSError, ValueError, OverflowError, *journal.NOT_JSON):
        with path.open("rb") as file:
            first = journal.decode(file.readline(layout.PART_BYTES))
            file.seek(max(0, path.stat().st_size - layout.PART_BYTES))
            tail = file.read().rstrip(b"\n").rpartition(b"\n")[2]
        if isinstance(first, events.RunStarted):
            last = datetime.fromisoformat(first.time).timestamp() + journal.decode(tail).at_s
    mark = path.with_name(journal.HEARD)
    mark.touch()
    os.utime(mark, (last, last))

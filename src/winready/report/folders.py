"""Run folders: where runs are kept, and how one is found again."""

from __future__ import annotations

import os
import secrets
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from winready.cluster.settings import RUN_ID
from winready.engine import journal
from winready.report import record

DEFAULT = "winready-runs"
_READ = (record.NAME, journal.NAME)


class RunNotFound(Exception):
    """No such run; the message says where it was looked for."""


def report_folder(given: str | None) -> Path:
    """``--report-dir``, else ``$ARTIFACTS``, else ``./winready-runs``."""
    return Path(given or os.environ.get("ARTIFACTS") or DEFAULT)


def new_run_id() -> str:
    """Sortable by time, unique, and short enough to be part of a namespace's name."""
    return f"{datetime.now(UTC):%y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def create(base: Path, run_id: str) -> Path:
    """The folder of a new run; raises ``OSError`` when it cannot be written."""
    folder = base / run_id
    folder.mkdir(parents=True)
    return folder


def inside(base: Path, folder: Path) -> bool:
    """Whether a run in a report folder is really there, and no link leads out of it."""
    try:
        home = base.resolve()
        return all(path.resolve().is_relative_to(home) for path in (folder, *(folder / name for name in _READ)))
    except (OSError, RuntimeError):
        return False


class Found(NamedTuple):
    """A run folder as it lies there."""

    name: str
    stamp: str
    """A mark that changes when the record does; empty without one."""
    journal: bool


def scan(base: Path) -> list[Found]:
    """Every run folder, in one pass: with ten thousand of them each look at a file counts."""
    found = []
    try:
        with os.scandir(base) as entries:
            for entry in entries:
                if not entry.name.isprintable() and entry.name != entry.name.encode(errors="replace").decode():
                    continue  # no text, so that nothing could name it
                linked = entry.is_symlink()
                seen = []
                for name in _READ:
                    status, link = _look(f"{entry.path}/{name}")
                    seen.append(status)
                    linked = linked or link
                kept, story = seen
                if (kept or story) and (not linked or inside(base, Path(entry.path))):
                    stamp = f"{kept.st_mtime_ns} {kept.st_size}" if kept else ""
                    found.append(Found(entry.name, stamp, story is not None))
    except OSError:
        return []
    return found


def _look(path: str) -> tuple[os.stat_result | None, bool]:
    """A file, and whether it is a link."""
    try:
        status = os.lstat(path)
        return (os.stat(path), True) if stat.S_ISLNK(status.st_mode) else (status, False)
    except OSError:
        return None, False


def runs(base: Path, name: str) -> list[Path]:
    """The folders below that hold a file of a run."""
    return [base / each.name for each in scan(base) if (each.stamp if name == record.NAME else each.journal)]


def find(base: Path, run: str | None) -> Path:
    """The folder of a run by path or id, finished or not; without a name, the newest that finished."""
    if run is None:
        found = runs(base, record.NAME)
        if not found:
            raise RunNotFound(f"there is no finished run in {base}; 'winready run' makes one")
        # Ids sort by time; a copy under another name is newest only when there is nothing else.
        return max(found, key=lambda path: (RUN_ID.fullmatch(path.name) is not None, path.name))
    for candidate, named in ((Path(run), True), (base / run, False)):
        if any((candidate / name).is_file() for name in _READ) and (named or inside(base, candidate)):
            return candidate
    raise RunNotFound(f"there is no run {run!r}, neither as a folder nor in {base}")

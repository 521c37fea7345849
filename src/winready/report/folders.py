"""Run folders: where runs are kept, and how one is found again."""

from __future__ import annotations

import os
import secrets
from datetime import UTC, datetime
from pathlib import Path

from winready.cluster.settings import RUN_ID
from winready.engine import journal
from winready.report import record

DEFAULT = "winready-runs"


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


def find(base: Path, run: str | None) -> Path:
    """The folder of a run by path or id, finished or not; without a name, the newest that finished."""
    if run is None:
        runs = [path.parent for path in base.glob(f"*/{record.NAME}")] if base.is_dir() else []
        if not runs:
            raise RunNotFound(f"there is no finished run in {base}; 'winready run' makes one")
        # Ids sort by time; a copy under another name is newest only when there is nothing else.
        return max(runs, key=lambda path: (RUN_ID.fullmatch(path.name) is not None, path.name))
    for candidate in (Path(run), base / run):
        if any((candidate / name).is_file() for name in (record.NAME, journal.NAME)):
            return candidate
    raise RunNotFound(f"there is no run {run!r}, neither as a folder nor in {base}")

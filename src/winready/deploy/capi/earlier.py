"""What became of a run that was under way when its server ended: finished meanwhile, to be taken up, or nothing."""

from __future__ import annotations

import contextlib
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from winready.cluster.settings import RUN_ID
from winready.engine import journal
from winready.report import folders, record

PATIENCE = 330.0
"""A run that lost its server cleans up first."""


class Earlier(NamedTuple):
    """A run to take up again, or the record of one that has its verdict."""

    run_id: str = ""
    record: record.Record | None = None


def moment(seconds: float) -> str:
    """As the id of a run begins that was started then."""
    return f"{datetime.fromtimestamp(seconds, UTC):%y%m%d-%H%M%S}"


def newest(base: str, since: str) -> str:
    """The id of the newest run from then on, as far as that is in a folder."""
    with contextlib.suppress(OSError):
        names = [path.name for path in Path(base).iterdir()] if "://" not in base else []
        return max((name for name in names if RUN_ID.fullmatch(name) and name >= since), default="")
    return ""


def find(base: str, asked: float) -> Earlier:
    """What became of the run that was asked for then."""
    name = newest(base, moment(asked))
    if not name or not folders.inside(Path(base), Path(base) / name):
        return Earlier()
    folder = Path(base) / name
    until = time.monotonic() + PATIENCE
    while journal.in_progress(folder) and time.monotonic() < until:
        time.sleep(0.2)
    with contextlib.suppress(journal.Unreadable):
        found = record.read(folder)
        if found.verdict is not None:
            return Earlier(record=found)
    return Earlier(name) if (folder / journal.NAME).is_file() else Earlier()

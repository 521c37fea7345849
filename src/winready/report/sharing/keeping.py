"""Folders of this user for places elsewhere: spools, in which runs wait until they are sent, and mirrors."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import time
from pathlib import Path

from winready.report.sharing.pushing import SENT
from winready.store.addresses import Place
from winready.store.objects import identity

SENT_SECONDS = 7 * 86400.0
"""A run that was sent stays this long where it was written."""


class NotSafe(Exception):
    """A folder that others can write to is no place for what we believe later."""


def spool(place: Place) -> Path:
    """Where runs for a place are written first: a state folder, since nobody else may have them yet."""
    return _own(_home("XDG_STATE_HOME", ".local/state") / "spool" / _name(place))


def mirror(place: Place) -> Path:
    """Where a place is mirrored: a cache folder, which can be deleted at any time."""
    return _own(_home("XDG_CACHE_HOME", ".cache") / "mirror" / _name(place))


def forget_sent(base: Path) -> None:
    """Remove from a spool what was sent long ago."""
    for mark in base.glob(f"*/{SENT}"):
        if time.time() - mark.stat().st_mtime > SENT_SECONDS:
            shutil.rmtree(mark.parent, ignore_errors=True)


def _home(variable: str, usual: str) -> Path:
    base = os.environ.get(variable)
    return (Path(base) if base else Path.home() / usual) / "winready"


def _name(place: Place) -> str:
    """Readable, and another one for each place: one bucket name can be had at several servers."""
    readable = re.sub(r"[^a-z0-9]+", "-", place.address.lower()).strip("-")[:60]
    return f"{readable}-{hashlib.sha256(identity(place).encode()).hexdigest()[:12]}"


def _own(folder: Path) -> Path:
    """The folder, made for this user alone; raises ``OSError`` or `NotSafe`."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise NotSafe(f"{folder} belongs to somebody else")
    folder.chmod(0o700)
    return folder

"""A page of runs at a time: the place where the next begins is a run, so that runs that come meanwhile move nothing."""

from __future__ import annotations

import base64
import binascii

from winready.report.fleet.filters import Filter, FilterError
from winready.report.history import Entry, History


def page_of_runs(index: History, wanted: Filter, cursor: str, limit: int) -> tuple[list[Entry], str]:
    """The newest runs that fit and lie beyond a cursor, and the cursor for those beyond them; empty at the end."""
    where, values = wanted.where()
    if cursor:
        where, values = f"{where} and (at, folder) < (?, ?)", [*values, *_place(cursor)]
    found = index.runs(limit + 1, where, values)
    if len(found) <= limit:
        return found, ""
    last = found[limit - 1]
    return found[:limit], base64.urlsafe_b64encode(f"{last.at!r} {last.folder}".encode()).decode().rstrip("=")


def _place(cursor: str) -> tuple[float, str]:
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True).decode()
        at, _, folder = text.partition(" ")
        return float(at), folder
    except (binascii.Error, UnicodeError, ValueError):
        raise FilterError("the place where this page begins is none; go back to the newest runs") from None

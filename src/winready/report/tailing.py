"""A run in progress, from its journal: whoever looks gets everything so far, then each event as it is written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from winready.engine import events, journal

POLL_SECONDS = 0.2
MOST = 1 << 20
"""Bytes read at a time: a journal of any size is followed in bounded memory."""


async def tail(
    folder: Path, offset: int = 0, watched: Callable[[], bool] = lambda: True
) -> AsyncIterator[tuple[int, events.AnyEvent | None]]:
    """Events from a byte offset on, each with the offset after it, until the run has its verdict or nobody watches.

    A half-written line waits for its other half; a line that cannot be read is passed over. When nobody writes any
    more and there is no verdict, the last event is None: the run was cut off.
    """
    path = folder / journal.NAME
    rest = b""
    abandoned = False
    while watched():
        try:
            with journal.opened(path) as file:
                file.seek(offset + len(rest))
                data = file.read(MOST)
        except OSError:
            return
        if not data:
            if abandoned:
                yield offset, None
                return
            # Looked at before the pause, believed after it: the last lines may still have been on their way.
            abandoned = not journal.in_progress(folder)
            await asyncio.sleep(POLL_SECONDS)
            continue
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            offset += len(line) + 1
            try:
                event = journal.decode(line)
            except journal.NOT_JSON:
                continue
            yield offset, event
            if isinstance(event, events.RunFinished):
                return

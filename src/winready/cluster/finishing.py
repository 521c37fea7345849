"""Work that must come to its end once it has begun, such as cleaning up, and work that nobody waits for any more."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Do this to its end, however often the caller is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return task.result()


class Stopped(Exception):
    """Something was given up because it was no longer wanted."""


async def unless(stopping: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """Do this, unless it is told to stop meanwhile: an API server that does not answer is not waited for."""
    doing, stop = asyncio.ensure_future(work), asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait([doing, stop], return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise Stopped
        return doing.result()
    finally:
        doing.cancel()
        stop.cancel()
        await asyncio.gather(doing, stop, return_exceptions=True)

"""Waiting for a server that takes its time: after a while it is said for whom."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from winready.cli.options import say

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")
PATIENCE = 3.0
"""Wall seconds without an answer after which it is said what is waited for."""


async def patiently(server: str, work: Coroutine[Any, Any, T]) -> T:
    """Do something that asks this API server."""
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait([task], timeout=PATIENCE)
        if not done:
            with suppress(OSError):
                say(f"waiting for the API server at {server}", err=True)
        return await task
    finally:
        task.cancel()

"""An event loop that does less around each call than asyncio's own.

A sandbox is many small tasks that wake each other up: a trial makes more than a hundred thousand calls, and most of
them are alone in their turn of the loop.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Callable
from contextvars import Context
from selectors import BaseSelector
from typing import Any, TypeVarTuple, Unpack

LONGEST = 24 * 3600.0
"""Seconds for which it sleeps at most, as asyncio's own."""
MANY = 100
"""Deadlines that were called off, from which on it is worth looking for them."""
Arguments = TypeVarTuple("Arguments")


class LeanLoop(asyncio.SelectorEventLoop):
    """Calls in the order of asyncio's loop; deadlines of one moment in the order in which they were set."""

    _clock_resolution: float
    _ready: deque[Any]
    _selector: BaseSelector
    _stopping: bool
    _process_events: Callable[[list[Any]], None]

    def __init__(self, selector: BaseSelector | None = None) -> None:
        super().__init__(selector)
        self._deadlines: list[tuple[float, int, Any]] = []
        """A heap; numbers decide between equal moments, so that handles, which compare slowly, never do."""
        self._numbers = itertools.count()
        self._called_off = 0

    def call_soon(
        self, callback: Callable[[Unpack[Arguments]], object], *args: *Arguments, context: Context | None = None
    ) -> asyncio.Handle:
        """At the next turn."""
        if self.get_debug() or self.is_closed():
            return super().call_soon(callback, *args, context=context)
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """After so many seconds."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """At a moment."""
        if self.is_closed():
            raise RuntimeError("Event loop is closed")
        handle: Any = asyncio.TimerHandle(when, callback, args, self, context)
        handle._scheduled = True
        heapq.heappush(self._deadlines, (when, next(self._numbers), handle))
        return handle  # type: ignore[no-any-return]

    def close(self) -> None:
        """Let go of everything."""
        super().close()
        self._deadlines.clear()

    def _timer_handle_cancelled(self, handle: Any) -> None:
        if handle._scheduled:
            self._called_off += 1

    def _forget_cancelled(self) -> None:
        """Those that nobody waits for any more, such as the time limits of what has been done in time."""
        self._deadlines = [deadline for deadline in self._deadlines if not deadline[2]._cancelled]
        heapq.heapify(self._deadlines)
        self._called_off = 0

    def _run_once(self) -> None:
        """One turn: what is due now, and nothing that it asks for."""
        if self._called_off > MANY and self._called_off > len(self._deadlines) // 2:
            self._forget_cancelled()
        deadlines, ready = self._deadlines, self._ready
        while deadlines and deadlines[0][2]._cancelled:
            heapq.heappop(deadlines)[2]._scheduled = False
            self._called_off -= 1
        timeout: float | None = None
        if ready or self._stopping:
            timeout = 0
        elif deadlines:
            timeout = min(max(0.0, deadlines[0][0] - self.time()), LONGEST)
        if found := self._selector.select(timeout):
            self._process_events(found)
        if deadlines:
            end = self.time() + self._clock_resolution
            while deadlines and deadlines[0][0] < end:
                handle = heapq.heappop(deadlines)[2]
                handle._scheduled = False
                ready.append(handle)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

"""An event loop in which waiting costs nothing: when nobody has anything to do, its clock jumps to the next deadline.

A sandbox and whoever examines it in the same loop then see cluster seconds pass as they should, however busy or slow
the machine is: work takes no time, and only waiting does. Everything must go by the time of the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import selectors
import socket
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple, Unpack

from winready_sandbox.event_loop import LeanLoop

TICK = 2.0**-20
"""Seconds, a power of two: sums and differences of ticks are exact."""
MOST_TURNS = 1_000_000
"""Turns of the loop in one moment; far more than any work here needs."""
LOOK_EVERY = 256
"""Turns of the loop after which it looks for signals that somebody wants to hear of."""
LATECOMERS = 0.002
"""Wall seconds to wait for what is on its way through the kernel before the clock jumps."""
T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")
Found = list[tuple[selectors.SelectorKey, int]]


class _Selector(selectors.BaseSelector):
    """Looks at files as any selector does, and lets the time of the loop pass where others would sleep."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()
        # On a whole second: what is written down in seconds must not depend on when a trial was begun.
        self.now = float(math.ceil(time.monotonic()))
        self.turns = 0
        self.outside_work = 0
        """Calls that threads are busy with."""
        self.streams: set[int] = set()
        """Open connections through the kernel: there, bytes can be under way that nobody has seen yet."""
        self.hears_signals = False
        self._unlooked = 0

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = self._real.register(fileobj, events, data)
        if not _listens(key.fd):
            self.streams.add(key.fd)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        key = self._real.unregister(fileobj)
        self.streams.discard(key.fd)
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()

    def select(self, timeout: float | None = None) -> Found:
        if self.streams or self.outside_work or timeout is None or self._signals_due():
            found = self._real.select(0)
            if found:
                return found
        if timeout == 0:
            self.turns += 1
            if self.turns > MOST_TURNS:
                self.turns = 0
                raise RuntimeError("time stands still: something works on and on without ever waiting")
            return []
        self.turns = 0
        if timeout is None or self.outside_work:
            # Only somebody outside of the loop can go on; no time passes in here meanwhile.
            return self._real.select(None if timeout is None else LATECOMERS)
        if self.streams and (found := self._real.select(LATECOMERS)):
            return found
        self.now += timeout
        return []

    def _signals_due(self) -> bool:
        """Signals come through the kernel, too, but rarely: looking at every turn costs more than it tells."""
        self._unlooked += self.hears_signals
        if self._unlooked < LOOK_EVERY:
            return False
        self._unlooked = 0
        return True


class VirtualTimeLoop(LeanLoop):
    """The loop."""

    def __init__(self) -> None:
        self._files = _Selector()
        self._moment = self._files.now
        self._ahead = math.floor(time.time()) - self._files.now
        self._set: dict[float, int] = {}
        """How many deadlines were set in this moment for each tick."""
        super().__init__(self._files)
        self._clock_resolution = TICK / 2
        # What the loop wakes itself with is no connection to anybody.
        self._files.streams.clear()

    def time(self) -> float:
        """Seconds on a clock that only waiting moves."""
        return self._files.now

    def wall_time(self) -> float:
        """Seconds since 1970 by the same clock."""
        return self._ahead + self._files.now

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Deadlines are on ticks, never early: the clock would stand still a rounding error before one.

        Those that are set in one moment for the same tick come one tick after the other, in the order in which they
        were set, as they would if work took time: bytes on a slow link must not overtake each other.
        """
        if self._moment != self._files.now:
            self._moment = self._files.now
            self._set.clear()
        tick = _later(when)
        before = self._set.get(tick, 0)
        self._set[tick] = before + 1
        return super().call_at(tick + before * TICK, callback, *args, context=context)

    def add_signal_handler(self, sig: int, callback: Callable[[Unpack[Arguments]], object], *args: *Arguments) -> None:
        """From now on signals are looked for."""
        super().add_signal_handler(sig, callback, *args)
        self._files.hears_signals = True

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Arguments]], T], *args: *Arguments
    ) -> asyncio.Future[T]:
        """Time stands still while a thread works."""
        self._files.outside_work += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._returned)
        return future

    def _returned(self, _: asyncio.Future[Any]) -> None:
        self._files.outside_work -= 1


def _later(moment: float) -> float:
    """The first tick that is not before a moment."""
    return math.ceil(moment / TICK) * TICK


def _listens(descriptor: int) -> bool:
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as copy:
        return bool(copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    return False

"""An event loop in which waiting costs nothing: when nobody has anything to do, its clock jumps to the next deadline.

A sandbox and whoever examines it in the same loop then see cluster seconds pass as they should, however busy or slow
the machine is: work takes no time, and only waiting does. Everything must go by the time of the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
import socket
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple, Unpack

LATECOMERS = 0.002
"""Wall seconds to wait for what is on its way through the kernel before the clock jumps."""
T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")
Found = list[tuple[selectors.SelectorKey, int]]


class _Selector(selectors.BaseSelector):
    """Looks at files as any selector does, and lets the time of the loop pass where others would sleep."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()
        self.now = time.monotonic()
        self.outside_work = 0
        """Calls that threads are busy with."""
        self.streams: set[int] = set()
        """Open connections through the kernel: there, bytes can be under way that nobody has seen yet."""

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
        if self.streams or self.outside_work or timeout is None:
            found = self._real.select(0)
            if found:
                return found
        if timeout == 0:
            return []
        if timeout is None or self.outside_work:
            # Only somebody outside of the loop can go on; no time passes in here meanwhile.
            return self._real.select(None if timeout is None else LATECOMERS)
        if self.streams and (found := self._real.select(LATECOMERS)):
            return found
        self.now += timeout
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """The loop."""

    def __init__(self) -> None:
        self._files = _Selector()
        super().__init__(self._files)
        # A clock that stands still must not stand a rounding error before the next deadline.
        self._clock_resolution = 1e-6
        # What the loop wakes itself with is no connection to anybody.
        self._files.streams.clear()

    def time(self) -> float:
        """Seconds on a clock that only waiting moves."""
        return self._files.now

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


def _listens(descriptor: int) -> bool:
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as copy:
        return bool(copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    return False

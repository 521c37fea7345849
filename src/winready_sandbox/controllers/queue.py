"""A keyed work queue: a key waits at most once, one worker, and failures come back later and later."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from winready_sandbox.api.errors import ApiError
from winready_sandbox.clock import monotonic

if TYPE_CHECKING:
    from winready_sandbox.clock import Clock

log = logging.getLogger(__name__)

FIRST_RETRY = 0.005
LONGEST_RETRY = 60.0
"""Cluster seconds, as are all delays here."""

SHORT = 0.001
REST = 10.0
LONGEST_REST = 0.25
"""A key whose turn costs more than SHORT seconds of computing rests REST times as long, in which its news gather:
a workload of thousands of pods is not looked at anew for each of them."""

MANY = 64
EACH = 0.00004
"""In virtual time computing takes none. There a turn counts as EACH seconds for each of the objects it looks at, if
they are more than MANY: what happens depends on the cluster then, and never on the machine."""

K = TypeVar("K")


class WorkQueue(Generic[K]):
    """Keys to work on, in order of arrival."""

    def __init__(self, name: str, clock: Clock, effort: Callable[[], int] = lambda: 0) -> None:
        """``effort`` says how many objects a turn looks at, whatever its key is."""
        self.name = name
        self.clock = clock
        self._effort = effort
        self._ready: dict[K, None] = {}
        self._wake = asyncio.Event()
        self._timers: dict[K, tuple[float, asyncio.TimerHandle]] = {}
        self._failures: dict[K, int] = {}
        self._resting: dict[K, float] = {}

    def add(self, key: K) -> None:
        """Work on this key soon; one whose last turn was long has to wait in proportion."""
        wait = self._resting.get(key, 0.0) - monotonic() if self._resting else 0.0
        if wait > 0:
            self._later(key, wait)
            return
        self._ready[key] = None
        self._wake.set()

    def add_after(self, key: K, cluster_seconds: float) -> None:
        """Work on this key after a while; of several calls the earliest counts."""
        if cluster_seconds <= 0:
            self.add(key)
            return
        self._later(key, self.clock.wall(cluster_seconds))

    def _later(self, key: K, seconds: float) -> None:
        due = monotonic() + seconds
        waiting = self._timers.get(key)
        if waiting is not None:
            if waiting[0] <= due:
                return
            waiting[1].cancel()
        self._timers[key] = (due, asyncio.get_running_loop().call_later(seconds, self._fire, key))

    def _fire(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)

    async def run(self, sync: Callable[[K], None]) -> None:
        """Work until cancelled. API errors are retried; anything else is a defect of ours and ends the worker."""
        try:
            while True:
                await self._wake.wait()
                while self._ready:
                    key = next(iter(self._ready))
                    del self._ready[key]
                    self._work(sync, key)
                    await asyncio.sleep(0)
                self._wake.clear()
        finally:
            for _, timer in self._timers.values():
                timer.cancel()
            self._timers.clear()

    def _work(self, sync: Callable[[K], None], key: K) -> None:
        start, began = time.process_time(), monotonic()
        self._resting.pop(key, None)
        try:
            sync(key)
        except ApiError as error:
            count = self._failures[key] = self._failures.get(key, 0) + 1
            level = logging.DEBUG if error.code in (404, 409) else logging.INFO
            log.log(level, "%s: %s will be tried again: %s", self.name, key, error.message)
            self.add_after(key, min(FIRST_RETRY * self.clock.speed * 2.0 ** min(count, 30), LONGEST_RETRY))
        else:
            self._failures.pop(key, None)
        looked_at = self._effort()
        cost = max(
            min(time.process_time() - start, monotonic() - began),
            EACH * looked_at if looked_at > MANY else 0.0,
        )
        if cost > SHORT:
            rest = min(REST * cost, LONGEST_REST)
            self._resting[key] = monotonic() + rest
            if key in self._ready:
                del self._ready[key]
                self._later(key, rest)

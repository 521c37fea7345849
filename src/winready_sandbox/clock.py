"""Cluster seconds: whatever takes time in the sandbox takes it through one clock with one speed.

A Windows container that needs 12 s to start needs 12 cluster seconds; at ``--speed 10`` that is
1.2 s on the wall. Timestamps inside API objects stay wall time, as clients compare them with their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from datetime import UTC, datetime

from winready_sandbox.virtual_time import VirtualTimeLoop

MAX_SPEED = 100.0
"""What ``--speed max`` means: faster than this, scheduling noise of the host drowns the model."""


HOST_NOISE = 3.0
"""Wall seconds for which a busy host may keep any part of the sandbox waiting."""
BLINK = 10.0
"""Cluster seconds that are not worth more patience than this."""


def monotonic() -> float:
    """Seconds on the clock of the running event loop, which may be one whose time is virtual."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()


def wall_time() -> float:
    """Seconds since 1970, by the clock of the running event loop where that one is virtual."""
    with contextlib.suppress(RuntimeError):
        if isinstance(loop := asyncio.get_running_loop(), VirtualTimeLoop):
            return loop.wall_time()
    return time.time()


def utc_now() -> datetime:
    """The same as a date."""
    return datetime.fromtimestamp(wall_time(), UTC)


class Clock:
    """Scaled time of one sandbox."""

    def __init__(self, speed: float = 1.0) -> None:
        if not 0 < speed <= MAX_SPEED:
            raise ValueError(f"speed must be above 0 and at most {MAX_SPEED:g}, not {speed:g}")
        self.speed = speed
        self._start = monotonic()

    def now(self) -> float:
        """Cluster seconds since this clock was made."""
        return (monotonic() - self._start) * self.speed

    def wall(self, cluster_seconds: float) -> float:
        """How many wall seconds that many cluster seconds take."""
        return cluster_seconds / self.speed

    def patience(self, cluster_seconds: float, *, within: int = 1) -> float:
        """Wall seconds to wait for an answer that a simulated peer will compute.

        At high speeds a few cluster seconds are a blink in which a busy host may not get around to the peer at all;
        that must not look like a peer that does not answer. Who waits for longer is patient for longer, so that waits
        inside of another end before it; ``within``: so many of them make up the least patience.
        """
        noise = HOST_NOISE / within * max(1.0, cluster_seconds / BLINK)
        return max(self.wall(cluster_seconds), noise)

    async def sleep(self, cluster_seconds: float) -> None:
        """Let that many cluster seconds pass."""
        await asyncio.sleep(self.wall(max(cluster_seconds, 0)))


def parse_speed(text: str) -> float:
    """Read ``--speed``: a number, or ``max``."""
    if text == "max":
        return MAX_SPEED
    try:
        speed = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a speed; write a number up to {MAX_SPEED:g}, or 'max'") from None
    Clock(speed)
    return speed

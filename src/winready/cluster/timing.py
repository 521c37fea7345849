"""Every wait, hold and deadline of a run, in cluster seconds, in one table, under one scale.

On a real cluster the scale is 1. On the sandbox it is the sandbox's speed: what Windows does in
12 s it does there in 12 s divided by the speed, and so is every patience of ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, fields

SHORTEST_DEADLINE = 4.0
"""Wall seconds. A scaled deadline below this would measure the machine winready runs on, not the cluster."""


@dataclass(frozen=True)
class Table:
    """Named durations in cluster seconds; the sources are upstream's own values for Windows."""

    image_pull: float = 900  # cold Windows images
    windows_pod_start: float = 300
    linux_pod_start: float = 120
    pod_delete: float = 300
    namespace_delete: float = 300
    exec_answer: float = 30
    exec_ready: float = 60  # a container that just turned Running may refuse exec for a while
    service_reachable: float = 120
    service_gone: float = 120
    pod_reachable: float = 30
    dns_answer: float = 60
    endpoints_ready: float = 120
    rollout: float = 300
    settle_after_delete: float = 15
    poll: float = 1
    hold: float = 10
    connect: float = 10  # curl --connect-timeout
    answer: float = 15  # curl --max-time
    dial_try: float = 5  # one try of agnhost's dial
    tcp_connect: float = 5  # agnhost connect --timeout


TABLE = Table()


class Timing:
    """The table under one scale."""

    def __init__(self, scale: float = 1.0, table: Table = TABLE) -> None:
        if scale <= 0:
            raise ValueError(f"the time scale must be above 0, not {scale:g}")
        self.scale = scale
        self.table = table

    def wall(self, cluster_seconds: float) -> float:
        """Wall seconds of a hold or a pause."""
        return cluster_seconds / self.scale

    def deadline(self, cluster_seconds: float) -> float:
        """Wall seconds that may pass before patience ends."""
        return max(cluster_seconds / self.scale, min(cluster_seconds, SHORTEST_DEADLINE))

    async def pause(self, cluster_seconds: float) -> None:
        """Let cluster time pass."""
        await asyncio.sleep(self.wall(cluster_seconds))

    async def attempts(self, window: float) -> AsyncIterator[int]:
        """Count attempts, one per poll interval, until ``window`` cluster seconds have passed."""
        end = asyncio.get_running_loop().time() + self.deadline(window)
        attempt = 1
        yield attempt
        while asyncio.get_running_loop().time() < end:
            await self.pause(self.table.poll)
            attempt += 1
            yield attempt

    def describe(self) -> dict[str, float]:
        """The table, for the record."""
        return {field.name: getattr(self.table, field.name) for field in fields(self.table)}

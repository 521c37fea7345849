"""Every wait, hold and deadline of a run, in cluster seconds, in one table, under one scale.

On a real cluster the scale is 1. On the sandbox it is the sandbox's speed: what Windows does in
12 s it does there in 12 s divided by the speed, and so is every patience of ours.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, fields

from winready.cluster.activity import doing

LEAST_ATTEMPTS = 6
"""A window that a slow way to the cluster used up is not a reason to judge by a single attempt."""
LONG_PAUSE = 5.0
"""Cluster seconds of a pause that whoever watches is told of."""
SHORTEST_DEADLINE = 4.0
"""Wall seconds. A scaled deadline below this would measure the machine winready runs on, not the cluster."""
SHORTEST_ANSWER = 20.0
"""The same for the answer to a command, which a busy machine of ours may keep waiting for long."""


@dataclass(frozen=True)
class Table:
    """Named durations in cluster seconds; the sources are upstream's own values for Windows."""

    image_pull: float = 900  # cold Windows images
    windows_pod_start: float = 300
    linux_pod_start: float = 120
    pod_delete: float = 300
    namespace_delete: float = 300
    admission: float = 120  # a new namespace gets its service account, a busy quota lets its writers through
    policy_settle: float = 30  # a policy that allows traffic reaches every node
    refusal_look: float = 30  # what a controller may not create this long, at two looks, it may not create
    exec_answer: float = 30
    powershell: float = 120  # PowerShell starts slowly
    exec_ready: float = 60  # a container that just turned Running may refuse exec for a while
    service_reachable: float = 120
    service_gone: float = 120
    pod_reachable: float = 30
    dns_answer: float = 60
    look_up: float = 10  # as long as Windows itself asks for a name
    question: float = 2  # dig +time: twice what Windows waits before it asks again
    outside_question: float = 5  # cluster DNS has to ask somebody else
    endpoints_ready: float = 120
    policy_effect: float = 60  # usually 1-10 s, upstream allows 20 s; engines on Windows were seen to need more
    rollout: float = 300
    settle_after_delete: float = 15
    poll: float = 1
    hold: float = 10
    observe: float = 120  # what works at first may not work for minutes
    connect: float = 10  # curl --connect-timeout
    answer: float = 15  # curl --max-time
    dial_try: float = 5  # one try of agnhost's dial
    tcp_connect: float = 5  # agnhost connect --timeout
    volume_update: float = 240  # the kubelet's sync period, its cache and jitter on both
    volume_look: float = 10
    sharing_retry: float = 30  # a file that somebody has open refuses others on Windows
    sharing_pause: float = 30  # between the rounds in which containers share a file
    pending_hold: float = 120
    scheduler_event: float = 180
    churn_round: float = 300
    token_life: float = 600  # the least that the API grants
    token_rotation: float = 900  # 80 % of the life, the next pod sync, client-go's own minute
    token_look: float = 30
    token_call: float = 15  # inclusterclient --poll-interval
    cpu_settle: float = 60
    cpu_lead: float = 10  # a PowerShell that is to burn from the start of a window
    cpu_window: float = 60
    memory_fill: float = 120
    memory_hold: float = 20
    memory_step: float = 30  # between two attempts to get beyond a limit
    stats_look: float = 10
    identity: float = 60  # a gMSA container logs on to its domain; upstream's own patience with nltest and files
    domain_answer: float = 120  # Windows looks for controllers and file servers for a minute before it gives up
    api_calls: float = 60  # upstream's own look at a HostProcess client of the API server
    host_script: float = 120  # Windows PowerShell on a node
    reboot_delay: float = 30  # shutdown /t: the pod that asks for it ends in time to say so
    reboot_look: float = 5
    reboot_back: float = 900
    reboot_recovery: float = 600
    reboot_hold: float = 120  # what works again is asked once more after this time
    node_silent: float = 120  # the node controller's grace period, and a look or two
    node_settled: float = 120  # taints of a node that was away go once it is back


TABLE = Table()


def now() -> float:
    """Seconds on the clock of the running event loop: what spans and deadlines are measured with."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()


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

    def answer(self, cluster_seconds: float) -> float:
        """Wall seconds to wait for the end of a command. How long it took is never what is judged."""
        return max(cluster_seconds / self.scale, min(cluster_seconds, SHORTEST_ANSWER))

    async def pause(self, cluster_seconds: float) -> None:
        """Let cluster time pass."""
        if cluster_seconds >= LONG_PAUSE:
            doing(f"looks again in {cluster_seconds:.0f} s")
        await asyncio.sleep(self.wall(cluster_seconds))

    async def attempts(self, window: float, *, every: float | None = None) -> AsyncIterator[int]:
        """Count attempts, one per poll interval (or ``every``), until ``window`` cluster seconds have passed."""
        every = every or self.table.poll
        end = asyncio.get_running_loop().time() + self.deadline(window)
        least = min(LEAST_ATTEMPTS, round(window / every))
        attempt = 1
        yield attempt
        while attempt < least or asyncio.get_running_loop().time() < end:
            await self.pause(every)
            attempt += 1
            yield attempt

    def describe(self) -> dict[str, float]:
        """The table, for the record."""
        return {field.name: getattr(self.table, field.name) for field in fields(self.table)}


def moments(seconds: float, count: int, whose: str) -> list[float]:
    """So many moments within that time, one in each equal part of it, others for everybody."""
    part = seconds / count
    return [part * (number + zlib.crc32(f"{whose} {number}".encode()) % 97 / 97) for number in range(count)]


def uneven(seconds: float, pauses: int, whose: str) -> list[float]:
    """Pauses that last so long together, others for everybody: no outage may fall between all of them."""
    weights = [1 + zlib.crc32(f"{whose} {number}".encode()) % 8 for number in range(pauses)]
    return [seconds * weight / sum(weights) for weight in weights]

"""Node-pressure eviction: a kubelet reads its statistics every ten seconds, and ends pods before memory runs out.

On Windows the memory that counts is the commit charge of the whole machine, and it counts since Kubernetes 1.31.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

from winready_sandbox.nodes import resources
from winready_sandbox.quantity import of_bytes

if TYPE_CHECKING:
    from winready_sandbox.nodes.kubelet import Kubelet
    from winready_sandbox.nodes.pods import PodWorker

Object = dict[str, Any]
PERIOD = 10.0
TRANSITION = 300.0
"""Pressure is reported until it has been gone for this long: else the node would flap."""
SYSTEM_CRITICAL = 2_000_000_000
_LEAST = 2.0
"""Wall seconds: at high speeds hundreds of nodes need not be read more often."""


class Evictions:
    """Watches over the memory of one node."""

    def __init__(self, node: Kubelet) -> None:
        self._node = node
        self._last_seen = -math.inf
        self._looking = asyncio.Lock()
        self.pressure = False
        """Whether the node says that it has memory pressure."""

    async def keep(self) -> None:
        """Look again and again, for as long as the node lives."""
        while True:
            await asyncio.sleep(max(self._node.clock.wall(PERIOD), _LEAST))
            await self.look()

    async def look(self) -> None:
        """Read the statistics once, report pressure or its end, and evict at most one pod."""
        async with self._looking:
            await self._look()

    async def _look(self) -> None:
        node = self._node
        node.statistics.read()
        threshold = node.settings.memory_threshold(node.machine.os)
        available = node.machine.memory_bytes - node.machine.memory.used
        short, now = available < threshold, node.clock.now()
        if short:
            self._last_seen = now
        pressure = now - self._last_seen < TRANSITION
        if pressure != self.pressure:
            self.pressure = pressure
            words = "NodeHasInsufficientMemory" if pressure else "NodeHasSufficientMemory"
            node.recorder.node(words, f"Node {node.name} status is now: {words}")
            await node.report_node()
        if short:
            node.recorder.node("EvictionThresholdMet", "Attempting to reclaim memory", type="Warning")
            await self._evict_one(threshold, available)

    async def _evict_one(self, threshold: int, available: int) -> None:
        """The pod that is furthest over what it asked for, the least important first; never a critical one."""
        running = [worker for worker in self._node.workers.values() if worker.facts.sandbox and not worker.finished]
        candidates = [worker for worker in running if not critical(worker.pod)]
        if not candidates:
            return
        worker = min(candidates, key=_rank)
        words = f"The node was low on resource: memory. Threshold quantity: {of_bytes(threshold)}, "
        words += f"available: {of_bytes(available)}. "
        for run in worker.runs.values():
            if run.instance is None or (container := run.instance.metered) is None:
                continue
            used = container.memory.working_set
            asked = int(resources.requests(run.spec).get("memory", 0))
            if used > asked:
                words += f"Container {run.name} was using {of_bytes(used)}, request is {of_bytes(asked)}, "
                words += "has larger consumption of memory. "
        self._node.recorder.pod(worker.pod, "Evicted", words, type="Warning")
        await asyncio.wait([worker.end(1.0, outcome=("Failed", "Evicted", words))])


def critical(pod: Object) -> bool:
    """Whether the node cannot do without it."""
    return int(pod["spec"].get("priority") or 0) >= SYSTEM_CRITICAL


def _rank(worker: PodWorker) -> tuple[bool, int, int]:
    over = worker.memory_in_use - int(resources.pod_requests(worker.pod).get("memory", 0))
    return over <= 0, int(worker.pod["spec"].get("priority") or 0), -over

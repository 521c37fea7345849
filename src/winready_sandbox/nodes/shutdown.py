"""Graceful node shutdown: ordinary pods end first, critical ones keep the last part of the time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from winready_sandbox.nodes.eviction import critical

if TYPE_CHECKING:
    from winready_sandbox.nodes.kubelet import Kubelet

MESSAGE = "Pod was terminated in response to imminent node shutdown."


async def end_pods(node: Kubelet) -> None:
    """End the pods of a node that is about to go down, within the time that its kubelet was given."""
    for important, grace in (
        (False, node.settings.shutdown_grace - node.settings.shutdown_grace_critical),
        (True, node.settings.shutdown_grace_critical),
    ):
        endings = [
            worker.end(min(worker.grace, grace), outcome=("Failed", "Terminated", MESSAGE))
            for worker in list(node.workers.values())
            if not worker.finished and critical(worker.pod) == important
        ]
        if endings:
            # Removing a pod's network takes a moment more than its containers' grace.
            await asyncio.wait(endings, timeout=node.clock.wall(grace + 10))

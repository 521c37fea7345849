"""What a kubelet measured: processor time and memory of containers, from ``stats/summary``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from winready.cluster.client import Object
from winready.cluster.errors import ApiError
from winready.cluster.failures import CheckBlocked
from winready.cluster.pods import Pod
from winready.cluster.timing import now

STAMP_SECONDS = 20.0
"""The kubelet's time stamps are whole seconds: over less than this, our own clock is nearer to the truth."""


@dataclass(frozen=True)
class Usage:
    """One reading of a container's meters."""

    core_seconds: float
    memory_bytes: int
    """What is committed: the figure that Windows limits."""
    stamped: float
    read: float

    def cores_since(self, earlier: Usage) -> float:
        """The average number of cores in use between two readings."""
        by_stamp = self.stamped - earlier.stamped
        span = by_stamp if by_stamp >= STAMP_SECONDS else self.read - earlier.read
        return (self.core_seconds - earlier.core_seconds) / span if span > 0 else 0.0


async def usages(pod: Pod, containers: Sequence[str]) -> dict[str, Usage]:
    """Read the meters of some containers of a pod at one moment; blocked when its kubelet does not show them."""
    try:
        summary = await pod.client.node_proxy(pod.node.name, "stats/summary", key="pods")
    except ApiError as error:
        raise CheckBlocked(
            f"the kubelet of node {pod.node.name} does not answer when asked for statistics: {error.message}",
            next_step=f"'kubectl get --raw /api/v1/nodes/{pod.node.name}/proxy/stats/summary' should answer",
        ) from None
    read = now()
    return {name: _usage(_container(summary, pod, name), pod, read) for name in containers}


def _usage(found: Object, pod: Pod, read: float) -> Usage:
    cpu, memory = found.get("cpu") or {}, found.get("memory") or {}
    if "usageCoreNanoSeconds" not in cpu or "usageBytes" not in memory:
        raise CheckBlocked(
            f"the kubelet of node {pod.node.name} shows no statistics of pod {pod.name}",
            next_step=f"'kubectl get --raw /api/v1/nodes/{pod.node.name}/proxy/stats/summary' should list it",
        )
    try:
        stamped = datetime.fromisoformat(cpu["time"].replace("Z", "+00:00")).timestamp()
        return Usage(int(cpu["usageCoreNanoSeconds"]) / 1e9, int(memory["usageBytes"]), stamped, read)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise CheckBlocked(
            f"the kubelet of node {pod.node.name} shows statistics of pod {pod.name} that are no numbers",
            next_step=f"'kubectl get --raw /api/v1/nodes/{pod.node.name}/proxy/stats/summary' shows them",
        ) from None


def _container(summary: Object, pod: Pod, container: str) -> Object:
    for item in summary.get("pods") or []:
        if item["podRef"]["uid"] == pod.uid:
            for each in item.get("containers") or []:
                if each["name"] == container:
                    return dict(each)
    return {}

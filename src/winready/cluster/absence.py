"""Nodes that go away while a run goes on: who they are, and the pods on them that nobody is left to end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Iterable, Mapping

from winready.cluster.client import Client, Object
from winready.cluster.errors import Forbidden
from winready.cluster.failures import CheckBlocked
from winready.cluster.inventory import Node
from winready.cluster.resources import NODES, PODS
from winready.cluster.timing import Timing

LOST_SECONDS = 45.0
"""Wall seconds that pods of a node which is not there get to end by themselves: it may be a short absence."""
LOOK_SECONDS = 10.0
"""Wall seconds between two looks at them."""

REMOVED = "it is not in the cluster any more"
BRING_BACK = "bring that node back, or take it out of the cluster for good, and run again"


class NodeAway(CheckBlocked):
    """What was waited for cannot come: its node went away."""


async def absent(client: Client, nodes: Iterable[Node]) -> dict[str, str]:
    """Those of the nodes that are not what they were when they were looked at, by name, and what became of them."""
    found = {raw["metadata"]["name"]: raw for raw in await client.list(NODES)}
    told = {}
    for node in nodes:
        raw = found.get(node.name)
        if raw is None:
            told[node.name] = REMOVED
        elif raw["metadata"]["uid"] != node.uid:
            told[node.name] = "another node took its place"
        elif (ready := _ready(raw)).get("status") != "True":
            told[node.name] = f"it is not Ready ({ready.get('reason') or 'no Ready condition'})"
    return told


def went_away(lost: Mapping[str, str]) -> str:
    """The same for people."""
    return "; ".join(f"node {name} went away while the run went on: {how}" for name, how in lost.items())


class Absences:
    """Looks for nodes that went away, each for everybody who waits: all nodes, listed for each, cost their square."""

    def __init__(self, client: Client, timing: Timing, nodes: Mapping[str, Node]) -> None:
        self._client = client
        self._timing = timing
        self._nodes = nodes
        self._looking = asyncio.Lock()
        self._looked = float("-inf")
        self._found: dict[str, str] = {}

    async def among(self, names: Collection[str]) -> dict[str, str]:
        """Those of these nodes that are away, and how.

        Who asks again after the time of a look is never told what he was told before.
        """
        loop = asyncio.get_running_loop()
        async with self._looking:
            if loop.time() >= self._looked + self._timing.deadline(self._timing.table.refusal_look) * 0.9:
                self._found = await absent(self._client, self._nodes.values())
                self._looked = loop.time()
        return {name: how for name, how in self._found.items() if name in names}


class LostPods:
    """Pods that are to go, on nodes whose kubelets are not there to end them: they would hold their namespace for ever.

    After a while the API server is told to forget them. A kubelet that comes back ends what it then finds nowhere.
    """

    def __init__(self, client: Client, patience: float) -> None:
        self._client = client
        self._next = asyncio.get_running_loop().time() + min(LOST_SECONDS, patience / 4)
        self._words: dict[str, str] = {}

    async def forget(self, namespaces: Collection[str], labels: str = "") -> dict[str, str]:
        """Let go of such pods; by namespace, of those that we may not remove, where they are."""
        loop = asyncio.get_running_loop()
        if not namespaces or loop.time() < self._next:
            return self._words
        self._next = loop.time() + LOOK_SECONDS
        self._words = {}
        # Whoever may not look can do nothing about it, and what is left is told all the same.
        with contextlib.suppress(Forbidden):
            alive = {raw["metadata"]["name"] for raw in await self._client.list(NODES) if _ready(raw).get("status")}
            for namespace in namespaces:
                for pod in await self._client.list(PODS, namespace, labels=labels):
                    node = pod["spec"].get("nodeName")
                    if node and node not in alive and pod["metadata"].get("deletionTimestamp"):
                        await self._forget(pod, node)
        return self._words

    async def _forget(self, pod: Object, node: str) -> None:
        metadata = pod["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        try:
            await self._client.delete(PODS, name, namespace, grace=0, uid=metadata["uid"])
        except Forbidden:
            self._words[namespace] = (
                f"pod {name} is on node {node}, which does not answer; "
                f"'kubectl delete pod -n {namespace} {name} --force' ends the waiting"
            )


def _ready(raw: Object) -> Object:
    """The Ready condition of a node; without a status where nobody knows."""
    conditions = (raw.get("status") or {}).get("conditions") or []
    found: Object = next((item for item in conditions if item["type"] == "Ready"), {})
    return {**found, "status": ""} if found.get("status") == "Unknown" else found

"""What the checks of one run share: the cluster, the chosen nodes, namespaces, and fixtures started once."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

from winready.checks.cluster_names import ClusterNames
from winready.checks.fixtures import Fixtures
from winready.cluster.absence import absent, went_away
from winready.cluster.client import Client
from winready.cluster.errors import ExecFailed
from winready.cluster.inventory import Inventory, Node
from winready.cluster.namespaces import Namespace
from winready.cluster.obstacles import isolated
from winready.cluster.settings import HOST_FOLDER, Settings
from winready.cluster.timing import now

if TYPE_CHECKING:
    from winready.checks.reboots import Reboot


WITNESSES = 2
"""Pods of a node that are asked before it counts as silent."""


class World:
    """The scene of a run."""

    def __init__(
        self, client: Client, inventory: Inventory, settings: Settings, windows_nodes: list[str], linux_nodes: list[str]
    ) -> None:
        self.client = client
        self.inventory = inventory
        self.settings = settings
        by_name = {node.name: node for node in inventory.nodes}
        self.nodes: dict[str, Node] = by_name
        self.windows_nodes = [by_name[name] for name in windows_nodes]
        self.linux_nodes = [by_name[name] for name in linux_nodes]
        self.host_folder = f"{HOST_FOLDER}\\{settings.run_id}"
        """Where checks keep files on Windows nodes."""
        self.reboots: dict[str, Reboot] = {}
        """What became of the nodes that were rebooted, by name."""
        self.leftovers: list[str] = []
        """What could not be removed from nodes."""
        self.began = now()
        self.fixtures = Fixtures(self)
        self.impostors: list[str] = []
        """Containers of upstream tests on Windows nodes that are not Windows, and what gave them away."""
        self._namespaces: dict[str, Namespace] = {}
        self._stack = AsyncExitStack()
        self._lock = asyncio.Lock()
        self.names = ClusterNames(self)
        self._isolation: tuple[float, str] = (float("-inf"), "")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Follow nothing any more; what was seen stays known."""
        await self.fixtures.stop()
        await self._stack.aclose()

    async def namespace(self, suffix: str) -> Namespace:
        """A namespace of this run, made on first use."""
        async with self._lock:
            if suffix not in self._namespaces:
                name = self.settings.namespace(suffix)
                opened = Namespace.open(self.client, self.settings, name, self.nodes)
                self._namespaces[suffix] = await self._stack.enter_async_context(opened)
            return self._namespaces[suffix]

    @property
    def namespaces(self) -> list[Namespace]:
        """Every namespace made so far."""
        return list(self._namespaces.values())

    def impostor_on(self, node: Node) -> str:
        """What gave a Linux container on a Windows node away; empty when none was seen there."""
        return next(
            (each.impostor_nodes[node.name] for each in self.namespaces if node.name in each.impostor_nodes), ""
        )

    @property
    def windows_pods(self) -> int:
        """How many Windows pods were started so far."""
        return sum(len(namespace.windows_pods) for namespace in self._namespaces.values())

    async def isolation(self) -> str:
        """Policies that others wrote into our namespaces since pods run there; they speak for the cluster no more."""
        looked, found = self._isolation
        timing = self.settings.timing
        names = {namespace.name for namespace in self.namespaces if namespace.policies is not None}
        if names and now() >= looked + timing.wall(timing.table.refusal_look):
            found = await isolated(self.client, names, everywhere=not self.settings.namespace_prefix)
            self._isolation = now(), found
        return found

    async def absence(self, *, unsure: bool = False) -> str:
        """Nodes that went away since the run began, and how, for people; a node that we rebooted is another matter.

        A node falls silent long before the cluster says so. Who is ``unsure`` waits for that word while a node answers
        nobody.
        """
        nodes = [node for node in (*self.windows_nodes, *self.linux_nodes) if node.name not in self.reboots]
        if not nodes:
            return ""
        timing = self.settings.timing
        async for _ in timing.attempts(timing.table.node_silent, every=timing.table.reboot_look):
            if lost := await absent(self.client, nodes):
                return went_away(lost)
            if not unsure or all(await asyncio.gather(*(self._answers(node) for node in nodes))):
                return ""
        return ""

    async def _answers(self, node: Node) -> bool:
        """Whether a pod of ours on a node can be asked something; where none is, nothing speaks against it."""
        pods = [pod for namespace in self.namespaces for pod in namespace.running_on(node)]
        for pod in pods[:WITNESSES]:
            with contextlib.suppress(ExecFailed):
                await pod.ask()
                return True
        return not pods

    async def cluster_domain(self) -> str:
        """The DNS domain of the cluster."""
        return await self.names.domain()

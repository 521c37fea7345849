"""What the checks of one run share: the cluster, the chosen nodes, namespaces, and fixtures started once."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from winready.checks.fixtures import Fixtures
from winready.cluster.client import Client
from winready.cluster.errors import ClusterError
from winready.cluster.inventory import Inventory, Node
from winready.cluster.namespaces import Namespace
from winready.cluster.settings import Settings
from winready.cluster.timing import now


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
        self.host_folder = f"C:\\winready\\{settings.run_id}"
        """Where checks keep files on Windows nodes."""
        self.leftovers: list[str] = []
        """What could not be removed from nodes."""
        self.began = now()
        self.fixtures = Fixtures(self)
        self.impostors: list[str] = []
        """Containers of upstream tests on Windows nodes that are not Windows, and what gave them away."""
        self._namespaces: dict[str, Namespace] = {}
        self._stack = AsyncExitStack()
        self._lock = asyncio.Lock()
        self._domain: str | None = None

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
                name = f"winready-{self.settings.run_id}-{suffix}"
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

    async def cluster_domain(self) -> str:
        """The DNS domain of the cluster, from a kubelet's own configuration."""
        if self._domain is None:
            try:
                document = await self.client.node_proxy(self.linux_nodes[0].name, "configz")
                self._domain = str(document["kubeletconfig"]["clusterDomain"])
            except (ClusterError, KeyError, TypeError, IndexError):
                # Reading it is a right that not every operator has; nearly every cluster keeps the default.
                self._domain = "cluster.local"
        return self._domain

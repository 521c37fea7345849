"""What a check gets to work with: witnesses that are proven to be what they say, and a prober that remembers."""

from __future__ import annotations

from collections.abc import Sequence

from winready.checks.fixtures import SHARED, Service
from winready.checks.world import World
from winready.cluster.client import Object
from winready.cluster.commands import Os
from winready.cluster.errors import ExecFailed
from winready.cluster.evidence import Evidence
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.namespaces import Namespace
from winready.cluster.pods import Pod, pinned, pod_object, pod_spec
from winready.cluster.probes import Prober
from winready.cluster.resources import PODS
from winready.cluster.settings import Settings
from winready.cluster.timing import Table, Timing

IMPOSTOR_STEP = "look at the container runtime and at webhooks that set a runtimeClass on that node"


class Context:
    """One check's view of the run."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.evidence = Evidence()
        self.probe = Prober(self.evidence, world.settings.timing, world.began)
        self.left_out: dict[str, str] = {}
        """Judged nodes of which this requirement says nothing, and why."""

    @property
    def settings(self) -> Settings:
        """What the operator decided."""
        return self.world.settings

    @property
    def timing(self) -> Timing:
        """Scaled time."""
        return self.world.settings.timing

    @property
    def times(self) -> Table:
        """The table of durations, in cluster seconds."""
        return self.world.settings.timing.table

    @property
    def windows_nodes(self) -> list[Node]:
        """The Windows nodes that are judged."""
        return self.world.windows_nodes

    @property
    def nodes(self) -> list[Node]:
        """Every node that a NodePort must answer on."""
        return [*self.world.windows_nodes, *self.world.fixtures.linux_nodes]

    def leave_out(self, node: Node, why: str) -> None:
        """A pass says nothing about this node, and tells so."""
        self.left_out[node.name] = why

    async def clients(self, os: Os) -> list[Pod]:
        """Client pods of an OS, as witnesses."""
        return self.witnesses(await self.world.fixtures.clients(os))

    async def servers(self, os: Os) -> list[Pod]:
        """Server pods of an OS, as witnesses."""
        return self.witnesses(await self.world.fixtures.servers(os))

    async def service(self, os: Os) -> Service:
        """The service over the servers of an OS."""
        return await self.world.fixtures.service(os)

    async def behind(self, os: Os) -> list[Pod]:
        """Server pods behind the service of their OS, as witnesses; of very many only some are."""
        pods, servers = await self.world.fixtures.behind(os), await self.world.fixtures.servers(os)
        if len(pods) < len(servers):
            self.evidence.fact(
                f"behind the service of the {os.capitalize()} pods",
                f"{len(pods)} of {len(servers)} servers; those of the other nodes are reached by their pod IPs",
            )
        return self.witnesses(pods)

    async def host(self, node: Node) -> Pod:
        """The pod that sees a Windows node's own files, as a witness."""
        return self.witnesses([pod for pod in await self.world.fixtures.hosts() if pod.node.name == node.name])[0]

    async def linux_hosts(self) -> list[Pod]:
        """Pods on the network of Linux nodes themselves, as witnesses."""
        return self.witnesses(await self.world.fixtures.linux_hosts())

    async def shared_namespace(self) -> Namespace:
        """The namespace of the shared fixtures."""
        return await self.world.namespace(SHARED)

    async def start(
        self, namespace: Namespace, name: str, node: Node, containers: list[Object], volumes: Sequence[Object] = ()
    ) -> Pod:
        """A Windows pod on a node, Ready and proven."""
        spec = pinned(pod_spec("windows", containers, self.settings, [node], volumes=list(volumes)), node)
        await namespace.create(PODS, pod_object(name, spec, self.settings))
        try:
            return self.witnesses([await namespace.ready_pod(name)])[0]
        except (CheckBlocked, ExecFailed) as trouble:
            if not (seen := self.world.impostor_on(node)):
                raise
            # Most Windows pods cannot even start as Linux containers, or have nothing in them that could say so.
            raise CheckFailed(
                f"{trouble}; on that node {seen}",
                expected="Windows containers on Windows nodes",
                observed=seen,
                next_step=IMPOSTOR_STEP,
            ) from None

    def witnesses(self, pods: list[Pod]) -> list[Pod]:
        """Record pods as evidence; one that is not the Windows container it should be makes the check fail."""
        self.evidence.saw(pod.fact() for pod in pods)
        impostors = [pod.impostor for pod in pods if pod.impostor]
        if impostors:
            raise CheckFailed(
                "; ".join(impostors),
                expected="Windows containers on Windows nodes",
                observed=f"{len(impostors)} of {len(pods)} are not",
                next_step=IMPOSTOR_STEP,
            )
        return pods

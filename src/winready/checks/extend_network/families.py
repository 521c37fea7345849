"""Both IP families: who has addresses of each, and services that exist in one of them or in both.

A cluster offers dual stack on Windows or it does not (Server 2019, overlay networks and some network plug-ins know one
family only). What no Windows pod has is not offered, unless their nodes were given ranges for it and nothing says that
it cannot be; what one has, all of them must have.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn

from winready.checks.context import Context
from winready.checks.fixtures import SHARED, service_object
from winready.checks.world import World
from winready.cluster.client import Object
from winready.cluster.commands import Os
from winready.cluster.errors import Invalid
from winready.cluster.failures import CheckFailed, NotApplicable
from winready.cluster.inventory import Node
from winready.cluster.pods import Pod
from winready.cluster.probes import describe
from winready.cluster.resources import NODES, SERVICES

Family = Literal["IPv4", "IPv6"]
FAMILIES: tuple[Family, ...] = ("IPv4", "IPv6")
DUAL_STACK_SINCE = 19041
"""The first build of Windows whose host networking knows both families at once: version 2004, then Server 2022."""
OLD_BUILD = f"a Windows build before {DUAL_STACK_SINCE}, which knows one IP family at a time"
FLANNEL_BACKEND = "flannel.alpha.coreos.com/backend-type"
CALICO_ADDRESS = "projectcalico.org/IPv4"
"""How the annotations begin with which Calico tells that it connects the node, and not only enforces policies."""
APPS: dict[Os, str] = {"windows": "ws", "linux": "ls"}


@dataclass(frozen=True)
class FamilyService:
    """A service with an address of one family or of each."""

    name: str
    addresses: dict[Family, str]
    port: int
    udp: int
    second: int
    node_port: int
    node_udp: int
    node_second: int


@dataclass
class Side:
    """The pods of one side of a conversation."""

    everyone: list[Pod]
    pods: list[Pod]
    """With addresses of both families."""
    lacking: list[Pod]
    """Windows pods that should have both, as others do, and have not."""

    def of(self, family: Family) -> list[Pod]:
        """Those with an address of a family."""
        return [pod for pod in self.everyone if address_of(pod.addresses, family)]

    def complaints(self) -> list[Awaitable[None]]:
        """What is wrong with those that lack a family, to be told beside everything else."""
        return [_complain(pod) for pod in self.lacking]


async def _complain(pod: Pod) -> None:
    has = ", ".join(pod.addresses) or "no address"
    raise CheckFailed(
        f"{describe(pod)} has {has} and no address of the other IP family, which Windows pods elsewhere have",
        expected="an IPv4 and an IPv6 address",
        observed=has,
        next_step=f"look at the address management of the network plug-in on node {pod.node.name}",
    )


def family_of(address: str) -> Family:
    """The IP family of an address."""
    return "IPv6" if ":" in address else "IPv4"


def address_of(addresses: Sequence[str], family: Family) -> str:
    """The first address of a family; empty when there is none."""
    return next((address for address in addresses if family_of(address) == family), "")


def knows_both(node: Node) -> bool:
    """Whether the operating system of a node can have both families at once."""
    number = node.build.split(".")[2:3]
    return not node.windows or not number or not number[0].isdigit() or int(number[0]) >= DUAL_STACK_SINCE


async def clients_of_both(ctx: Context, os: Os) -> Side:
    """The shared clients of an OS, divided."""
    return await divide(ctx, await ctx.clients(os))


async def servers_of_both(ctx: Context, os: Os) -> Side:
    """The shared servers of an OS, divided."""
    return await divide(ctx, await ctx.behind(os))


async def divide(ctx: Context, pods: list[Pod]) -> Side:
    """Who has both families and who should; not applicable when the cluster offers them to nobody here."""
    able = [pod for pod in pods if knows_both(pod.node)]
    if not able:
        raise NotApplicable(f"{_nodes(pods)} run {OLD_BUILD}; it can be judged on nodes with Server 2022 or later")
    both = [pod for pod in able if all(address_of(pod.addresses, family) for family in FAMILIES)]
    if not both:
        await _offered_to_nobody(ctx, able)
    lacking = [pod for pod in able if pod not in both]
    for pod in pods:
        if pod not in able:
            ctx.leave_out(pod.node, f"it runs {OLD_BUILD}")
        if pod not in able or (pod in lacking and pod.os == "linux"):
            ctx.evidence.fact(f"left out: {pod.name} on {pod.node.name}", ", ".join(pod.addresses))
    return Side(pods, both, [pod for pod in lacking if pod.os == "windows"])


async def _offered_to_nobody(ctx: Context, pods: list[Pod]) -> NoReturn:
    """Nodes with pod ranges of both families are meant to give pods both, where the network plug-in is able to."""
    kind, nodes = pods[0].os.capitalize(), {pod.node.name: pod for pod in pods}
    objects = [await ctx.world.client.get(NODES, name) for name in nodes] if kind == "Windows" else []
    ranges = [(raw.get("spec") or {}).get("podCIDRs") or [] for raw in objects]
    unable = next((words for raw in objects if (words := _one_family_plugin(raw))), "")
    if objects and not unable and all(len({family_of(cidr) for cidr in each}) == len(FAMILIES) for each in ranges):
        seen = "; ".join(
            f"{describe(pod)} has {', '.join(pod.addresses) or 'no address'} of {' and '.join(each)}"
            for pod, each in zip(nodes.values(), ranges, strict=True)
        )
        raise CheckFailed(
            f"no Windows pod has addresses of both IP families, for which their nodes have ranges: {seen}",
            expected="an IPv4 and an IPv6 address for each Windows pod",
            observed=seen,
            next_step=f"look at the network plug-in on {_nodes(pods)}: what ranges does it hand out? If it is one that "
            f"has no IPv6 on Windows, this does not concern the cluster: leave it out with --skip",
        )
    raise NotApplicable(
        f"no {kind} pod has addresses of both IP families ({_nodes(pods)}): "
        f"{unable or f'the network plug-in does not offer dual stack to {kind} pods'}; it can be judged with one that "
        f"does (on Windows not an overlay network)"
    )


def _one_family_plugin(raw: Object) -> str:
    """What the annotations of a node tell of a network plug-in that has IPv4 only on Windows; empty if nothing."""
    annotations = raw["metadata"].get("annotations") or {}
    if annotations.get(FLANNEL_BACKEND) == "vxlan":
        return "Flannel runs an overlay network there, which has one family on Windows"
    if any(key.startswith(CALICO_ADDRESS) for key in annotations):
        return "Calico has IPv4 only on Windows"
    return ""


def _nodes(pods: Sequence[Pod]) -> str:
    return "nodes " + ", ".join(sorted({pod.node.name for pod in pods}))


async def family_service(ctx: Context, os: Os, family: Family) -> FamilyService:
    """The service over the servers of an OS that has addresses of one family only."""
    wanted = {"ipFamilyPolicy": "SingleStack", "ipFamilies": [family]}
    return await _service(ctx, f"{APPS[os]}-{family.lower()}", os, wanted)


async def dual_service(ctx: Context, os: Os) -> FamilyService:
    """The service over the servers of an OS that has an address of each family."""
    return await _service(ctx, f"{APPS[os]}-both", os, {"ipFamilyPolicy": "RequireDualStack"})


async def _service(ctx: Context, name: str, os: Os, wanted: Object) -> FamilyService:
    async def make(world: World) -> FamilyService:
        namespace = await world.namespace(SHARED)
        try:
            raw = await namespace.create(SERVICES, service_object(name, {"app": APPS[os]}, **wanted))
        except Invalid as refusal:
            raise NotApplicable(
                f"the cluster has service addresses of one IP family only: {refusal.message}; it can be judged once "
                f"the API server has a --service-cluster-ip-range of each"
            ) from None
        return _read(raw)

    return await ctx.world.fixtures.once(f"service {name}", make)


def _read(raw: Object) -> FamilyService:
    spec = raw["spec"]
    http, udp, second = spec["ports"]
    return FamilyService(
        raw["metadata"]["name"],
        {family_of(address): address for address in spec["clusterIPs"]},
        http["port"],
        udp["port"],
        second["port"],
        http.get("nodePort") or 0,
        udp.get("nodePort") or 0,
        second.get("nodePort") or 0,
    )

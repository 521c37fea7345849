"""Several Windows pods on one node run at once and each has an address of its own."""

from winready.checks.context import Context
from winready.checks.registry import check
from winready.cluster.commands import NETEXEC_HTTP, NETEXEC_UDP
from winready.cluster.failures import CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.pods import Pod, netexec_container, pause_container, pinned, pod_object, pod_spec
from winready.cluster.probes import every
from winready.cluster.resources import PODS

SECOND_PORT = NETEXEC_HTTP + 10


@check("core.network.distinct-pod-ips", fixtures=("clients", "servers"), expected_s=160, windows_pods_per_node=2)
async def distinct_pod_ips(ctx: Context) -> None:
    """On each judged node: several pods at once, all addresses distinct, two containers of one pod sharing theirs.

    No address may be on another node either: two nodes that hand out the same ones look sound each by itself.
    """
    # Asked for before anything else is waited for: they start beside the shared pods.
    for number, node in enumerate(ctx.windows_nodes, 1):
        await _create(ctx, node, number)
    client = (await ctx.clients("linux"))[0]
    shared = [*await ctx.clients("windows"), *await ctx.servers("windows")]
    owners = {address: f"node {node.name} itself" for node in ctx.nodes for address in node.addresses}
    nodes = enumerate(ctx.windows_nodes, 1)
    await every(*(_judge(ctx, node, number, client, shared, owners) for number, node in nodes))


async def _create(ctx: Context, node: Node, number: int) -> None:
    """A plain pod, and one with two containers."""
    namespace = await ctx.world.namespace("ips")
    containers = [
        netexec_container(ctx.settings),
        netexec_container(ctx.settings, name="second", http=SECOND_PORT),
    ]
    for name, content in ((f"one-{number}", [pause_container(ctx.settings)]), (f"two-{number}", containers)):
        spec = pinned(pod_spec("windows", content, ctx.settings, [node]), node)
        await namespace.create(PODS, pod_object(name, spec, ctx.settings))


async def _judge(ctx: Context, node: Node, number: int, client: Pod, shared: list[Pod], owners: dict[str, str]) -> None:
    namespace = await ctx.world.namespace("ips")
    plain, double = f"one-{number}", f"two-{number}"
    own = await every(namespace.ready_pod(plain), namespace.ready_pod(double))
    pods = ctx.witnesses([*own, *(pod for pod in shared if pod.node.name == node.name)])
    _require_distinct(ctx, node, pods, owners)
    servers = [pod for pod in pods if pod.name != plain]
    ports = [(pod, NETEXEC_HTTP) for pod in servers] + [(own[1], SECOND_PORT)]
    await every(
        *(
            ctx.probe.reach(
                client,
                pod.address,
                port,
                [pod],
                f"Windows pod {pod.name}",
                window=ctx.times.pod_reachable,
                hint=f"look at the addresses that the network plug-in hands out on node {node.name}",
                udp=NETEXEC_UDP + port - NETEXEC_HTTP,
                hold=ctx.times.observe,
            )
            for pod, port in ports
        )
    )


def _require_distinct(ctx: Context, node: Node, pods: list[Pod], owners: dict[str, str]) -> None:
    """``owners`` knows whose addresses were seen so far, on any node."""
    ctx.evidence.fact(f"addresses on {node.name}", {pod.name: list(pod.addresses) for pod in pods})
    for pod in pods:
        for address in pod.addresses:
            if address in owners:
                raise CheckFailed(
                    f"Windows pod {pod.name} on node {node.name} has the address {address}, "
                    f"which {owners[address]} has, too",
                    expected="an address of its own for every pod",
                    observed=f"{address} twice",
                    next_step=f"look at the address management of the network plug-in on node {node.name}",
                )
            owners[address] = f"pod {pod.name} on node {node.name}"

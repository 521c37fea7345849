"""A Windows node goes on taking part after a reboot: it is Ready, takes a new pod, and that pod is reached and reaches.

One reboot serves this and `core.storage.reboot-recovery`; a node that was rebooted for that one is not rebooted again.
"""

from winready.checks.context import Context
from winready.checks.fixtures import Service, read_service, service_object
from winready.checks.reboots import EXPECTED, FROM_LINUX, TO_LINUX, reboot, require_back, spare_others
from winready.checks.registry import check
from winready.cluster.commands import NETEXEC_HTTP
from winready.cluster.errors import ExecFailed
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.pods import Pod, netexec_container, pinned, pod_object, pod_spec
from winready.cluster.probes import Try, every
from winready.cluster.resources import PODS, SERVICES

EARLIER = "core.storage.reboot-recovery"


@check(
    "extend.hostprocess.node-rejoins",
    fixtures=("clients", "servers"),
    expected_s=60,
    expected_s_per_node=400,
    windows_pods_per_node=4,
    spared_s_per_node={EARLIER: 340},
)
async def node_rejoins(ctx: Context) -> None:
    """Stop at the first node that does not come back: the others stay as they are."""
    clients = {pod.node.name: pod for pod in await ctx.clients("windows")}
    client, server = (await ctx.clients("linux"))[0], (await ctx.servers("linux"))[0]
    known = {node.name: ctx.world.reboots[node.name] for node in ctx.windows_nodes if node.name in ctx.world.reboots}
    for name, found in known.items():
        seen = Try(found.back, f"{found.seen} (rebooted for {EARLIER})")
        ctx.probe.record(f"node {name} has been rebooted", seen, clients[name], [], EXPECTED, name)
        require_back(ctx, found)
    waiting = [(number, node) for number, node in enumerate(ctx.windows_nodes, 1) if node.name not in known]
    if waiting:
        await spare_others(ctx)
        await every(*(_require_part(ctx, node, f"before-{number}", client, server) for number, node in waiting))
    namespace = await ctx.world.namespace("rejoin")
    for number, node in enumerate(ctx.windows_nodes, 1):
        if node.name not in known:
            await reboot(ctx, namespace, node, clients[node.name])
        await _takes_part(ctx, node, f"again-{number}", client, server)


async def _require_part(ctx: Context, node: Node, name: str, client: Pod, server: Pod) -> None:
    """Control: the node takes part before it is rebooted."""
    try:
        pod, service = await _new_pod(ctx, node, name)
        await _talks(ctx, pod, service, client, server, "before its reboot", ctx.times.service_reachable)
    except CheckFailed as failure:
        raise CheckBlocked(failure.reason, next_step="repair the pod network first; no node was rebooted") from None


async def _takes_part(ctx: Context, node: Node, name: str, client: Pod, server: Pod) -> None:
    """Pods that the node never had start there; one is reached through a service, and reaches a pod elsewhere."""
    window = ctx.times.reboot_recovery
    # The other one only has to be there: two pods with one address are no trouble while there is one.
    names = (name, f"{name}-beside")
    try:
        (pod, service), _ = await every(*(_new_pod(ctx, node, each, window) for each in names))
    except (CheckBlocked, ExecFailed) as trouble:
        namespace = await ctx.world.namespace("rejoin")
        raise CheckFailed(
            f"after the reboot of node {node.name} a new pod does not start there, or takes no commands: {trouble}",
            expected="new pods start",
            observed=namespace.why_not_ready(name),
            next_step=f"look at the container runtime and the network plug-in on node {node.name}",
        ) from None
    try:
        await _talks(ctx, pod, service, client, server, "after its reboot", window)
    except CheckFailed as failure:
        lacking = {FROM_LINUX, TO_LINUX} - ctx.world.reboots[node.name].working
        if not lacking:
            raise
        raise CheckBlocked(
            f"{failure.reason}; what {EARLIER} tried before it did not work either ({', '.join(sorted(lacking))})",
            next_step=f"repair the pod network of node {node.name} first",
        ) from None


async def _new_pod(ctx: Context, node: Node, name: str, seconds: float | None = None) -> tuple[Pod, Service]:
    """A pod on the node, and a service over it alone."""
    namespace = await ctx.world.namespace("rejoin")
    spec = pinned(pod_spec("windows", [netexec_container(ctx.settings)], ctx.settings, [node]), node)
    await namespace.create(PODS, pod_object(name, spec, ctx.settings, app=name))
    service = read_service(await namespace.create(SERVICES, service_object(name, {"app": name})))
    return ctx.witnesses([await namespace.ready_pod(name, seconds=seconds)])[0], service


async def _talks(ctx: Context, pod: Pod, service: Service, client: Pod, server: Pod, when: str, window: float) -> None:
    node = pod.node.name
    hint, what = f"look at the network plug-in on node {node}", f"new Windows pod {pod.name} on node {node} {when}"
    linux = f"Linux pod {server.name} from node {node} {when}"
    await every(
        ctx.probe.reach(client, service.cluster_ip, service.port, [pod], what, window=window, hint=hint),
        ctx.probe.reach(pod, server.address, NETEXEC_HTTP, [server], linux, window=window, hint=hint),
    )

"""Services in ways that no requirement asks for, and which network the nodes have."""

from __future__ import annotations

from winready.checks.context import Context
from winready.checks.features.looking import require
from winready.checks.fixtures import SHARED, Service, read_service, service_object
from winready.checks.hosting import record_script, run_script
from winready.checks.registry import Sight, feature_check
from winready.cluster.client import Object
from winready.cluster.commands import DIAL_MOST, Ask, dial
from winready.cluster.failures import NotApplicable
from winready.cluster.pods import Pod, idle_container, pinned, pod_object, pod_spec
from winready.cluster.probes import Try, every
from winready.cluster.resources import DAEMON_SETS, NODES, PODS, SERVICES
from winready.spec.windows import build_number

AFFINITY_SINCE = 20348
"""The first build of Windows that keeps a client with its pod."""
STICKS = 3 * DIAL_MOST
NETWORKS = 'Get-HnsNetwork | % {"network=$($_.Name) is $($_.Type)"}; exit 0'
PLUGINS = {
    "cni-azure": ("azure-cns-win", "kubernetes.azure.com/"),
    "cni-ovn": ("ovnkube-node-windows", "k8s.ovn.org/"),
    "cni-flannel": ("kube-flannel-ds-windows", "flannel.alpha.coreos.com/"),
    "cni-calico": ("calico-node-windows", "projectcalico.org/"),
}
"""How the DaemonSets of network plugins for Windows nodes begin, and the annotations of nodes that they run on."""


async def _service(ctx: Context, name: str, **more: object) -> Service:
    """One more service over the shared Windows servers."""
    namespace = await ctx.world.namespace(SHARED)
    return read_service(await namespace.create(SERVICES, service_object(name, {"app": "ws"}, **more)))


def _near(servers: list[Pod], node: str) -> list[Pod]:
    return [server for server in servers if server.node.name == node]


@feature_check("internal-traffic-policy", fixtures=("clients", "servers"), expected_s=30)
async def internal_traffic_policy(ctx: Context) -> Sight:
    """With internalTrafficPolicy Local only pods of the client's own node answer at the cluster IP."""
    servers, clients = await ctx.servers("windows"), await ctx.clients("windows")
    service = await _service(ctx, "near", internalTrafficPolicy="Local")
    what = "the service for pods of its own node"
    await every(
        *(
            ctx.probe.reach(
                client, service.cluster_ip, service.port, _near(servers, client.node.name), what,
                window=ctx.times.service_reachable,
            )
            for client in clients
        )
    )  # fmt: skip
    return Sight(True, "only pods of the same node answer")


@feature_check("local-traffic-policy", fixtures=("clients", "servers"), expected_s=30)
async def local_traffic_policy(ctx: Context) -> Sight:
    """With externalTrafficPolicy Local only pods of the node answer at its NodePort."""
    servers, clients = await ctx.servers("windows"), await ctx.clients("linux")
    service = await _service(ctx, "here", externalTrafficPolicy="Local")
    if not clients:
        raise NotApplicable("nothing outside the Windows nodes is there to ask from")
    await every(
        *(
            ctx.probe.reach(
                clients[0], node.addresses[0], service.node_port, _near(servers, node.name),
                f"the NodePort of node {node.name} for pods of that node", window=ctx.times.service_reachable,
            )
            for node in ctx.windows_nodes
        )
    )  # fmt: skip
    return Sight(True, "at a NodePort only pods of that node answer")


@feature_check("session-affinity", fixtures=("clients", "servers"), expected_s=30)
async def session_affinity(ctx: Context) -> Sight:
    """With affinity a client is always answered by the same pod."""
    servers = await ctx.servers("windows")
    clients = [pod for pod in await ctx.clients("windows") if (build_number(pod.node.build) or 0) >= AFFINITY_SINCE]
    if not clients:
        raise NotApplicable("no judged node is Windows Server 2022 or later")
    for node in ctx.windows_nodes:
        if node.name not in {pod.node.name for pod in clients}:
            ctx.leave_out(node, f"it is {node.build}, and affinity begins with 10.0.{AFFINITY_SINCE}")
    service = await _service(ctx, "sticky", sessionAffinity="ClientIP")
    what = "the service with affinity"

    async def look(client: Pod) -> None:
        await ctx.probe.reach(
            client, service.cluster_ip, service.port, servers, what, window=ctx.times.service_reachable, hold=0
        )
        asks = [Ask(service.cluster_ip, service.port, DIAL_MOST)] * (STICKS // DIAL_MOST)
        names = [name for dialled in await ctx.probe.dial(client, asks) for name in dialled.answers]
        seen = f"{len(names)} answers, of {', '.join(sorted(set(names))) or 'nobody'}"
        step = f"look at the service proxy of node {client.node.name}"
        command = dial(client.os, service.cluster_ip, service.port, DIAL_MOST)
        require(ctx, client, f"{STICKS} connections to {what}", len(set(names)) == 1, seen, "answers of one pod",
                command=command, next_step=step)  # fmt: skip

    await every(*(look(client) for client in clients))
    return Sight(True, "a client is answered by the same pod each time")


@feature_check("svc-externalname", fixtures=("clients", "servers", "services"), expected_s=30)
async def external_name(ctx: Context) -> Sight:
    """A name in the namespace leads to a service by its full name."""
    namespace = await ctx.world.namespace(SHARED)
    servers, service = await ctx.servers("linux"), await ctx.service("linux")
    if not servers:
        raise NotApplicable("no Linux node is there to answer")
    target = f"{service.name}.{namespace.name}.svc.{await ctx.world.cluster_domain()}"
    spec = {"type": "ExternalName", "externalName": target}
    await namespace.create(SERVICES, {"metadata": {"name": "outside"}, "spec": spec})
    await every(
        *(
            ctx.probe.reach(
                client, "outside", service.port, servers, f"the external name of {target}",
                window=ctx.times.service_reachable, hint=f"look at name resolution in pods of node {client.node.name}",
            )
            for client in await ctx.clients("windows")
        )
    )  # fmt: skip
    return Sight(True, "an external name leads where it should")


@feature_check("host-network", expected_s=30, windows_pods_per_node=1)
async def host_network(ctx: Context) -> Sight:
    """An ordinary pod that asks for the network of its node gets an address of its own."""
    namespace = await ctx.world.namespace("hostnet")
    works = []
    for number, node in enumerate(ctx.windows_nodes, 1):
        spec = pod_spec("windows", [idle_container(ctx.settings)], ctx.settings, [node], hostNetwork=True)
        await namespace.create(PODS, pod_object(f"hostnet-{number}", pinned(spec, node), ctx.settings))
    for number, node in enumerate(ctx.windows_nodes, 1):
        (pod,) = ctx.witnesses([await namespace.ready_pod(f"hostnet-{number}")])
        on_host = pod.address in node.addresses
        seen = f"{pod.address}, that of node {node.name}" if on_host else f"{pod.address}, its own"
        ctx.probe.record(f"{pod.name}: its address", Try(True, seen), pod, [], "", node.name)
        works += [f"pod {pod.name} has the address of node {node.name}"] if on_host else []
    return Sight(bool(works), "; ".join(works) or "hostNetwork is ignored: pods have addresses of their own")


async def _network(ctx: Context, kind: str) -> Sight:
    """Which kind of network the host networking service of each node has for pods."""
    if lack := ctx.world.inventory.missing.get("hostprocess"):
        raise NotApplicable(f"only a HostProcess pod could look: {lack}")
    for node in ctx.windows_nodes:
        host = await ctx.host(node)
        result = await run_script(ctx, host, NETWORKS)
        text = "; ".join(line for line in result.stdout.decode(errors="replace").splitlines() if "network=" in line)
        if f"is {kind}".casefold() not in text.casefold():
            raise NotApplicable(f"node {node.name} has no {kind} network ({text or 'none at all'})")
        record_script(ctx, f"networks of node {node.name}", True, text, host, NETWORKS, f"one of type {kind}")
    return Sight(True, f"services are reached over {kind} networks")


@feature_check("kube-proxy-l2bridge", fixtures=("hosts",), expected_s=15)
async def kube_proxy_l2bridge(ctx: Context) -> Sight:
    """The nodes have a bridge for their pods."""
    return await _network(ctx, "L2Bridge")


@feature_check("kube-proxy-overlay", fixtures=("hosts",), expected_s=15)
async def kube_proxy_overlay(ctx: Context) -> Sight:
    """The nodes have an overlay for their pods."""
    return await _network(ctx, "Overlay")


async def _agents(ctx: Context, daemon_set: Object) -> tuple[str, bool]:
    """How many of the agents of a plugin are ready, and whether all are, soon."""
    metadata, text, well = daemon_set["metadata"], "", False
    async for _ in ctx.timing.attempts(ctx.times.endpoints_ready):
        found = await ctx.world.client.get(DAEMON_SETS, metadata["name"], metadata["namespace"])
        status = found.get("status") or {}
        ready, wanted = status.get("numberReady", 0), status.get("desiredNumberScheduled", 0)
        text, well = f"DaemonSet {metadata['name']}: {ready} of {wanted} ready", ready == wanted > 0
        if well:
            break
    return text, well


async def _plugin(ctx: Context, feature: str) -> Sight:
    """Whether a network plugin is on the judged nodes, by its DaemonSet or what it wrote to the nodes."""
    prefix, mark = PLUGINS[feature]
    sets = [each for each in await ctx.world.client.list(DAEMON_SETS) if each["metadata"]["name"].startswith(prefix)]
    marks = {}
    for node in ctx.windows_nodes:
        raw = await ctx.world.client.get(NODES, node.name)
        marks[node.name] = [key for key in raw["metadata"].get("annotations") or {} if key.startswith(mark)]
        if not sets and not marks[node.name]:
            raise NotApplicable(f"no DaemonSet {prefix}* is there, and no annotation {mark}* on node {node.name}")
    agents, well = await _agents(ctx, sets[0]) if sets else ("", True)
    for pod in await ctx.clients("windows"):
        seen = agents or f"annotation {marks[pod.node.name][0]}"
        require(ctx, pod, "the network plugin of its node", well, seen, "running on every node")
    return Sight(True, "its agents run, and pods talk to each other over it")


@feature_check("cni-azure", fixtures=("clients",))
async def cni_azure(ctx: Context) -> Sight:
    """Azure CNI."""
    return await _plugin(ctx, "cni-azure")


@feature_check("cni-ovn", fixtures=("clients",))
async def cni_ovn(ctx: Context) -> Sight:
    """OVN-Kubernetes."""
    return await _plugin(ctx, "cni-ovn")


@feature_check("cni-flannel", fixtures=("clients",))
async def cni_flannel(ctx: Context) -> Sight:
    """Flannel."""
    return await _plugin(ctx, "cni-flannel")


@feature_check("cni-calico", fixtures=("clients",))
async def cni_calico(ctx: Context) -> Sight:
    """Calico for Windows."""
    return await _plugin(ctx, "cni-calico")

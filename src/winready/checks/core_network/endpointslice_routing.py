"""A service is routed by its EndpointSlices, and follows them when they change."""

from typing import Any

from winready.checks.context import Context
from winready.checks.fixtures import read_service, service_object
from winready.checks.registry import check
from winready.cluster.commands import NETEXEC_HTTP
from winready.cluster.failures import CheckFailed
from winready.cluster.pods import Pod
from winready.cluster.probes import every
from winready.cluster.resources import ENDPOINT_SLICES, SERVICES

SERVICE_LABEL = "kubernetes.io/service-name"


@check("core.network.endpointslice-routing", fixtures=("clients", "servers", "services"), expected_s=60)
async def endpointslice_routing(ctx: Context) -> None:
    """A slice of our own leads a service without selector to one Windows pod, then, edited, only to another."""
    namespace = await ctx.shared_namespace()
    servers = await ctx.servers("windows")
    await ctx.service("windows")
    await _selector_service_has_slices(ctx, servers)
    first, second = servers[0], servers[1]
    raw = service_object("hand-made", None)
    raw["spec"]["ports"] = raw["spec"]["ports"][:1]
    service = read_service(await namespace.create(SERVICES, raw))
    await namespace.create(ENDPOINT_SLICES, _slice(first))
    await _lead_to(ctx, service.cluster_ip, service.port, first, "a hand-made EndpointSlice")
    await ctx.world.client.patch(
        ENDPOINT_SLICES, "hand-made", {"endpoints": _slice(second)["endpoints"]}, namespace.name, kind="merge"
    )
    await _lead_to(ctx, service.cluster_ip, service.port, second, "the EndpointSlice after it was changed")


def _slice(pod: Pod) -> dict[str, Any]:
    return {
        "metadata": {"name": "hand-made", "labels": {SERVICE_LABEL: "hand-made"}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": NETEXEC_HTTP, "protocol": "TCP"}],
        "endpoints": [{"addresses": [pod.address], "conditions": {"ready": True}, "nodeName": pod.node.name}],
    }


async def _lead_to(ctx: Context, address: str, port: int, server: Pod, what: str) -> None:
    clients = [*await ctx.clients("windows"), *await ctx.clients("linux")]
    window = ctx.times.service_reachable
    what = f"{server.name} through {what}"
    await every(*(ctx.probe.reach(client, address, port, [server], what, window=window) for client in clients))


async def _selector_service_has_slices(ctx: Context, servers: list[Pod]) -> None:
    namespace = await ctx.shared_namespace()
    wanted = {pod.address for pod in servers}
    listed: set[str] = set()
    async for _ in ctx.timing.attempts(ctx.times.endpoints_ready):
        slices = await ctx.world.client.list(ENDPOINT_SLICES, namespace.name, labels=f"{SERVICE_LABEL}=ws")
        listed = {address for item in slices for end in item.get("endpoints") or [] for address in end["addresses"]}
        if wanted <= listed:
            break
    ctx.evidence.fact("EndpointSlice addresses of service ws", sorted(listed))
    missing = [f"{pod.name} ({pod.address})" for pod in servers if pod.address not in listed]
    if missing:
        raise CheckFailed(
            f"the EndpointSlices of service ws do not list {', '.join(missing)}, which are Ready",
            expected=", ".join(sorted(wanted)),
            observed=", ".join(sorted(listed)) or "no address",
            next_step="look at the endpointslice controller in kube-controller-manager",
        )

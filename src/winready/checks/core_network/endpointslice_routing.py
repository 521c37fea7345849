"""A service is routed by its EndpointSlices, and follows them when they change."""

from typing import Any

from winready.checks.context import Context
from winready.checks.fixtures import Service, read_service, service_object
from winready.checks.reaching import reach_service
from winready.checks.registry import check
from winready.cluster.commands import NETEXEC_HTTP, NETEXEC_UDP
from winready.cluster.failures import CheckFailed
from winready.cluster.pods import Pod
from winready.cluster.probes import every
from winready.cluster.resources import ENDPOINT_SLICES, SERVICES

SERVICE_LABEL = "kubernetes.io/service-name"


@check("core.network.endpointslice-routing", fixtures=("clients", "servers", "services"), expected_s=180)
async def endpointslice_routing(ctx: Context) -> None:
    """A slice of our own leads a service without selector to one Windows pod, then, edited, only to another.

    The pod that it does not lead to is listed as well, as not ready. Another service has two slices: both answer.
    """
    namespace = await ctx.shared_namespace()
    servers = await ctx.behind("windows")
    await ctx.service("windows")
    await _selector_service_has_slices(ctx, servers)
    first, second = servers[0], servers[1]
    service = read_service(await namespace.create(SERVICES, service_object("hand-made", None)))
    await namespace.create(ENDPOINT_SLICES, _slice("hand-made", first, second))
    # The slices are there before their service: however slow a proxy is, it has both or nothing to program.
    for number, pod in enumerate((first, second), 1):
        await namespace.create(ENDPOINT_SLICES, _slice(f"two-{number}", pod, service="two"))
    two = read_service(await namespace.create(SERVICES, service_object("two", None)))
    await every(
        _lead_to(ctx, service, [first], "a hand-made EndpointSlice"),
        _lead_to(ctx, two, [first, second], "two EndpointSlices"),
    )
    await _change(ctx, _slice("hand-made", second, first))
    await _lead_to(ctx, service, [second], "the EndpointSlice after it was changed", hold=ctx.times.observe)


async def _change(ctx: Context, wanted: dict[str, Any]) -> None:
    """Give a slice other endpoints."""
    namespace, ends = await ctx.shared_namespace(), {"endpoints": wanted["endpoints"]}
    await ctx.world.client.patch(ENDPOINT_SLICES, wanted["metadata"]["name"], ends, namespace.name, kind="merge")


def _slice(name: str, pod: Pod, unready: Pod | None = None, service: str = "hand-made") -> dict[str, Any]:
    ends = [(pod, True)] + ([(unready, False)] if unready else [])
    return {
        "metadata": {"name": name, "labels": {SERVICE_LABEL: service}},
        "addressType": "IPv4",
        "ports": [
            {"name": "http", "port": NETEXEC_HTTP, "protocol": "TCP"},
            {"name": "udp", "port": NETEXEC_UDP, "protocol": "UDP"},
            {"name": "second", "port": NETEXEC_HTTP, "protocol": "TCP"},
        ],
        "endpoints": [
            {"addresses": [each.address], "conditions": {"ready": ready, "serving": ready}, "nodeName": each.node.name}
            for each, ready in ends
        ],
    }


async def _lead_to(ctx: Context, service: Service, servers: list[Pod], what: str, *, hold: float | None = None) -> None:
    clients = [*await ctx.clients("windows"), *await ctx.clients("linux")]
    names = " and ".join(server.name for server in servers)
    await reach_service(ctx, clients, service, servers, f"{names} through {what}", hold=hold)


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

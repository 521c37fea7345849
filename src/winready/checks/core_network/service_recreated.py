"""A service that is deleted and created again balances over its Windows pods again."""

from winready.checks.context import Context
from winready.checks.core_network.reachable import reach_service
from winready.checks.fixtures import Service, read_service, service_object
from winready.checks.registry import check
from winready.checks.workloads import netexec_deployment
from winready.cluster.commands import connect
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.namespaces import Namespace
from winready.cluster.pods import Pod
from winready.cluster.probes import Try, describe, every
from winready.cluster.resources import DEPLOYMENTS, SERVICES

REPLICAS = 2


@check("core.network.service-recreated", fixtures=("clients", "services"), expected_s=120, windows_pods=REPLICAS)
async def service_recreated(ctx: Context) -> None:
    """Reach it, delete it, see it gone; create it anew, then again with its old address and port: reached each time."""
    namespace = await ctx.world.namespace("re")
    await namespace.create(DEPLOYMENTS, netexec_deployment(ctx.world, "back", REPLICAS))
    first = read_service(await namespace.create(SERVICES, service_object("again", {"app": "back"})))
    servers = ctx.witnesses(await namespace.ready_pods({"app": "back"}, REPLICAS))
    clients = [*await ctx.clients("windows"), *await ctx.clients("linux")]
    control = await ctx.service("linux")
    await reach_service(ctx, clients, first, servers, "the service")
    await _gone(ctx, namespace, clients, first, control)
    second = read_service(await namespace.create(SERVICES, service_object("again", {"app": "back"})))
    await reach_service(ctx, clients, second, servers, "the service created anew")
    await _gone(ctx, namespace, clients, second, control)
    await ctx.timing.pause(ctx.times.settle_after_delete)
    pinned = service_object("again", {"app": "back"}, clusterIP=first.cluster_ip)
    pinned["spec"]["ports"][0]["nodePort"] = first.node_port
    third = read_service(await namespace.create(SERVICES, pinned))
    await reach_service(ctx, clients, third, servers, "the service created again with its old address")


async def _gone(ctx: Context, namespace: Namespace, clients: list[Pod], service: Service, control: Service) -> None:
    await namespace.delete(SERVICES, service.name)
    await every(*(_silent(ctx, client, service, control) for client in clients))


async def _silent(ctx: Context, client: Pod, service: Service, control: Service) -> None:
    """The old address stops answering, while another service answers in the same round."""
    old, other = f"{service.cluster_ip}:{service.port}", f"{control.cluster_ip}:{control.port}"

    async def attempt() -> Try:
        dead = await ctx.probe.connects(client, old)
        alive = await ctx.probe.connects(client, other)
        if not alive.ok:
            return Try(False, f"the control service {other} does not answer either: {alive.seen}", alive.execution)
        return Try(not dead.ok, dead.seen if not dead.ok else "still answers", dead.execution)

    result = await ctx.probe.until(
        f"{client.name} no longer reaches the deleted service",
        attempt,
        window=ctx.times.service_gone,
        pod=client,
        command=connect(old),
        expected="no connection",
        target=old,
    )
    if result.ok:
        return
    if "control service" in result.seen:
        raise CheckBlocked(f"{describe(client)}: {result.seen}", next_step="repair services in general first")
    raise CheckFailed(
        f"{describe(client)} still reaches {old} {ctx.times.service_gone:g} s after its service was deleted",
        expected="no connection",
        observed=result.seen,
        next_step=f"the service proxy of node {client.node.name} keeps stale entries; look at its log",
    )

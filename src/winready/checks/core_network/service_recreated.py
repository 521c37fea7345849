"""A service that is deleted and created again balances over its Windows pods again."""

from winready.checks.context import Context
from winready.checks.core_network.recreated_names import reach_by_name
from winready.checks.core_network.service_gone import see_it_gone, still_answers
from winready.checks.fixtures import Service, read_service, service_object
from winready.checks.reaching import asked_by_others, reach_node_port, reach_service
from winready.checks.registry import check
from winready.checks.workloads import netexec_deployment
from winready.cluster.pods import Pod
from winready.cluster.probes import every
from winready.cluster.resources import DEPLOYMENTS, SERVICES

REPLICAS = 2
NAME = "again"


@check(
    "core.network.service-recreated",
    fixtures=("clients", "servers", "services"),
    expected_s=240,
    windows_pods=REPLICAS,
)
async def service_recreated(ctx: Context) -> None:
    """Reach it, delete it, see it gone; then anew with other pods, then again at its first address: reached each time.

    Other pods are behind it each time its tables might be those of an earlier life: who answers tells them apart.
    """
    namespace = await ctx.shared_namespace()
    await namespace.create(DEPLOYMENTS, netexec_deployment(ctx.world, "back", REPLICAS))
    first = read_service(await namespace.create(SERVICES, service_object(NAME, {"app": "back"})))
    pods = ctx.witnesses(await namespace.ready_pods({"app": "back"}, REPLICAS))
    others = await ctx.behind("windows")
    clients = [*await ctx.clients("windows"), *await ctx.clients("linux")]
    await _reached(ctx, clients, first, pods, "the service")
    await see_it_gone(ctx, namespace, clients, first)
    second = read_service(await namespace.create(SERVICES, service_object(NAME, {"app": "ws"})))
    await _reached(ctx, clients, second, others, "the service created anew")
    neighbour = await ctx.service("windows")
    knowing = await see_it_gone(ctx, namespace, clients, second, neighbour)
    await ctx.timing.pause(ctx.times.settle_after_delete)
    pinned = service_object(NAME, {"app": "ws"}, clusterIP=first.cluster_ip)
    node_ports = (first.node_port, first.udp_node_port, first.second_node_port)
    for port, number in zip(pinned["spec"]["ports"], node_ports, strict=True):
        port["nodePort"] = number
    third = read_service(await namespace.create(SERVICES, pinned))
    what = "the service created again with its old address"
    await _reached(ctx, clients, third, others, what, hold=ctx.times.observe)
    await every(*(still_answers(ctx, client, neighbour) for client in knowing))


async def _reached(
    ctx: Context, clients: list[Pod], service: Service, servers: list[Pod], what: str, *, hold: float = 0
) -> None:
    """By its cluster IP, its name and its NodePort; intermediate states need not hold for minutes."""
    await every(
        reach_service(ctx, clients, service, servers, what, hold=hold or ctx.times.hold),
        *(reach_by_name(ctx, client, service, servers, what) for client in clients),
        *(
            reach_node_port(ctx, client, node, service, servers, what, hold=hold)
            for client, node in asked_by_others(clients, ctx.nodes)
        ),
    )

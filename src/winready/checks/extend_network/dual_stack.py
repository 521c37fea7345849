"""Windows pods have addresses of both families and are reached by both."""

from collections.abc import Iterator

from winready.checks.context import Context
from winready.checks.extend_network.families import (
    FAMILIES,
    Side,
    address_of,
    clients_of_both,
    dual_service,
    servers_of_both,
)
from winready.checks.registry import check
from winready.cluster.commands import NETEXEC_HTTP, NETEXEC_UDP
from winready.cluster.pods import Pod
from winready.cluster.probes import every

FIXED = "1.33.8, 1.34.4, 1.35.1 and 1.36.0"
"""The first releases of kube-proxy whose balancers of both families do not mix on Windows (kubernetes#136240)."""


@check("extend.network.dual-stack", fixtures=("clients", "servers"), expected_s=60)
async def dual_stack(ctx: Context) -> None:
    """Every Windows pod has both, is reached by both from both systems, also behind a service that has both."""
    servers = await servers_of_both(ctx, "windows")
    windows, linux = await clients_of_both(ctx, "windows"), await clients_of_both(ctx, "linux")
    addresses = {pod.name: list(pod.addresses) for pod in (*windows.everyone, *servers.everyone)}
    ctx.evidence.fact("addresses of Windows pods", addresses)
    clients = [*windows.pods, *linux.pods]
    await every(
        *windows.complaints(),
        *servers.complaints(),
        *(
            ctx.probe.reach(
                client,
                address_of(server.addresses, family),
                NETEXEC_HTTP,
                [server],
                f"Windows pod {server.name} by {family}",
                window=ctx.times.pod_reachable,
                hint=f"look at the {family} routes of the pod network between nodes {client.node.name} and "
                f"{server.node.name}",
                udp=NETEXEC_UDP,
            )
            for family in FAMILIES
            for client, server in _pairs(windows.pods, linux.pods, servers.pods)
        ),
    )
    await _by_one_service(ctx, clients, servers)


def _pairs(windows: list[Pod], linux: list[Pod], servers: list[Pod]) -> Iterator[tuple[Pod, Pod]]:
    """Each server from every Linux client, from a Windows pod of its own node and from one of another node."""
    for place, server in enumerate(servers):
        near = [client for client in windows if client.node.name == server.node.name][:1]
        far = [client for client in windows if client.node.name != server.node.name]
        for client in (*near, *far[place % len(far) :][:1], *linux) if far else (*near, *linux):
            yield client, server


async def _by_one_service(ctx: Context, clients: list[Pod], servers: Side) -> None:
    """A service that has an address of each family leads to the same pods by both."""
    service = await dual_service(ctx, "windows")
    await every(
        *(
            ctx.probe.reach(
                client,
                service.addresses[family],
                service.port,
                servers.of(family),
                f"the {family} address of a service of both families",
                window=ctx.times.service_reachable,
                everyone=True,
                hint=f"look at the service proxy on node {client.node.name} (kubelet {client.node.kubelet}); "
                f"kube-proxy keeps the balancers of both families apart on Windows since {FIXED}",
                udp=service.udp,
                also=(service.second,),
            )
            for client in clients
            for family in FAMILIES
        )
    )

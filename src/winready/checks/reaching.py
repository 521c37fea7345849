"""Services as every category reaches them: at all their ports, over TCP and UDP, by cluster IP and by NodePort."""

from __future__ import annotations

from winready.checks.context import Context
from winready.checks.fixtures import Service
from winready.cluster.commands import NETEXEC_HTTP, fetch
from winready.cluster.failures import CheckBlocked
from winready.cluster.inventory import Node
from winready.cluster.pods import Pod
from winready.cluster.probes import describe, every


async def reach_service(
    ctx: Context,
    clients: list[Pod],
    service: Service,
    servers: list[Pod],
    what: str,
    *,
    hold: float | None = None,
    keep: bool = False,
) -> None:
    """Every client is answered by each of the servers at all ports of the service's cluster IP, and goes on to be.

    ``keep``: one connection of each lasts meanwhile.
    """
    await every(
        *(
            ctx.probe.reach(
                client,
                service.cluster_ip,
                service.port,
                servers,
                what,
                window=ctx.times.service_reachable,
                everyone=True,
                udp=service.udp_port,
                also=service.also,
                hold=hold,
                keep=keep,
            )
            for client in clients
        )
    )


async def reach_node_port(
    ctx: Context,
    client: Pod,
    node: Node,
    service: Service,
    servers: list[Pod],
    what: str,
    *,
    hold: float,
    everyone: bool = False,
    keep: bool = False,
) -> None:
    """The client reaches all ports of the service on that node, over TCP and UDP; ``keep``: and a connection lasts."""
    if not node.addresses:
        raise CheckBlocked(f"node {node.name} has no InternalIP address to try the NodePort on")
    kind = "Windows" if node.windows else "Linux"
    await ctx.probe.reach(
        client,
        node.addresses[0],
        service.node_port,
        servers,
        f"{what} through the NodePort of {kind} node {node.name}",
        window=ctx.times.service_reachable,
        everyone=everyone,
        hint=f"look at the service proxy and the firewall of node {node.name}",
        udp=service.udp_node_port,
        also=service.also_on_nodes,
        hold=hold,
        keep=keep,
    )


def asked_by_others(clients: list[Pod], nodes: list[Node]) -> list[tuple[Pod, Node]]:
    """For each node one client on another; they take turns, so that each node is asked and each client asks."""
    pairs = []
    for number, node in enumerate(node for node in nodes if node.addresses):
        others = [client for client in clients if client.node.name != node.name]
        if others:
            pairs.append((others[number % len(others)], node))
    return pairs


async def require_reachable_pods(ctx: Context, clients: list[Pod], servers: list[Pod]) -> None:
    """Control: every client reaches every server by its first pod IP, or what stands before them cannot be judged."""
    await every(*(_require(ctx, client, server) for client in clients for server in servers))


async def _require(ctx: Context, client: Pod, server: Pod) -> None:
    host = f"[{server.address}]" if ":" in server.address else server.address
    url = f"http://{host}:{NETEXEC_HTTP}/hostname"
    result = await ctx.probe.until(
        f"control: {client.name} reaches {server.name} by pod IP",
        lambda: ctx.probe.fetch_name(client, url, [server.name]),
        window=ctx.times.pod_reachable,
        pod=client,
        command=fetch(client.os, url),
        expected=server.name,
        target=f"{server.address}:{NETEXEC_HTTP}",
    )
    if not result.ok:
        raise CheckBlocked(
            f"{describe(client)} does not reach {describe(server)} even by its pod IP {server.address}: {result.seen}",
            next_step="repair the pod network between these nodes first",
        )

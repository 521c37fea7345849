"""Traffic to one NodePort reaches each of the ten Windows pods behind it."""

from __future__ import annotations

from winready.checks.context import Context
from winready.checks.registry import check
from winready.cluster.failures import CheckBlocked
from winready.cluster.inventory import Node
from winready.cluster.pods import Pod
from winready.cluster.probes import every


@check("core.concurrent.ten-pods-nodeport", fixtures=("clients", "ten"), expected_s=30)
async def ten_pods_nodeport(ctx: Context) -> None:
    """The NodePort of each node, asked by a client of each system on another node, leads to all ten."""
    pods, service = await ctx.world.fixtures.ten()
    ctx.witnesses(pods)
    clients = [await ctx.clients("windows"), await ctx.clients("linux")]
    pairs = [pair for same_os in clients for pair in _pairs(same_os, ctx.nodes)]
    if not pairs:
        raise CheckBlocked("there is no node besides the clients' own to try the NodePort on")
    await every(
        *(
            ctx.probe.reach(
                client,
                node.addresses[0],
                service.node_port,
                pods,
                f"ten Windows pods through the NodePort of node {node.name}",
                window=ctx.times.service_reachable,
                everyone=True,
                hint=f"look at the service proxy and the firewall of node {node.name}",
            )
            for client, node in pairs
        )
    )


def _pairs(clients: list[Pod], nodes: list[Node]) -> list[tuple[Pod, Node]]:
    """For each node one client on another; they take turns, so that each node is asked and each client asks."""
    pairs = []
    for number, node in enumerate(node for node in nodes if node.addresses):
        others = [client for client in clients if client.node.name != node.name]
        if others:
            pairs.append((others[number % len(others)], node))
    return pairs

"""Traffic to one NodePort reaches each of the ten Windows pods behind it."""

from __future__ import annotations

from winready.checks.context import Context
from winready.checks.reaching import asked_by_others, reach_node_port
from winready.checks.registry import check
from winready.cluster.failures import CheckBlocked
from winready.cluster.probes import every


@check("core.concurrent.ten-pods-nodeport", fixtures=("clients", "ten"), expected_s=150)
async def ten_pods_nodeport(ctx: Context) -> None:
    """The NodePort of each node, asked by a client of each system on another node, leads to all ten."""
    pods, service = await ctx.world.fixtures.ten()
    ctx.witnesses(pods)
    clients = [await ctx.clients("windows"), await ctx.clients("linux")]
    pairs = [pair for same_os in clients for pair in asked_by_others(same_os, ctx.nodes)]
    if not pairs:
        raise CheckBlocked("there is no node besides the clients' own to try the NodePort on")
    what, hold = "ten Windows pods", ctx.times.observe
    await every(
        *(reach_node_port(ctx, client, node, service, pods, what, hold=hold, everyone=True) for client, node in pairs)
    )

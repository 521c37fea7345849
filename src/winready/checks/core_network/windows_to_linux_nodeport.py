"""A Windows container reaches Linux pods through a NodePort."""

from winready.checks.context import Context
from winready.checks.core_network.nodeports import reach_on_every_node
from winready.checks.registry import check


@check("core.network.windows-to-linux-nodeport", fixtures=("clients", "servers", "services"), expected_s=150)
async def windows_to_linux_nodeport(ctx: Context) -> None:
    """From every judged Windows node, the NodePort of the Linux pods answers on every other node."""
    servers = await ctx.servers("linux")
    service = await ctx.service("linux")
    clients, control = await ctx.clients("windows"), await ctx.clients("linux")
    await reach_on_every_node(ctx, clients, service, servers, "the Linux pods", control)

"""A Linux container reaches Windows pods through a NodePort."""

from winready.checks.context import Context
from winready.checks.core_network.nodeports import reach_on_every_node
from winready.checks.reaching import require_reachable_pods
from winready.checks.registry import check


@check("core.network.linux-to-windows-nodeport", fixtures=("clients", "servers", "services"), expected_s=150)
async def linux_to_windows_nodeport(ctx: Context) -> None:
    """From every Linux client, the NodePort of the Windows pods answers on every other node."""
    servers = await ctx.behind("windows")
    service = await ctx.service("windows")
    clients, control = await ctx.clients("linux"), await ctx.clients("windows")
    await require_reachable_pods(ctx, clients, servers)
    await reach_on_every_node(ctx, clients, service, servers, "the Windows pods", control)

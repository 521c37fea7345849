"""A Linux container reaches a Windows pod by its pod IP."""

from winready.checks.context import Context
from winready.checks.core_network.reachable import reach_pods
from winready.checks.registry import check
from winready.cluster.commands import NETEXEC_HTTP


@check("core.network.linux-to-windows-pod-ip", fixtures=("clients", "servers"), expected_s=135)
async def linux_to_windows_pod_ip(ctx: Context) -> None:
    """Every Linux client reaches the Windows server of every judged node directly."""
    servers = await ctx.servers("windows")
    await reach_pods(ctx, await ctx.clients("linux"), servers)
    # How Windows pods reach each other is no requirement of its own; it helps to read the other results.
    for client in await ctx.clients("windows"):
        for server in servers:
            url = f"http://{server.address}:{NETEXEC_HTTP}/hostname"
            result = await ctx.probe.fetch_name(client, url, [server.name])
            place = "same node" if client.node.name == server.node.name else "other node"
            ctx.evidence.fact(f"{client.name} to {server.name} ({place})", result.seen)

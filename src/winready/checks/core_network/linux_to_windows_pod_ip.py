"""A Linux container reaches a Windows pod by its pod IP."""

import asyncio

from winready.checks.context import Context
from winready.checks.core_network.reachable import reach_pods
from winready.checks.reaching import RECORDED
from winready.checks.registry import check
from winready.cluster.commands import NETEXEC_HTTP
from winready.cluster.pods import Pod


@check("core.network.linux-to-windows-pod-ip", fixtures=("clients", "servers"), expected_s=135)
async def linux_to_windows_pod_ip(ctx: Context) -> None:
    """Every Linux client reaches the Windows server of every judged node directly."""
    servers = await ctx.servers("windows")
    await reach_pods(ctx, await ctx.clients("linux"), servers)
    # How Windows pods reach each other is no requirement of its own; it helps to read the other results.
    clients = await ctx.clients("windows")
    pairs = [(client, server) for client in clients for server in servers[:RECORDED]]
    await asyncio.gather(*(_record(ctx, client, server) for client, server in pairs[:RECORDED]))


async def _record(ctx: Context, client: Pod, server: Pod) -> None:
    url = f"http://{server.address}:{NETEXEC_HTTP}/hostname"
    result = await ctx.probe.fetch_name(client, url, [server.name])
    place = "same node" if client.node.name == server.node.name else "other node"
    ctx.evidence.fact(f"{client.name} to {server.name} ({place})", result.seen)

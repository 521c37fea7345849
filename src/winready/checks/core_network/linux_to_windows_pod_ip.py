"""A Linux container reaches a Windows pod by its pod IP."""

from winready.checks.context import Context
from winready.checks.registry import check
from winready.cluster.commands import NETEXEC_HTTP
from winready.cluster.probes import every


@check("core.network.linux-to-windows-pod-ip", fixtures=("clients", "servers"), expected_s=15)
async def linux_to_windows_pod_ip(ctx: Context) -> None:
    """Every Linux client reaches the Windows server of every judged node directly."""
    servers = await ctx.servers("windows")
    await every(
        *(
            ctx.probe.reach(
                client,
                server.address,
                NETEXEC_HTTP,
                [server],
                f"Windows pod {server.name}",
                window=ctx.times.pod_reachable,
                hint=f"look at the pod network between nodes {client.node.name} and {server.node.name}",
            )
            for client in await ctx.clients("linux")
            for server in servers
        )
    )
    # How Windows pods reach each other is no requirement of its own; it helps to read the other results.
    for client in await ctx.clients("windows"):
        for server in servers:
            result = await ctx.probe.fetch_name(
                client, f"http://{server.address}:{NETEXEC_HTTP}/hostname", [server.name]
            )
            place = "same node" if client.node.name == server.node.name else "other node"
            ctx.evidence.fact(f"{client.name} to {server.name} ({place})", result.seen)

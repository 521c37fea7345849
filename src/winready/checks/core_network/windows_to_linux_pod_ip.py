"""A Windows container reaches a Linux pod by its pod IP."""

from winready.checks.context import Context
from winready.checks.registry import check
from winready.cluster.commands import NETEXEC_HTTP
from winready.cluster.probes import every


@check("core.network.windows-to-linux-pod-ip", fixtures=("clients", "servers"), expected_s=15)
async def windows_to_linux_pod_ip(ctx: Context) -> None:
    """Every judged Windows node reaches every Linux server directly."""
    servers = await ctx.servers("linux")
    await every(
        *(
            ctx.probe.reach(
                client,
                server.address,
                NETEXEC_HTTP,
                [server],
                f"Linux pod {server.name}",
                window=ctx.times.pod_reachable,
                hint=f"look at the pod network between nodes {client.node.name} and {server.node.name}",
            )
            for client in await ctx.clients("windows")
            for server in servers
        )
    )

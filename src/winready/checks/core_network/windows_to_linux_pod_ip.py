"""A Windows container reaches a Linux pod by its pod IP."""

from winready.checks.context import Context
from winready.checks.core_network.reachable import reach_pods
from winready.checks.registry import check
from winready.cluster.probes import every


@check("core.network.windows-to-linux-pod-ip", fixtures=("clients", "servers"), expected_s=135)
async def windows_to_linux_pod_ip(ctx: Context) -> None:
    """Every judged Windows node reaches every Linux server directly, from two of its pods."""
    servers = await ctx.servers("linux")
    await every(
        reach_pods(ctx, await ctx.clients("windows"), servers),
        # What holds for the first pod of a node may hold for no other one; once is enough to see that.
        reach_pods(ctx, await ctx.servers("windows"), servers, hold=0),
    )

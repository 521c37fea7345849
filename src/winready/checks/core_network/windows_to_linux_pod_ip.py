"""A Windows container reaches a Linux pod by its pod IP."""

from winready.checks.context import Context
from winready.checks.core_network.reachable import reach_pods
from winready.checks.registry import check


@check("core.network.windows-to-linux-pod-ip", fixtures=("clients", "servers"), expected_s=15)
async def windows_to_linux_pod_ip(ctx: Context) -> None:
    """Every judged Windows node reaches every Linux server directly."""
    await reach_pods(ctx, await ctx.clients("windows"), await ctx.servers("linux"))

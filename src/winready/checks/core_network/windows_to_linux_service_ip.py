"""A Windows container reaches Linux pods through the cluster IP of their service."""

from winready.checks.context import Context
from winready.checks.core_network.reachable import reach_service
from winready.checks.registry import check


@check("core.network.windows-to-linux-service-ip", fixtures=("clients", "servers", "services"), expected_s=30)
async def windows_to_linux_service_ip(ctx: Context) -> None:
    """From every judged Windows node, each Linux server behind the service answers, and goes on answering."""
    servers, service = await ctx.servers("linux"), await ctx.service("linux")
    await reach_service(ctx, await ctx.clients("windows"), service, servers, "the service of the Linux pods")

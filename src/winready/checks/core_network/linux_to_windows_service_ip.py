"""A Linux container reaches Windows pods through the cluster IP of their service."""

from winready.checks.context import Context
from winready.checks.reaching import reach_service, require_reachable_pods
from winready.checks.registry import check


@check("core.network.linux-to-windows-service-ip", fixtures=("clients", "servers", "services"), expected_s=150)
async def linux_to_windows_service_ip(ctx: Context) -> None:
    """From every Linux client, each Windows server behind the service answers, and goes on answering."""
    servers, service = await ctx.behind("windows"), await ctx.service("windows")
    clients = await ctx.clients("linux")
    # A server that cannot be reached at all is not the service's fault.
    await require_reachable_pods(ctx, clients, servers)
    what = "the service of the Windows pods"
    await reach_service(ctx, clients, service, servers, what, hold=ctx.times.observe, keep=True)

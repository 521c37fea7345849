"""A Windows container reaches Linux pods through the cluster IP of their service."""

from winready.checks.context import Context
from winready.checks.reaching import reach_service
from winready.checks.registry import check
from winready.cluster.probes import every


@check("core.network.windows-to-linux-service-ip", fixtures=("clients", "servers", "services"), expected_s=150)
async def windows_to_linux_service_ip(ctx: Context) -> None:
    """From two pods of every judged Windows node, each Linux server behind the service answers, and goes on to."""
    servers, service = await ctx.servers("linux"), await ctx.service("linux")
    clients, what = await ctx.clients("windows"), "the service of the Linux pods"
    await every(
        reach_service(ctx, clients, service, servers, what, hold=ctx.times.observe, keep=True),
        # What holds for the first pod of a node may hold for no other one; once is enough to see that.
        reach_service(ctx, await ctx.servers("windows"), service, servers, what, hold=0),
    )

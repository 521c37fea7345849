"""Traffic to one cluster IP reaches each of the ten Windows pods behind it."""

from winready.checks.context import Context
from winready.checks.fixtures import TEN
from winready.checks.reaching import reach_service
from winready.checks.registry import check


@check("core.concurrent.ten-pods-service-ip", fixtures=("clients", "ten"), expected_s=150, windows_pods=TEN)
async def ten_pods_service_ip(ctx: Context) -> None:
    """From each client of both systems, none of them behind the service, all ten answer."""
    pods, service = await ctx.world.fixtures.ten()
    ctx.witnesses(pods)
    clients = [*await ctx.clients("windows"), *await ctx.clients("linux")]
    await reach_service(ctx, clients, service, pods, "the service over ten Windows pods", hold=ctx.times.observe)

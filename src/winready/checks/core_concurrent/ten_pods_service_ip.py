"""Traffic to one cluster IP reaches each of the ten Windows pods behind it."""

from winready.checks.context import Context
from winready.checks.fixtures import TEN
from winready.checks.registry import check
from winready.cluster.probes import every


@check("core.concurrent.ten-pods-service-ip", fixtures=("clients", "ten"), expected_s=30, windows_pods=TEN)
async def ten_pods_service_ip(ctx: Context) -> None:
    """From each client of both systems, none of them behind the service, all ten answer."""
    pods, service = await ctx.world.fixtures.ten()
    ctx.witnesses(pods)
    clients = [*await ctx.clients("windows"), *await ctx.clients("linux")]
    what, window = "the service over ten Windows pods", ctx.times.service_reachable
    await every(
        *(
            ctx.probe.reach(client, service.cluster_ip, service.port, pods, what, window=window, everyone=True)
            for client in clients
        )
    )

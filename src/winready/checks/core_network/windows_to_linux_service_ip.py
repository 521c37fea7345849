"""A Windows container reaches Linux pods through the cluster IP of their service."""

from winready.checks.context import Context
from winready.checks.registry import check
from winready.cluster.probes import every


@check("core.network.windows-to-linux-service-ip", fixtures=("clients", "servers", "services"), expected_s=30)
async def windows_to_linux_service_ip(ctx: Context) -> None:
    """From every judged Windows node, each Linux server behind the service answers, and goes on answering."""
    servers = await ctx.servers("linux")
    service = await ctx.service("linux")
    await every(
        *(
            ctx.probe.reach(
                client,
                service.cluster_ip,
                service.port,
                servers,
                "the service of the Linux pods",
                window=ctx.times.service_reachable,
                everyone=True,
            )
            for client in await ctx.clients("windows")
        )
    )

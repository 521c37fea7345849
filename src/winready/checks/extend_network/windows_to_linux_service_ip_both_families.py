"""A Windows pod reaches Linux pods through IPv4 and IPv6 cluster IPs."""

from winready.checks.context import Context
from winready.checks.extend_network.families import clients_of_both, servers_of_both
from winready.checks.extend_network.services import reach_cluster_ips
from winready.checks.registry import check


@check("extend.network.windows-to-linux-service-ip-both-families", fixtures=("clients", "servers"), expected_s=45)
async def windows_to_linux_service_ip_both_families(ctx: Context) -> None:
    """From every judged Windows node, each Linux server answers behind a service of either family."""
    clients, servers = await clients_of_both(ctx, "windows"), await servers_of_both(ctx, "linux")
    await reach_cluster_ips(ctx, clients, servers, "linux")

"""A Linux pod reaches Windows pods through IPv4 and IPv6 cluster IPs."""

from winready.checks.context import Context
from winready.checks.extend_network.families import clients_of_both, servers_of_both
from winready.checks.extend_network.services import reach_cluster_ips
from winready.checks.reaching import require_reachable_pods
from winready.checks.registry import check


@check("extend.network.linux-to-windows-service-ip-both-families", fixtures=("clients", "servers"), expected_s=45)
async def linux_to_windows_service_ip_both_families(ctx: Context) -> None:
    """From every Linux client, each Windows server answers behind a service of either family."""
    servers, clients = await servers_of_both(ctx, "windows"), await clients_of_both(ctx, "linux")
    # A server that cannot be reached at all is not the service's fault.
    await require_reachable_pods(ctx, clients.pods, servers.pods)
    await reach_cluster_ips(ctx, clients, servers, "windows")

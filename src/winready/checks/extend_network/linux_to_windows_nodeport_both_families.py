"""A Linux pod reaches Windows pods through IPv4 and IPv6 NodePorts."""

from winready.checks.context import Context
from winready.checks.extend_network.families import clients_of_both, servers_of_both
from winready.checks.extend_network.services import reach_node_ports
from winready.checks.reaching import require_reachable_pods
from winready.checks.registry import check


@check("extend.network.linux-to-windows-nodeport-both-families", fixtures=("clients", "servers"), expected_s=45)
async def linux_to_windows_nodeport_both_families(ctx: Context) -> None:
    """From every Linux client, the NodePort of either family answers on every other node."""
    servers, clients = await servers_of_both(ctx, "windows"), await clients_of_both(ctx, "linux")
    await require_reachable_pods(ctx, clients.pods, servers.pods)
    await reach_node_ports(ctx, clients, servers, "windows", await clients_of_both(ctx, "windows"))

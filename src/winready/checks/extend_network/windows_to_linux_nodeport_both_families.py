"""A Windows pod reaches Linux pods through IPv4 and IPv6 NodePorts."""

from winready.checks.context import Context
from winready.checks.extend_network.families import clients_of_both, servers_of_both
from winready.checks.extend_network.services import reach_node_ports
from winready.checks.registry import check


@check("extend.network.windows-to-linux-nodeport-both-families", fixtures=("clients", "servers"), expected_s=45)
async def windows_to_linux_nodeport_both_families(ctx: Context) -> None:
    """From every judged Windows node, the NodePort of either family answers on every other node."""
    clients, servers = await clients_of_both(ctx, "windows"), await servers_of_both(ctx, "linux")
    await reach_node_ports(ctx, clients, servers, "linux", await clients_of_both(ctx, "linux"))

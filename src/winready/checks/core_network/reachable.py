"""Who must reach whom, for every pair: a defect on one node hides from whoever tries another."""

from __future__ import annotations

from winready.checks.context import Context
from winready.cluster.commands import NETEXEC_HTTP, NETEXEC_UDP
from winready.cluster.pods import Pod
from winready.cluster.probes import every


async def reach_pods(ctx: Context, clients: list[Pod], servers: list[Pod], *, hold: float | None = None) -> None:
    """Every client reaches every server directly by its pod IP, for minutes (``hold``: for so many cluster seconds)."""
    most = 0 if hold is not None else max(len(clients), len(servers))
    watched = {(clients[n % len(clients)].name, servers[n % len(servers)].name) for n in range(most)}
    await every(
        *(
            ctx.probe.reach(
                client,
                server.address,
                NETEXEC_HTTP,
                [server],
                f"{server.os.capitalize()} pod {server.name}",
                window=ctx.times.pod_reachable,
                hint=f"look at the pod network between nodes {client.node.name} and {server.node.name}",
                udp=NETEXEC_UDP,
                hold=ctx.times.observe if hold is None else hold,
                watched=(client.name, server.name) in watched,
                keep=(client.name, server.name) in watched,
            )
            for client in clients
            for server in servers
        )
    )

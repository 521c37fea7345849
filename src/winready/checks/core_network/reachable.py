"""Who must reach whom, for every pair: a defect on one node hides from whoever tries another."""

from __future__ import annotations

from winready.checks.context import Context
from winready.checks.fixtures import Service
from winready.cluster.commands import NETEXEC_HTTP, fetch
from winready.cluster.failures import CheckBlocked
from winready.cluster.pods import Pod
from winready.cluster.probes import describe, every


async def reach_pods(ctx: Context, clients: list[Pod], servers: list[Pod]) -> None:
    """Every client reaches every server directly by its pod IP."""
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
            )
            for client in clients
            for server in servers
        )
    )


async def reach_service(ctx: Context, clients: list[Pod], service: Service, servers: list[Pod], what: str) -> None:
    """Every client is answered by each of the servers through the service's cluster IP, and goes on being answered."""
    window = ctx.times.service_reachable
    await every(
        *(
            ctx.probe.reach(client, service.cluster_ip, service.port, servers, what, window=window, everyone=True)
            for client in clients
        )
    )


async def require_reachable_pods(ctx: Context, clients: list[Pod], servers: list[Pod]) -> None:
    """Control: every client reaches every server by its pod IP, or what stands in front of them cannot be judged."""
    await every(*(_require(ctx, client, server) for client in clients for server in servers))


async def _require(ctx: Context, client: Pod, server: Pod) -> None:
    url = f"http://{server.address}:{NETEXEC_HTTP}/hostname"
    result = await ctx.probe.until(
        f"control: {client.name} reaches {server.name} by pod IP",
        lambda: ctx.probe.fetch_name(client, url, [server.name]),
        window=ctx.times.pod_reachable,
        pod=client,
        command=fetch(client.os, url),
        expected=server.name,
        target=f"{server.address}:{NETEXEC_HTTP}",
    )
    if not result.ok:
        raise CheckBlocked(
            f"{describe(client)} does not reach {describe(server)} even by its pod IP {server.address}: {result.seen}",
            next_step="repair the pod network between these nodes first",
        )

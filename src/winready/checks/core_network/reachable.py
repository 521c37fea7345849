"""Control probes that several network checks begin with."""

from __future__ import annotations

from winready.checks.context import Context
from winready.cluster.commands import NETEXEC_HTTP, fetch
from winready.cluster.failures import CheckBlocked
from winready.cluster.pods import Pod
from winready.cluster.probes import describe, every


async def require_reachable_pods(ctx: Context, clients: list[Pod], servers: list[Pod]) -> None:
    """Every client reaches every server by its pod IP; otherwise what stands in front of them cannot be judged."""
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

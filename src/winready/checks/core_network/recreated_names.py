"""The name of a service that has just been made leads to it, wherever names of services lead anywhere."""

from __future__ import annotations

from collections.abc import Sequence

from winready.checks.context import Context
from winready.checks.fixtures import Service
from winready.cluster.commands import fetch
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.pods import Pod
from winready.cluster.probes import Try, describe


async def reach_by_name(ctx: Context, client: Pod, service: Service, servers: Sequence[Pod], what: str) -> None:
    """One of the servers answers at the service's full name; blocked when names do not work in general."""
    domain = await ctx.world.cluster_domain()
    namespace = (await ctx.shared_namespace()).name
    name = f"{service.name}.{namespace}.svc.{domain}"
    found = await _ask(ctx, client, name, service.port, servers, what, ctx.times.service_reachable)
    if found.ok:
        return
    known, old = await ctx.service("linux"), await ctx.servers("linux")
    other = f"{known.name}.{namespace}.svc.{domain}"
    control = await _ask(ctx, client, other, known.port, old, "control: a service that was always there", 0)
    if not control.ok:
        raise CheckBlocked(
            f"{describe(client)} reaches neither {name} nor {other}, which was always there: {control.seen}",
            next_step="repair cluster DNS and services in general first; see core.network.dns-internal",
        )
    code = found.execution.exit_code if found.execution else 0
    seen = f"{found.seen!r} answered" if code == 0 else found.seen
    raise CheckFailed(
        f"{describe(client)} does not reach {what} by its name {name} (now {service.cluster_ip}): {seen}",
        expected=f"an answer from {', '.join(pod.name for pod in servers)}",
        observed=seen,
        next_step=f"compare what {name} is resolved to on node {client.node.name} with {service.cluster_ip}",
    )


async def _ask(
    ctx: Context, client: Pod, name: str, port: int, servers: Sequence[Pod], what: str, window: float
) -> Try:
    url, names = f"http://{name}:{port}/hostname", [pod.name for pod in servers]
    return await ctx.probe.until(
        f"{client.name} reaches {what} by name",
        lambda: ctx.probe.fetch_name(client, url, names),
        window=window,
        pod=client,
        command=fetch(client.os, url),
        expected=f"an answer from {', '.join(names)}",
        target=f"{name}:{port}",
    )

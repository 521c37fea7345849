"""A Windows pod resolves names outside the cluster through cluster DNS, where the cluster has such access."""

from winready.checks.context import Context
from winready.checks.core_network.names import Resolved, resolves
from winready.checks.registry import check
from winready.cluster.commands import lines
from winready.cluster.failures import CheckBlocked, CheckFailed, NotApplicable
from winready.cluster.pods import Pod
from winready.cluster.probes import describe, every


@check("core.network.dns-external", fixtures=("clients",), expected_s=15)
async def dns_external(ctx: Context) -> None:
    """Outside names resolve from every judged Windows node through the cluster's own DNS server."""
    control = (await ctx.clients("linux"))[0]
    outside = [f"{name}:443" for name in ctx.settings.external_names]
    known = [
        name
        for name, found in zip(outside, await every(*(_ask(ctx, control, name) for name in outside)), strict=True)
        if found is not Resolved.NO
    ]
    if not known:
        reason = f"no outside name ({', '.join(ctx.settings.external_names)}) resolves from {describe(control)} either"
        if ctx.settings.air_gapped:
            raise NotApplicable(f"the cluster is air-gapped: {reason}")
        raise CheckBlocked(reason, next_step="if this cluster has no way out on purpose, say so with --air-gapped")
    cluster_dns = await _dns_servers(control)
    await every(*(_judge(ctx, client, known, cluster_dns) for client in await ctx.clients("windows")))


async def _ask(ctx: Context, pod: Pod, name: str) -> Resolved:
    return await resolves(ctx, pod, name, window=ctx.times.dns_answer / 4, connected=False)


async def _judge(ctx: Context, client: Pod, names: list[str], cluster_dns: list[str]) -> None:
    servers = await _dns_servers(client)
    ctx.evidence.fact(f"DNS servers of {client.name}", servers)
    if not set(servers) & set(cluster_dns):
        raise CheckFailed(
            f"{describe(client)} asks {', '.join(servers) or 'no DNS server'}, not the cluster's "
            f"({', '.join(cluster_dns)})",
            expected=", ".join(cluster_dns),
            observed=", ".join(servers),
            next_step=f"look at clusterDNS of the kubelet on node {client.node.name}",
        )
    for name in names:
        if await resolves(ctx, client, name, window=ctx.times.dns_answer, connected=False) is Resolved.NO:
            raise CheckFailed(
                f"{describe(client)} does not resolve {name.partition(':')[0]}, which Linux pods do",
                expected=f"{name.partition(':')[0]} resolves",
                observed="no such name, or no answer",
                next_step=f"look at the way from node {client.node.name} to cluster DNS and at its forwarders",
            )


async def _dns_servers(pod: Pod) -> list[str]:
    result = await pod.run(["/agnhost", "dns-server-list"])
    return [item for line in lines(result.stdout) for item in line.replace(",", " ").split()]

"""A Windows pod resolves names outside the cluster through cluster DNS, where the cluster has such access."""

from winready.checks.context import Context
from winready.checks.core_network.name_holding import hold
from winready.checks.core_network.name_shares import question
from winready.checks.core_network.name_steps import about_dns
from winready.checks.core_network.names import HTTPS, Target, lead, summary
from winready.checks.registry import check
from winready.cluster.commands import lines
from winready.cluster.failures import CheckBlocked, CheckFailed, NotApplicable
from winready.cluster.pods import Pod
from winready.cluster.probes import describe, every

UNCONFIGURED = "fec0:"
"""Servers that Windows lists for an interface with IPv6 and without DNS settings; they exist nowhere."""


@check("core.network.dns-external", fixtures=("clients",), expected_s=140)
async def dns_external(ctx: Context) -> None:
    """Outside names resolve from every judged Windows node through the cluster's own DNS server, and go on doing so."""
    outside = [Target(name, HTTPS) for name in ctx.settings.external_names]
    known: list[Target] = []
    for control in await ctx.clients("linux"):
        answers = await lead(ctx, control, outside, window=ctx.times.dns_answer / 4)
        # One Linux pod is not the truth about the cluster: its node may be the one that is broken.
        if known := [answer.target for answer in answers if answer.right]:
            break
    else:
        reason = f"no outside name ({', '.join(ctx.settings.external_names)}) resolves from {describe(control)} either"
        if ctx.settings.air_gapped:
            raise NotApplicable(f"the cluster is air-gapped: {reason}")
        raise CheckBlocked(reason, next_step="if this cluster has no way out on purpose, say so with --air-gapped")
    await every(*(_judge(ctx, client, control, known) for client in await ctx.clients("windows")))


async def _judge(ctx: Context, client: Pod, control: Pod, known: list[Target]) -> None:
    await _asks_cluster_dns(ctx, client)
    answers = await lead(ctx, client, known, window=ctx.times.dns_answer)
    if wrong := [answer for answer in answers if not answer.right]:
        missing = ", ".join(answer.target.name for answer in wrong)
        raise CheckFailed(
            f"{describe(client)} does not resolve {missing}, which Linux pods do",
            expected=f"{wrong[0].target.name} resolves",
            observed=summary(wrong),
            next_step=await about_dns(ctx, client, outside=True),
        )
    names = [target.name for target in known]
    await hold(ctx, client, [control], names, [], seconds=ctx.times.outside_question)


async def _asks_cluster_dns(ctx: Context, client: Pod) -> None:
    """Every server that the pod asks must be the cluster's: its service, or one that knows the cluster's names."""
    result = await client.run(["/agnhost", "dns-server-list"])
    listed = [item for line in lines(result.stdout) for item in line.replace(",", " ").split()]
    servers = [server for server in listed if not server.startswith(UNCONFIGURED)]
    ctx.evidence.fact(f"DNS servers of {client.name}", servers)
    dns = await ctx.world.names.dns_service()
    known = dns.addresses if dns else ()
    domain = await ctx.world.cluster_domain()
    strangers = [server for server in servers if server not in known]
    for server in list(strangers):
        replies, _ = await question(client, [f"kubernetes.default.svc.{domain}"] * 3, ctx.times.question, server=server)
        if any(reply.addresses for reply in replies):
            # NodeLocal DNSCache, or any other server that stands before the cluster's.
            strangers.remove(server)
    if servers and not strangers:
        return
    wanted = f"the cluster's ({', '.join(known)})" if known else "one that knows the cluster's names"
    raise CheckFailed(
        f"{describe(client)} asks {', '.join(strangers) or 'no DNS server'}, not {wanted}"
        + (f", beside {', '.join(s for s in servers if s not in strangers)}" if len(strangers) < len(servers) else ""),
        expected=wanted,
        observed=", ".join(servers) or "no DNS server",
        next_step=f"look at clusterDNS of the kubelet and at the DNS settings of the network plug-in on node "
        f"{client.node.name}",
    )

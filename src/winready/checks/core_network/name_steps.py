"""What to do about a name that leads astray: the same question, put to others, tells who is at fault."""

from __future__ import annotations

from winready.checks.context import Context
from winready.checks.core_network.name_shares import question
from winready.checks.core_network.names import Answer, Led
from winready.cluster.pods import Pod


async def next_step(ctx: Context, client: Pod, answer: Answer) -> str:
    """Where to look, after one or two more questions."""
    target, node = answer.target, client.node.name
    if target.absent:
        return "look for a wildcard answer in cluster DNS or in the node's resolver"
    if answer.led is Led.UNRESOLVED:
        return await about_dns(ctx, client)
    replies, _ = await question(client, [target.name], ctx.times.question)
    found = [address for reply in replies for address in reply.addresses]
    if not target.address or not found:
        return f"look at the service proxy and the pod network on node {node}"
    if target.address not in found:
        return (
            f"{target.name} is resolved to {', '.join(found)}, and the API says {target.address}: look at cluster DNS "
            f"and at whatever answers in its place on node {node}"
        )
    rightly = f"cluster DNS tells node {node} the right address of {target.name}, {target.address}"
    if target.headless:
        return f"{rightly}: look at the DNS cache of Windows in that pod, which keeps another one"
    return f"{rightly}: look at the service proxy on node {node}, then at the DNS cache of Windows in that pod"


async def about_dns(ctx: Context, client: Pod, *, outside: bool = False) -> str:
    """Where to look when names are not resolved: whom does the pod get an answer from, if from anybody?"""
    node = client.node.name
    dns, domain = await ctx.world.names.dns_service(), await ctx.world.cluster_domain()
    if dns is None:
        return f"look at the way from node {node} to cluster DNS"
    service = dns.addresses[0]
    known = f"kubernetes.default.svc.{domain}"
    if await _answers(ctx, client, known, service):
        if outside:
            return f"cluster DNS ({service}) answers node {node} for the cluster's names: look at its forwarders"
        return (
            f"cluster DNS ({service}) answers node {node}: compare 'dns-suffix' and 'dns-server-list' in the pod with "
            f"the kubelet's settings on that node"
        )
    for pod in dns.pods[:2]:
        if await _answers(ctx, client, known, pod):
            return (
                f"cluster DNS answers at its pod {pod}, and not at its service {service}: look at the service proxy on "
                f"node {node}"
            )
    return f"neither the service nor the pods of cluster DNS answer: look at UDP port 53 on the way from node {node}"


async def _answers(ctx: Context, client: Pod, name: str, server: str) -> bool:
    replies, _ = await question(client, [name], ctx.times.question, server=server)
    return any(reply.addresses for reply in replies)

"""A Windows pod resolves and reaches services and pods by their cluster DNS names."""

from winready.checks.context import Context
from winready.checks.core_network.names import Resolved, resolves
from winready.checks.fixtures import PEERS
from winready.checks.registry import check
from winready.cluster.commands import NETEXEC_HTTP
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.pods import Pod
from winready.cluster.probes import describe, every


@check("core.network.dns-internal", fixtures=("clients", "servers", "services"), expected_s=20)
async def dns_internal(ctx: Context) -> None:
    """Full names of a service, of the API server's and of a pod, and the bare service name, lead where they should."""
    domain = await ctx.world.cluster_domain()
    namespace = (await ctx.shared_namespace()).name
    server = (await ctx.servers("linux"))[0]
    await ctx.service("linux")
    # A name with a dot is complete to Windows: half-qualified names are not part of what it promises.
    names = [
        f"ls.{namespace}.svc.{domain}:80",
        "ls:80",
        f"{server.name}.{PEERS}.{namespace}.svc.{domain}:{NETEXEC_HTTP}",
        f"kubernetes.default.svc.{domain}:443",
    ]
    missing = f"none-{ctx.settings.run_id}.{namespace}.svc.{domain}:80"
    clients, controls = await ctx.clients("windows"), await ctx.clients("linux")
    await every(*(_judge(ctx, client, controls[0], name) for client in clients for name in names))
    await every(*(_refused(ctx, client, missing) for client in clients))


async def _judge(ctx: Context, client: Pod, control: Pod, name: str) -> None:
    found = await resolves(ctx, client, name, window=ctx.times.dns_answer, connected=True)
    if found is Resolved.CONNECTED:
        return
    if await resolves(ctx, control, name, window=ctx.times.poll, connected=True) is not Resolved.CONNECTED:
        raise CheckBlocked(
            f"{name} leads nowhere from {describe(control)} either",
            next_step="repair cluster DNS in general first ('kubectl -n kube-system get pods -l k8s-app=kube-dns')",
        )
    problem = "does not resolve" if found is Resolved.NO else "resolves, but does not reach,"
    raise CheckFailed(
        f"{describe(client)} {problem} {name}, which {describe(control)} does",
        expected=f"a connection to {name}",
        observed=str(found.value),
        next_step=f"compare 'dns-suffix' and 'dns-server-list' in the pod with the kubelet's settings on node "
        f"{client.node.name}",
    )


async def _refused(ctx: Context, client: Pod, name: str) -> None:
    """A name that does not exist must not resolve, or every answer above is worth nothing."""
    found = await resolves(ctx, client, name, window=0, absent=True)
    if found is not Resolved.NO:
        raise CheckFailed(
            f"{describe(client)} resolves {name}, a name that does not exist",
            expected="no such name",
            observed=str(found.value),
            next_step="look for a wildcard answer in cluster DNS or in the node's resolver",
        )

"""DNS settings and host records given in a Windows pod's spec take effect inside it."""

from winready.checks.context import Context
from winready.checks.core_network.names import Resolved, resolves
from winready.checks.registry import check
from winready.cluster.commands import NETEXEC_HTTP, lines
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.pods import Pod, netexec_container, pinned, pod_object, pod_spec
from winready.cluster.probes import every
from winready.cluster.resources import PODS, SERVICES

UNUSED = "203.0.113.7"
SECOND_SERVER = "203.0.113.9"
ALIAS, LIVE_ALIAS = "alias.opready.test", "alias2.opready.test"


@check("core.network.dns-custom", fixtures=("clients", "servers", "services"), expected_s=40, windows_pods_per_node=1)
async def dns_custom(ctx: Context) -> None:
    """On each judged node a pod with hostAliases, nameservers and searches of its own sees and uses all of them."""
    dns = await ctx.world.client.find(SERVICES, "kube-dns", "kube-system")
    servers = {pod.node.name: pod for pod in await ctx.servers("windows")}
    await ctx.service("linux")
    resolver = dns["spec"]["clusterIP"] if dns else await _resolver(ctx)
    # The alias leads to a pod of the same node: what lies between nodes is not a question of DNS settings.
    await every(
        *(_judge(ctx, node, number, servers[node.name], resolver) for number, node in enumerate(ctx.windows_nodes, 1))
    )


async def _resolver(ctx: Context) -> str:
    result = await (await ctx.clients("linux"))[0].run(["/agnhost", "dns-server-list"])
    found = [item for line in lines(result.stdout) for item in line.replace(",", " ").split()]
    if not found:
        raise CheckBlocked("the address of cluster DNS is not known", next_step="is there a service kube-dns?")
    return found[0]


async def _judge(ctx: Context, node: Node, number: int, server: Pod, resolver: str) -> None:
    namespace = await ctx.shared_namespace()
    domain = await ctx.world.cluster_domain()
    search = f"{namespace.name}.svc.{domain}"
    spec = pod_spec(
        "windows",
        [netexec_container(ctx.settings)],
        ctx.settings,
        [node],
        hostAliases=[
            {"ip": UNUSED, "hostnames": [ALIAS]},
            {"ip": server.address, "hostnames": [LIVE_ALIAS]},
        ],
        dnsPolicy="None",
        dnsConfig={"nameservers": [resolver, SECOND_SERVER], "searches": [search]},
    )
    name = f"dc-{number}"
    await namespace.create(PODS, pod_object(name, pinned(spec, node), ctx.settings, app="dc"))
    (pod,) = ctx.witnesses([await namespace.ready_pod(name)])
    await every(
        _shows(ctx, pod, "etc-hosts", [UNUSED, ALIAS], "hostAliases"),
        _shows(ctx, pod, "dns-suffix", [search], "the searches of dnsConfig"),
        _shows(ctx, pod, "dns-server-list", [resolver, SECOND_SERVER], "the nameservers of dnsConfig"),
        _leads(ctx, pod, f"{LIVE_ALIAS}:{NETEXEC_HTTP}", "a host alias"),
        # Whether the service behind the name answers is not a question of DNS settings.
        _leads(ctx, pod, "ls:80", "the injected search domain", connected=False),
    )
    if await resolves(ctx, pod, f"none-{ctx.settings.run_id}:80", window=0, absent=True) is not Resolved.NO:
        raise CheckFailed(
            f"Windows pod {pod.name} on node {node.name} resolves a bare name that does not exist",
            expected="no such name",
            observed="an answer",
            next_step="look for a wildcard answer in cluster DNS",
        )


async def _shows(ctx: Context, pod: Pod, subcommand: str, wanted: list[str], what: str) -> None:
    command = ["/agnhost", subcommand]
    result = await pod.run(command)
    text = result.stdout.decode(errors="replace")
    missing = [item for item in wanted if item not in text]
    ctx.probe.record_output(f"{pod.name} shows {what}", not missing, pod, command, ", ".join(wanted), result)
    if missing:
        raise CheckFailed(
            f"Windows pod {pod.name} on node {pod.node.name} does not have {what}: {', '.join(missing)} is missing "
            f"in what 'agnhost {subcommand}' prints",
            expected=", ".join(wanted),
            observed=text.strip() or "nothing",
            next_step=f"does the network plug-in on node {pod.node.name} declare the dns capability?",
        )


async def _leads(ctx: Context, pod: Pod, address: str, what: str, *, connected: bool = True) -> None:
    found = await resolves(ctx, pod, address, window=ctx.times.dns_answer, connected=connected)
    if found is Resolved.NO or (connected and found is not Resolved.CONNECTED):
        raise CheckFailed(
            f"Windows pod {pod.name} on node {pod.node.name} does not reach {address} through {what}: {found.value}",
            expected=f"a connection to {address}",
            observed=found.value,
            next_step=f"does the network plug-in on node {pod.node.name} declare the dns capability?",
        )

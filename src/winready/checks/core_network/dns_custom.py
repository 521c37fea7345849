"""DNS settings and host records given in a Windows pod's spec take effect inside it."""

from winready.checks.context import Context
from winready.checks.core_network.name_steps import next_step
from winready.checks.core_network.names import Answer, Led, Target, lead
from winready.checks.registry import check
from winready.cluster.commands import NETEXEC_HTTP, lines
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.pods import Pod, netexec_container, pinned, pod_object, pod_spec
from winready.cluster.probes import describe, every
from winready.cluster.resources import PODS

UNUSED = "203.0.113.7"
SILENT_SERVER = "203.0.113.9"
"""Stands first among the nameservers, so that only the second one can answer."""
ALIASES = ["alias.opready.test", "second-alias.opready.test"]
LIVE_ALIASES = ["alias2.opready.test", "second-alias2.opready.test", "third-alias2.opready.test"]
SECOND_CONTAINER = NETEXEC_HTTP + 10


@check("core.network.dns-custom", fixtures=("clients", "servers", "services"), expected_s=180, windows_pods_per_node=1)
async def dns_custom(ctx: Context) -> None:
    """On each judged node both containers of a pod with DNS settings of its own see and use them, and no other pod."""
    servers = {pod.node.name: pod for pod in await ctx.servers("windows")}
    clients = {pod.node.name: pod for pod in await ctx.clients("windows")}
    await ctx.service("linux")
    resolver = await _resolver(ctx)
    # The alias leads to a pod of the same node: what lies between nodes is not a question of DNS settings.
    await every(
        *(
            _judge(ctx, number, clients[node.name], servers[node.name], resolver)
            for number, node in enumerate(ctx.windows_nodes, 1)
        )
    )


async def _resolver(ctx: Context) -> str:
    """An address of cluster DNS that Windows pods can ask: not that of a cache which exists on Linux nodes only."""
    if dns := await ctx.world.names.dns_service():
        return dns.addresses[0]
    result = await (await ctx.clients("linux"))[0].run(["/agnhost", "dns-server-list"])
    found = [item for line in lines(result.stdout) for item in line.replace(",", " ").split()]
    if not found or found[0].startswith("169.254."):
        raise CheckBlocked(
            "the address of cluster DNS is not known",
            next_step="is there a service in kube-system with the label k8s-app=kube-dns, and may you read it?",
        )
    return found[0]


async def _judge(ctx: Context, number: int, client: Pod, server: Pod, resolver: str) -> None:
    namespace, node = await ctx.shared_namespace(), client.node
    domain = await ctx.world.cluster_domain()
    searches = [f"none-{ctx.settings.run_id}.{domain}", f"{namespace.name}.svc.{domain}"]
    name = f"dc-{number}"
    spec = _spec(ctx, node, server, resolver, searches)
    await namespace.create(PODS, pod_object(name, pinned(spec, node), ctx.settings, app="dc"))
    (pod,) = ctx.witnesses([await namespace.ready_pod(name)])
    await every(
        _shows(ctx, pod, "etc-hosts", [UNUSED, *ALIASES, *LIVE_ALIASES], "hostAliases"),
        _shows(ctx, pod, "dns-suffix", searches, "the searches of dnsConfig"),
        _shows(ctx, pod, "dns-server-list", [SILENT_SERVER, resolver], "the nameservers of dnsConfig"),
        _leads(ctx, pod, server, window=ctx.times.dns_answer),
    )
    await _keeps_to_itself(ctx, client)
    await ctx.timing.pause(ctx.times.observe)
    await _leads(ctx, pod, server, window=ctx.times.hold)


def _spec(ctx: Context, node: Node, server: Pod, resolver: str, searches: list[str]) -> dict[str, object]:
    return pod_spec(
        "windows",
        [netexec_container(ctx.settings), netexec_container(ctx.settings, name="second", http=SECOND_CONTAINER)],
        ctx.settings,
        [node],
        hostAliases=[
            {"ip": UNUSED, "hostnames": ALIASES},
            {"ip": server.address, "hostnames": LIVE_ALIASES},
        ],
        dnsPolicy="None",
        dnsConfig={"nameservers": [SILENT_SERVER, resolver], "searches": searches},
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


async def _leads(ctx: Context, pod: Pod, server: Pod, *, window: float) -> None:
    """In each container aliases lead to the server, and a bare name through the last suffix and nameserver."""
    targets = []
    for through in (NETEXEC_HTTP, SECOND_CONTAINER):
        targets += [Target(alias, NETEXEC_HTTP, (server.name,), through=through) for alias in LIVE_ALIASES[:2]]
        # Whether the service behind the name answers is not a question of DNS settings.
        targets.append(Target("ls", 80, through=through))
    targets.append(Target(f"none-{ctx.settings.run_id}", 80, absent=True))
    answers = await lead(ctx, pod, targets, window=window)
    if wrong := [answer for answer in answers if not answer.right]:
        raise CheckFailed(
            "; ".join(dict.fromkeys(_problem(pod, answer) for answer in wrong)),
            expected=f"{wrong[0].target}: {wrong[0].target.wanted}",
            observed=wrong[0].seen,
            next_step=await _step(ctx, pod, wrong[0]),
        )


def _problem(pod: Pod, answer: Answer) -> str:
    target = answer.target
    who = f"{describe(pod)}{', second container,' if target.through == SECOND_CONTAINER else ''}"
    if target.absent:
        return f"{who} resolves {target.name}, a bare name that does not exist"
    what = "a host alias" if target.servers else "the search domains and nameservers of its spec"
    if answer.led is Led.STRANGER:
        return f"{who} is led by {what} to {answer.seen}: {target.name} is not {' or '.join(target.servers)}"
    return f"{who} does not reach {target.name}:{target.port} through {what}: {answer.led.value}"


async def _step(ctx: Context, pod: Pod, answer: Answer) -> str:
    if answer.target.servers:
        return f"compare the hosts file of each container with hostAliases; the kubelet of {pod.node.name} writes it"
    return await next_step(ctx, pod, answer)


async def _keeps_to_itself(ctx: Context, client: Pod) -> None:
    """Another pod of the node has not been given the aliases."""
    alias = Target(LIVE_ALIASES[0], NETEXEC_HTTP, absent=True)
    (answer,) = await lead(ctx, client, [alias], window=0)
    if not answer.right:
        raise CheckFailed(
            f"{describe(client)} knows {alias.name}, a host alias of another pod",
            expected="no such name",
            observed=answer.seen,
            next_step=f"compare the hosts files of pods on node {client.node.name}; each has its own",
        )

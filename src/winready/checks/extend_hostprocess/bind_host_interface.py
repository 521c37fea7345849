"""A HostProcess pod serves on an interface of its node: the node listens there, and another node reaches it."""

from winready.checks.context import Context
from winready.checks.hosting import free_port, host_server, listeners, open_firewall
from winready.checks.registry import check
from winready.cluster.commands import DIAL_MOST, dial, dial_seconds, fetch, read_dial
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.pods import SYSTEM, Pod
from winready.cluster.probes import Try, describe, every

EVERY_ADDRESS = ("0.0.0.0", "[::]")
LEAST = DIAL_MOST - 1
"""Of ten connections: one may be lost anywhere."""


@check("extend.hostprocess.bind-host-interface", fixtures=("hosts", "clients"), expected_s=25, windows_pods_per_node=1)
async def bind_host_interface(ctx: Context) -> None:
    """On every judged node, asked by another pod of that node and by Linux pods elsewhere."""
    clients = await ctx.clients("linux")
    await every(*(_judge(ctx, node, number, clients) for number, node in enumerate(ctx.windows_nodes, 1)))


async def _judge(ctx: Context, node: Node, number: int, clients: list[Pod]) -> None:
    host = await ctx.host(node)
    if not node.addresses:
        raise CheckBlocked(f"node {node.name} has no InternalIP address to serve on")
    address, port = node.addresses[0], await free_port(host)
    pod = await host_server(ctx, "hbind", f"bind-{number}", node, port, SYSTEM)
    await _require_listener(ctx, host, pod, address, port)
    await _reached(ctx, host, pod, address, port)
    async with open_firewall(ctx, host, port) as refusal:
        try:
            await every(*(_reached(ctx, client, pod, address, port) for client in clients))
        except CheckFailed as failure:
            if not refusal:
                raise
            raise CheckBlocked(
                f"{failure.reason}; no rule for that port could be added to the firewall of {node.name}: {refusal}",
                next_step="let HostProcess containers add firewall rules there: they must be able to run as SYSTEM",
            ) from None


async def _reached(ctx: Context, client: Pod, pod: Pod, address: str, port: int) -> None:
    """The pod answers the node itself, or pods of other nodes; these also many times, on new connections."""
    node, target = pod.node.name, f"{address}:{port}"
    own, url = client.node.name == node, f"http://{target}/hostname"
    where = "the node's own address" if own else f"the interface of node {node}"
    found = await ctx.probe.until(
        f"{client.name} reaches {pod.name} on {where}",
        lambda: ctx.probe.fetch_name(client, url, [pod.name]),
        window=ctx.times.pod_reachable if own else ctx.times.service_reachable,
        pod=client,
        command=fetch(client.os, url),
        expected=pod.name,
        target=target,
    )
    if found.ok and not own:
        found = await _goes_on(ctx, client, pod, address, port)
    if not found.ok:
        firewall = f"look at the firewall of node {node}: does it let that port in, or does a policy forbid own rules?"
        raise CheckFailed(
            f"{describe(client)} does not reach HostProcess {describe(pod)} on {where}, {target}: {found.seen}",
            expected=f"answers from {pod.name}",
            observed=found.seen,
            next_step=f"look for another program on that port of node {node}" if own else firewall,
        )


async def _goes_on(ctx: Context, client: Pod, pod: Pod, address: str, port: int) -> Try:
    command = dial(client.os, address, port, DIAL_MOST)
    result = await client.run(command, seconds=dial_seconds(DIAL_MOST))
    dialled = read_dial(result.stdout)
    right = [answer for answer in dialled.answers if answer == pod.name]
    seen = f"{len(right)} of {DIAL_MOST} connections answered" + "".join(f"; {text}" for text in dialled.errors[-1:])
    kept = Try(len(right) >= LEAST and right == dialled.answers, seen, result)
    title, expected = f"{client.name} goes on reaching {pod.name}", f"at least {LEAST} answers, all from {pod.name}"
    ctx.probe.record(title, kept, client, command, expected, f"{address}:{port}")
    return kept


async def _require_listener(ctx: Context, host: Pod, pod: Pod, address: str, port: int) -> None:
    """Another pod of the node sees the port taken: it is one of the node's."""

    async def attempt() -> Try:
        found = sorted(where for where, taken in await listeners(host) if taken == port)
        return Try(any(where in (*EVERY_ADDRESS, address) for where in found), ", ".join(found) or "nobody listens")

    found = await ctx.probe.until(
        f"{host.name} sees that {pod.name} listens on node {host.node.name}",
        attempt,
        window=ctx.times.pod_reachable,
        pod=host,
        command=["netstat.exe", "-ano"],
        expected=f"{address}:{port}, or the port on every address",
        target=f"{address}:{port}",
    )
    if not found.ok:
        raise CheckFailed(
            f"HostProcess {describe(pod)} serves on port {port}, and the node does not listen there: {found.seen}",
            expected=f"{address}:{port}",
            observed=found.seen,
            next_step=f"look at the container runtime of node {pod.node.name}: does such a pod get the node's network?",
        )

"""Nodes answer each other's pings: from every Windows node to every other node, and from Linux nodes to them."""

from winready.checks.context import Context
from winready.checks.reaching import partners
from winready.checks.registry import check
from winready.cluster.commands import connect, powershell
from winready.cluster.failures import CheckFailed
from winready.cluster.host_scripts import encoded
from winready.cluster.inventory import Node
from winready.cluster.pods import Pod
from winready.cluster.probes import Try, every

COUNT, ROUNDS = 4, 3
"""One answer of four is enough; a round in which none came is repeated."""
KUBELET = 10250


@check("extend.worker.node-ping", fixtures=("hosts", "linux-hosts"), expected_s=15)
async def node_ping(ctx: Context) -> None:
    """Ordered pairs in which there is a Windows node, from the network of the nodes themselves."""
    hosts = [await ctx.host(node) for node in ctx.windows_nodes]
    linux = await ctx.linux_hosts()
    pairs = partners(ctx, hosts, ctx.nodes, "pings")
    pairs += [(host, node) for host in linux for node in ctx.windows_nodes]
    await every(*(_judge(ctx, host, node, linux) for host, node in pairs if node.addresses))


async def _judge(ctx: Context, host: Pod, node: Node, linux: list[Pod]) -> None:
    address = node.addresses[0]
    if host.os == "windows":
        script = f"ping.exe -n {COUNT} -w 2000 {address}; exit 0"
        shown, command = powershell(script), encoded(script)
    else:
        shown = command = ["ping", "-c", str(COUNT), "-W", "2", address]
    answered, seen, result = False, "", None
    for _ in range(ROUNDS):
        result = await host.run(command, seconds=ctx.times.host_script)
        text = result.stdout.decode(errors="replace")
        # ping.exe also ends well when a router says that nobody is there.
        answered = "TTL=" in text.upper()
        seen = text.strip() or result.stderr.decode(errors="replace").strip()
        if answered:
            break
    title = f"node {node.name} answers a ping of node {host.node.name}"
    ctx.probe.record(title, Try(answered, seen, result), host, shown, "an answer with its TTL", address)
    if not answered:
        open_ = await _control(ctx, linux[0], node)
        raise CheckFailed(
            f"node {node.name} ({address}) does not answer pings of node {host.node.name}; "
            f"its port {KUBELET} is {open_}",
            expected="an answer to a ping",
            observed=seen,
            next_step=f"let ICMP echo requests in through the firewall of node {node.name}"
            if open_ == "open"
            else f"look at the network between nodes {host.node.name} and {node.name}",
        )


async def _control(ctx: Context, host: Pod, node: Node) -> str:
    """Whether the node can be reached at all: its kubelet's port, asked from a Linux node."""
    target = f"{node.addresses[0]}:{KUBELET}"
    found = await ctx.probe.connects(host, target)
    ctx.probe.record(f"control: {host.name} connects to {target}", found, host, connect(target), "connected", target)
    return "open" if found.ok else "closed"

"""A HostProcess container has the node's own address: the API says so, and the container sees it."""

import re

from winready.checks.context import Context
from winready.checks.hosting import fields, record_script, run_script, said
from winready.checks.registry import check
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.probes import describe, every

LOOK = 'ipconfig.exe; "name=$(hostname.exe)"'
_ADDRESS = re.compile(r"(?<![\w.:])(?:\d+\.\d+\.\d+\.\d+|[0-9a-fA-F]*:[0-9a-fA-F:]+)(?![\w.:])")


@check("extend.hostprocess.node-ip", fixtures=("hosts",), expected_s=5)
async def node_ip(ctx: Context) -> None:
    """On every judged node. What the API says alone is no proof: the kubelet says it of any pod on the host network."""
    await every(*(_judge(ctx, node) for node in ctx.windows_nodes))


async def _judge(ctx: Context, node: Node) -> None:
    host = await ctx.host(node)
    if not node.addresses:
        raise CheckBlocked(f"node {node.name} has no InternalIP address to compare with")
    result = await run_script(ctx, host, LOOK)
    inside = {text.lower() for text in _ADDRESS.findall(result.stdout.decode(errors="replace"))}
    # A node may have another name in the cluster than the one that Windows has for it.
    ctx.evidence.fact(f"name of {node.name} inside", fields(result).get("name", ""))
    expected = f"{', '.join(host.addresses)} in the container, and of the node's {', '.join(node.addresses)}"
    foreign = [address for address in host.addresses if address not in node.addresses]
    unseen = [address for address in host.addresses if address.lower() not in inside]
    seen = f"the API says {', '.join(host.addresses)}; inside {', '.join(sorted(inside)) or said(result)}"
    title = f"{host.name} has the address of node {node.name}"
    record_script(ctx, title, not foreign and not unseen, seen, host, LOOK, expected)
    if foreign or unseen:
        lacks = f"has {foreign[0]}, which is no address of the node" if foreign else f"does not see {unseen[0]} inside"
        raise CheckFailed(
            f"HostProcess {describe(host)} {lacks}: {seen}",
            expected=expected,
            observed=seen,
            next_step=f"look at the kubelet's --node-ip and at the container runtime of node {node.name}",
        )

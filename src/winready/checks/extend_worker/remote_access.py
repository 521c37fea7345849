"""Administrators get to a Windows node: SSH or RDP answers there, as such and not only with an open port.

It shows that somebody serves, not that anybody may log on.
"""

from winready.checks.context import Context
from winready.checks.registry import check
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.pods import Pod
from winready.cluster.probes import Try, every

SSH, RDP = 22, 3389
SECONDS = 5
GREETING = b"SSH-2.0-"
REQUEST = "\\003\\000\\000\\023\\016\\340\\000\\000\\000\\000\\000\\001\\000\\010\\000\\003\\000\\000\\000"
"""An X.224 connection request with RDP's offer to negotiate, in octal for printf."""
CONFIRM = 0xD0
"""The code of X.224's connection confirm, in the sixth byte of the answer."""


@check("extend.worker.remote-access", fixtures=("linux-hosts", "clients"), expected_s=15)
async def remote_access(ctx: Context) -> None:
    """On every judged node, from the network of a Linux node, and from a pod where the node does not get through."""
    sources = [(await ctx.linux_hosts())[0], (await ctx.clients("linux"))[0]]
    await ctx.clients("windows")
    await every(*(_judge(ctx, node, sources) for node in ctx.windows_nodes))


async def _judge(ctx: Context, node: Node, sources: list[Pod]) -> None:
    if not node.addresses:
        raise CheckBlocked(f"node {node.name} has no InternalIP address to connect to")
    seen = []
    for source in sources:
        for name, port in (("SSH", SSH), ("RDP", RDP)):
            found = await _ask(ctx, source, node, name, port)
            if found.ok:
                return
            seen.append(f"{name} from {source.name}: {found.seen}")
    raise CheckFailed(
        f"nobody gets to node {node.name} by SSH or RDP: {'; '.join(seen)}",
        expected="an SSH banner, or the confirmation of an RDP connection",
        observed="; ".join(seen),
        next_step=f"start sshd or Remote Desktop on node {node.name} and let it in; leave this out with --skip "
        f"extend.worker.remote-access where only a bastion may",
    )


async def _ask(ctx: Context, source: Pod, node: Node, name: str, port: int) -> Try:
    """Connect and listen to what comes; for RDP something must be said first."""
    listen = ["nc", "-w", str(SECONDS), node.addresses[0], str(port)]
    command = listen if port == SSH else ["sh", "-c", f"printf '{REQUEST}' | {' '.join(listen)}"]
    result = await source.run(command)
    answer, error = result.stdout, result.stderr.decode(errors="replace").strip()
    ok = answer.startswith(GREETING) if port == SSH else len(answer) > 5 and answer[0] == 3 and answer[5] == CONFIRM
    if answer:
        seen = repr(answer[:60])[2:-1]
    elif result.exit_code:
        seen = error or f"no connection (exit code {result.exit_code})"
    else:
        seen = "the port is open and says nothing"
    expected = "SSH-2.0-..." if port == SSH else "an X.224 confirmation"
    title = f"{name} on node {node.name} answers {source.name}"
    ctx.probe.record(title, Try(ok, seen, result), source, command, expected, f"{node.addresses[0]}:{port}")
    return Try(ok, seen, result)

"""A HostProcess container that runs as Network Service works with the node's network: sees it, serves and connects.

Whether the Host Networking Service tells it anything is recorded: no source says that it must.
"""

from winready.checks.context import Context
from winready.checks.hosting import fields, free_port, host_server, record_script, run_script, said
from winready.checks.registry import check
from winready.cluster.commands import NETEXEC_HTTP
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.pods import Pod
from winready.cluster.probes import Try, describe, every

USER, IDENTIFIER = "NT AUTHORITY\\NetworkService", "S-1-5-20"
"""The identifier is the same in every language of Windows."""
FETCH = '"{name}=$(curl.exe -s -S --connect-timeout 10 --max-time 15 http://{address}:{port}/hostname)"; '
USE = (
    '"who=$(whoami.exe /user /fo csv /nh)"; $null = ipconfig.exe /all; "addresses=$LASTEXITCODE"; '
    '$null = route.exe print; "routes=$LASTEXITCODE"; '
    'try {{ "networks=$(@(Get-HnsNetwork -ErrorAction Stop).Count)" }} catch {{ "networks=refused" }}; {fetches}exit 0'
)


@check("extend.hostprocess.network-service", fixtures=("hosts", "servers"), expected_s=20, windows_pods_per_node=1)
async def network_service(ctx: Context) -> None:
    """On every judged node, with a server of its own there and a Linux pod elsewhere."""
    server = (await ctx.servers("linux"))[0]
    await every(*(_judge(ctx, node, number, server) for number, node in enumerate(ctx.windows_nodes, 1)))


async def _judge(ctx: Context, node: Node, number: int, server: Pod) -> None:
    host = await ctx.host(node)
    if not node.addresses:
        raise CheckBlocked(f"node {node.name} has no InternalIP address to serve on")
    port = await free_port(host)
    pod = await host_server(ctx, "hns", f"ns-{number}", node, port, USER)
    own = FETCH.format(name="own", address=node.addresses[0], port=port)
    script = USE.format(fetches=own + FETCH.format(name="other", address=server.address, port=NETEXEC_HTTP))
    result = Try(False, "")

    async def attempt() -> Try:
        nonlocal result
        done = await run_script(ctx, pod, script)
        told = fields(done)
        wrong = _wrong(told, pod, server)
        result = Try(not wrong, "; ".join(wrong) or said(done), done)
        return result

    await ctx.probe.until(
        f"{pod.name} works with the network of node {node.name} as Network Service",
        attempt,
        window=ctx.times.pod_reachable,
        pod=pod,
        command=["powershell.exe", "-Command", script],
        expected=f"{IDENTIFIER}, addresses, routes, an answer from itself and from {server.name}",
    )
    told = fields(result.execution) if result.execution else {}
    ctx.evidence.fact(f"HNS networks that Network Service sees on {node.name}", told.get("networks", ""))
    if result.ok:
        return
    if IDENTIFIER in told.get("who", "") and told.get("other") != server.name:
        await _require_way(ctx, host, server)
    raise CheckFailed(
        f"HostProcess {describe(pod)}, run as Network Service, {result.seen}",
        expected="the identity, the node's addresses and routes, a server and a connection of its own",
        observed=result.seen,
        next_step=f"look at the rights of Network Service and at the container runtime of node {node.name}",
    )


def _wrong(told: dict[str, str], pod: Pod, server: Pod) -> list[str]:
    found = []
    if IDENTIFIER not in told.get("who", ""):
        found.append(f"is {told.get('who') or 'nobody'}")
    found += [f"cannot list {what}" for what in ("addresses", "routes") if told.get(what) != "0"]
    if told.get("own") != pod.name:
        found.append(f"does not serve on the node's address (it hears {told.get('own') or 'nothing'})")
    if told.get("other") != server.name:
        found.append(f"does not reach pod {server.name} on node {server.node.name} ({told.get('other') or 'nothing'})")
    return found


async def _require_way(ctx: Context, host: Pod, server: Pod) -> None:
    """Control: the same connection by SYSTEM; without it nothing can be said about another user."""
    script = FETCH.format(name="other", address=server.address, port=NETEXEC_HTTP)
    result = await run_script(ctx, host, script)
    ok = fields(result).get("other") == server.name
    record_script(ctx, f"control: {host.name} reaches {server.name} as SYSTEM", ok, said(result), host, script, "")
    if not ok:
        raise CheckBlocked(
            f"node {host.node.name} does not reach pod {server.name} on node {server.node.name} as SYSTEM either",
            next_step="repair the network between these nodes first",
        )

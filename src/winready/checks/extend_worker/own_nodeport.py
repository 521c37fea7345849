"""A node reaches services through NodePorts of its own service proxy, over TCP and UDP, on Windows and on Linux."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from winready.checks.context import Context
from winready.checks.host_holding import TRIES, Holding
from winready.checks.hosting import fields
from winready.checks.registry import check
from winready.cluster.commands import NETEXEC_HTTP, Ask, Dialled, Os, powershell
from winready.cluster.evidence import bounded
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.host_scripts import encoded
from winready.cluster.pods import Pod
from winready.cluster.probes import Try, describe, every
from winready.cluster.resources import SERVICES

SECONDS = 5
AT_ONCE = 4
COPY = '$m=$env:CONTAINER_SANDBOX_MOUNT_POINT; $null = cmd.exe /c copy "$m\\agnhost" "$m\\agnhost.exe"; '
"""Windows starts nothing that has no extension."""
LIMITATION = (
    "Kubernetes documents NodePorts from the Windows node itself as a limitation, which current builds do not have"
)
SOMEBODY = "somebody"
"""Of datagrams only that they were answered is known."""


@check("extend.worker.own-nodeport", fixtures=("hosts", "linux-hosts", "servers", "services"), expected_s=140)
async def own_nodeport(ctx: Context) -> None:
    """From the network of each judged node, and of Linux nodes, to the node's own address."""
    hosts = [await ctx.host(node) for node in ctx.windows_nodes] + await ctx.linux_hosts()
    servers: dict[Os, list[Pod]] = {"windows": await ctx.behind("windows"), "linux": await ctx.servers("linux")}
    ports = {os: await _ports(ctx, (await ctx.service(os)).name) for os in servers}
    await every(*(_judge(ctx, host, servers, ports) for host in hosts if host.node.addresses))


async def _ports(ctx: Context, service: str) -> dict[str, int]:
    raw = await ctx.world.client.get(SERVICES, service, (await ctx.shared_namespace()).name)
    return {port.get("protocol") or "TCP": port["nodePort"] for port in raw["spec"]["ports"]}


async def _judge(ctx: Context, host: Pod, servers: dict[Os, list[Pod]], ports: dict[Os, dict[str, int]]) -> None:
    _require_own_network(host)
    node, address = host.node, host.node.addresses[0]
    kinds: dict[Ask, Os] = {}
    for os in servers:
        for protocol, port in ports[os].items():
            kinds[Ask(address, port, protocol="udp" if protocol == "UDP" else "http")] = os
    names = {
        ask: [SOMEBODY] if ask.protocol == "udp" else [pod.name for pod in servers[os]] for ask, os in kinds.items()
    }
    holding = _holding(ctx, host, names)

    async def attempt() -> Try:
        silent = await holding.begin()
        return Try(
            not silent, "; ".join(f"{_place(ask, kinds)}: {seen}" for ask, seen in silent.items()) or "all answer"
        )

    found = await ctx.probe.until(
        f"node {node.name} reaches NodePorts on its own address",
        attempt,
        window=ctx.times.service_reachable,
        pod=host,
        command=_shown(host.os, list(names)),
        expected="answers from pods of the service at each port",
        target=address,
    )
    seen, how, expected = found.seen, "does not reach", "answers over TCP and UDP from Windows and Linux pods"
    if found.ok:
        await holding.go_on(ctx.times.observe)
        how, expected = "reaches, and does not go on to reach,", "; ".join(map(holding.bound, names))
        seen = "; ".join(f"{_place(ask, kinds)}: {sample.text()}" for ask, sample in holding.samples.items())
        title = f"node {node.name} goes on reaching NodePorts on its own address"
        ctx.probe.record(title, Try(not holding.broken, seen), host, _shown(host.os, list(names)), expected, address)
        if not holding.broken:
            return
        seen = "; ".join(f"{_place(ask, kinds)}: {sample.text()}" for ask, sample in holding.broken.items())
    await _require_way(ctx, host, [pod for pods in servers.values() for pod in pods])
    raise CheckFailed(
        f"node {node.name} {how} NodePorts on its own address: {seen}",
        expected=expected,
        observed=seen,
        next_step=f"look at the service proxy of node {node.name}" + (f"; {LIMITATION}" if node.windows else ""),
    )


def _place(ask: Ask, kinds: Mapping[Ask, Os]) -> str:
    return f"{kinds[ask]} {'udp' if ask.protocol == 'udp' else 'tcp'} at {ask.host}:{ask.port}"


def _holding(ctx: Context, host: Pod, names: Mapping[Ask, Sequence[str]]) -> Holding:
    async def ask(asks: Sequence[Ask]) -> list[Dialled]:
        return await _ask(ctx, host, asks)

    return Holding(host.name, names, ask, ctx.timing)


def _require_own_network(host: Pod) -> None:
    """The node's own network is where the pod is: neither success nor failure means anything otherwise."""
    if host.address not in host.node.addresses:
        raise CheckBlocked(
            f"{describe(host)} has the address {host.address} and not the node's: what it reaches is not what the node "
            "reaches",
            next_step="see extend.hostprocess.node-ip first",
        )


async def _require_way(ctx: Context, host: Pod, servers: Sequence[Pod]) -> None:
    """Control: from the node's network the pods behind the services answer."""
    pods = {Ask(pod.address, NETEXEC_HTTP): pod for pod in servers}
    holding = _holding(ctx, host, {ask: [pod.name] for ask, pod in pods.items()})
    await holding.go_on(0)
    silent = {ask: sample.text() for ask, sample in holding.broken.items()}
    seen = "; ".join(f"pod {pods[ask].name}: {text}" for ask, text in silent.items()) or "all answer"
    title = f"control: node {host.node.name} reaches the pods themselves"
    ctx.probe.record(title, Try(not silent, seen), host, _shown(host.os, list(pods)), "all answer")
    for ask in silent:
        raise CheckBlocked(
            f"node {host.node.name} does not reach pod {pods[ask].name} at {ask.host}:{ask.port} without a service "
            f"either",
            next_step="repair the pod network of these nodes first",
        )


async def _ask(ctx: Context, host: Pod, asks: Sequence[Ask]) -> list[Dialled]:
    """Some at a time, since the length of a command is limited."""
    found = []
    for first in range(0, len(asks), AT_ONCE):
        found += await _ask_some(ctx, host, asks[first : first + AT_ONCE])
    return found


async def _ask_some(ctx: Context, host: Pod, asks: Sequence[Ask]) -> list[Dialled]:
    script = _script(host.os, asks)
    command = encoded(script) if host.os == "windows" else ["sh", "-c", script]
    result = await host.run(command, seconds=ctx.times.host_script)
    told = fields(result)
    return [_dialled(ask, told.get(f"place {number}", "").split()) for number, ask in enumerate(asks)]


def _dialled(ask: Ask, said: list[str]) -> Dialled:
    answers = [SOMEBODY] * said.count("0") if ask.protocol == "udp" else said
    return Dialled(answers, ["no answer"] * (ask.tries - len(answers)))


def _shown(os: Os, asks: Sequence[Ask]) -> list[str]:
    script = _script(os, [replace(ask, tries=TRIES) for ask in asks])
    return powershell(script) if os == "windows" else ["sh", "-c", bounded(script)]


def _script(os: Os, asks: Sequence[Ask]) -> str:
    """Print who answered at each port; for UDP how each attempt ended, since only an answer ends it well."""
    windows = os == "windows"
    curl = "curl.exe" if windows else "curl"
    parts = [COPY if windows and any(ask.protocol == "udp" for ask in asks) else ""]
    for number, ask in enumerate(asks):
        place, name = f"{ask.host}:{ask.port}", f"place {number}"
        if ask.protocol == "udp":
            program = '& "$m\\agnhost.exe"' if windows else "/agnhost"
            once = f"{program} connect --protocol=udp --timeout={SECONDS}s {place}"
            each = f'{once}; $r+="$LASTEXITCODE "; ' if windows else f'{once} 2>/dev/null; r="$r $?"; '
        else:
            once = f"{curl} -s --connect-timeout {SECONDS} --max-time {2 * SECONDS} http://{place}/hostname"
            each = f'$r+="$({once}) "; ' if windows else f'r="$r $({once})"; '
        start, end = ("$r=''; ", f'"{name}=$r"; ') if windows else ("r=; ", f'echo "{name}=$r"; ')
        parts.append(start + each * ask.tries + end)
    return "".join(parts) + ("exit 0" if windows else "true")

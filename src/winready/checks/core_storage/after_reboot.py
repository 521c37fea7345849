"""What works from and to a Windows node before it is rebooted, and must work again after that.

Each look is one question to one pod, with who must answer. It is asked before the reboot as well: what did not work
then is another requirement's finding, and nothing can be said about its return.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from winready.checks.context import Context
from winready.checks.core_storage.files import marker
from winready.checks.fixtures import Service
from winready.checks.reboots import FROM_LINUX, TO_LINUX
from winready.cluster import commands
from winready.cluster.client import Object
from winready.cluster.commands import Ask
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.pods import Pod, from_the_start
from winready.cluster.probes import Try, describe
from winready.cluster.stats import usages
from winready.cluster.timing import now

BESIDE = "beside"
"""The second container of each pod: what holds for the first one only is noticed there."""
MEBIBYTE = 2**20
MEMORY_LIMIT = 384 * MEBIBYTE
CPU_LIMIT, CPU_MOST, CPU_LEAST = 0.5, 0.84, 0.05
"""Cores: beyond the most, which Kubernetes' own test lets pass, it is no cap; with less than the least nobody asked."""
ROOT = "C:\\boot"
CONFIG, SCRATCH, HOST = f"{ROOT}\\config", f"{ROOT}\\scratch", f"{ROOT}\\host"
KEYS = ("first", "second")
TOLD = 4
FEW, MANY = 3, commands.DIAL_MOST
"""Connections in one command: a few to one server; many where each of several must be seen."""
CLUSTER_IP, FULL_NAME, POD = "cluster IP", "full name", "pod"


@dataclass
class Scene:
    """What runs on one node while it is rebooted, and what is known of it from before."""

    node: Node
    name: str
    service: Service
    pods: list[Pod]
    raw: Object
    """The node as the API had it before."""
    restarts: dict[str, int]
    """How often each pod had been restarted before the reboot, by uid."""
    texts: dict[str, str]
    """What each key of its config map says now."""
    folder: str
    """On the node; the pods see it as `HOST`."""
    kept: dict[str, str] = field(default_factory=dict)
    """What was written before the reboot, by file."""
    writer: str = ""
    """The uid of the pod that wrote it; only that pod's emptyDir can still have it."""
    updates: bool = False
    """Whether changes of config maps arrived before the reboot."""
    working: set[str] = field(default_factory=set)
    """Keys of the looks that showed what they should before the reboot."""

    @property
    def labels(self) -> dict[str, str]:
        """How its pods are found again."""
        return {"app": self.name}

    @property
    def names(self) -> set[str]:
        """Who answers behind its service."""
        return {pod.name for pod in self.pods}


@dataclass(frozen=True)
class Look:
    """One question, and what the answer must be."""

    key: str
    pod: Pod
    what: str
    """What the pod does when all is well, after its name in a sentence."""
    command: list[str]
    expected: str
    attempt: Callable[[], Awaitable[Try]]
    next_step: str
    patient: bool = True
    """Whether the answer may be a while in coming: networks come back bit by bit, a container is there or not."""
    slow: bool = False
    """Whether it takes a minute by itself: then it is asked while something else is waited for."""
    rests_on: str = ""
    """The key of another look without which this one cannot show anything: one cause is told once."""


def looks(ctx: Context, scene: Scene, peer: Scene, client: Pod, domain: str) -> list[Look]:
    """Everything that is asked about a node; ``peer`` is the scene of another Windows node, ``client`` is on Linux."""
    node, mine, other = scene.node.name, scene.pods[0], peer.pods[0]
    proxy = f"look at the service proxy on node {node}: did it start, and did it find its HNS network?"
    names = f"look at the way from pods of node {node} to cluster DNS, and at the DNS settings of its network plug-in"
    ends = f"compare the service's EndpointSlices with what the service proxies of other nodes have for node {node}"
    routes = f"look at the routes and tunnels of the other nodes to pods of node {node}: do they know it as it is now?"
    plugin = f"look at the network plug-in on node {node}: do its pods have their routes to other nodes again?"
    full_name = f"{peer.name}.{mine.namespace}.svc.{domain}"
    service, remote, served = scene.service, peer.service, f"the service on node {node}"
    here = _beside(service.cluster_ip, service.udp_port, service.second_port)
    found = [
        _dial(
            CLUSTER_IP,
            mine,
            "a service by its cluster IP",
            remote.cluster_ip,
            remote.port,
            peer.names,
            MANY,
            proxy,
            also=_beside(remote.cluster_ip, remote.udp_port, remote.second_port),
        ),
        _dial(
            FULL_NAME, mine, "a service by its full name", full_name, remote.port, peer.names, FEW, names, CLUSTER_IP
        ),
        _dial(
            "short name", mine, "a service by its short name", peer.name, remote.port, peer.names, FEW, names, FULL_NAME
        ),
        _dial(FROM_LINUX, client, served, service.cluster_ip, service.port, scene.names, MANY, ends, also=here),
        _dial("from Windows", other, served, service.cluster_ip, service.port, scene.names, MANY, ends, POD, here),
        _dial(POD, other, f"a pod on node {node}", mine.address, commands.NETEXEC_HTTP, {mine.name}, FEW, routes),
        _dial(
            TO_LINUX,
            mine,
            f"Linux pod {client.name}",
            client.address,
            commands.NETEXEC_HTTP,
            {client.name},
            FEW,
            plugin,
        ),
        _files(scene, mine),
        _memory_limit(ctx, mine),
        _cpu_limit(ctx, mine),
        _log(mine),
    ]
    found += [
        _dial(
            "NodePort",
            client,
            f"the NodePort of node {node}",
            address,
            service.node_port,
            scene.names,
            FEW,
            proxy,
            also=_beside(address, service.udp_node_port, service.second_node_port),
        )
        for address in scene.node.addresses[:1]
    ]
    if not ctx.settings.air_gapped:
        found += [_outside(mine, name, names) for name in ctx.settings.external_names[:1]]
    return found


def looks_of_new_pod(scene: Scene, peer: Scene, pod: Pod, domain: str) -> list[Look]:
    """What a pod that the node never had reaches, of what others reached from there before the reboot."""
    node, remote = scene.node.name, peer.service
    full_name = f"{peer.name}.{pod.namespace}.svc.{domain}"
    step = f"look at the service proxy and the network plug-in on node {node}: do they know pods that start now?"
    found = [
        _dial(CLUSTER_IP, pod, "a service by its cluster IP", remote.cluster_ip, remote.port, peer.names, FEW, step),
        _dial(FULL_NAME, pod, "a service by its full name", full_name, remote.port, peer.names, FEW, step, CLUSTER_IP),
    ]
    return [look for look in found if look.key in scene.working]


def looks_of_neighbour(scene: Scene, peer: Scene, pod: Pod, client: Pod, domain: str) -> list[Look]:
    """What another pod of the node reaches, of what the scene's own pod does not."""
    remote = peer.service
    full_name = f"{peer.name}.{scene.pods[0].namespace}.svc.{domain}"
    return [
        _dial(CLUSTER_IP, pod, "a service by its cluster IP", remote.cluster_ip, remote.port, peer.names, FEW, ""),
        _dial(FULL_NAME, pod, "a service by its full name", full_name, remote.port, peer.names, FEW, "", CLUSTER_IP),
        _dial(TO_LINUX, pod, f"Linux pod {client.name}", client.address, commands.NETEXEC_HTTP, {client.name}, FEW, ""),
    ]


def _beside(host: str, udp: int, second: int) -> tuple[Ask, ...]:
    """What else a service has: datagrams, another port, and room for more than one packet."""
    return Ask(host, udp, protocol="udp"), Ask(host, second), Ask(host, second, body=commands.BODY)


def _dial(
    key: str,
    pod: Pod,
    what: str,
    host: str,
    port: int,
    names: set[str],
    tries: int,
    next_step: str,
    rests_on: str = "",
    also: tuple[Ask, ...] = (),
) -> Look:
    """New connections, all answered, by nobody else; with many of them, by everybody who should."""
    asks = [Ask(host, port, tries), *also]
    command = commands.dial_all(pod.os, asks)
    everybody = tries == MANY
    wanted = f"{tries} answers from {'each of ' if everybody else ''}{', '.join(sorted(names))}"
    wanted += "".join(f", an answer at {_port(ask)}" for ask in also)

    async def attempt() -> Try:
        result = await pod.run(command, seconds=sum(commands.dial_seconds(ask.tries) for ask in asks) + 5)
        found = commands.read_dials(result.stdout, asks)
        if not found:
            return Try(False, "no word of what came of the connections", result)
        dialled, seen = found[0], set(found[0].answers)
        right = seen == names if everybody else bool(seen) and seen <= names
        told = [f"{len(dialled.answers)} of {tries} answered: {', '.join(sorted(seen)) or 'nobody'}"]
        told += dialled.errors[-1:]
        lost = [ask for ask, each in zip(also, found[1:], strict=True) if not _answered(ask, each.answers, names)]
        told += [f"no right answer at {_port(ask)}" for ask in lost]
        return Try(right and len(dialled.answers) == tries and not lost, "; ".join(told).strip(), result)

    return Look(key, pod, f"reaches {what}", command, wanted, attempt, next_step, rests_on=rests_on)


def _answered(ask: Ask, answers: Sequence[str], names: set[str]) -> bool:
    return bool(answers) and set(answers) <= ({ask.text} if ask.body else names)


def _port(ask: Ask) -> str:
    kind = "UDP" if ask.protocol == "udp" else "TCP"
    return f"{kind} port {ask.port}" + (f" with {ask.body:,} bytes each way" if ask.body else "")


def _outside(pod: Pod, name: str, next_step: str) -> Look:
    address = f"{name}:443"
    command = commands.connect(address)

    async def attempt() -> Try:
        result = await pod.run(command)
        text = (result.stderr or result.stdout).decode(errors="replace").strip()
        return Try(not commands.name_error(result.stderr), text or "connected", result)

    return Look(
        "outside", pod, f"resolves {name}", command, "the name is resolved", attempt, next_step, rests_on=FULL_NAME
    )


def _files(scene: Scene, pod: Pod) -> Look:
    """Config map, hostPath and, where the pod is the same as before, emptyDir, as the second container sees them."""
    wanted = {f"{CONFIG}\\{key}": text for key, text in scene.texts.items()}
    wanted |= {path: text for path, text in scene.kept.items() if path.startswith(HOST) or pod.uid == scene.writer}
    command = ["cmd", "/c", " & ".join(f"type {path}" for path in wanted)]

    async def attempt() -> Try:
        result = await pod.run(command, container=BESIDE)
        # A file that was written from outside may have no end of line: the next one begins on the same.
        text = result.stdout.decode(errors="replace")
        missing = [path for path, mark in wanted.items() if mark not in text]
        return Try(not missing, f"not there: {', '.join(missing)}" if missing else "all there", result)

    step = f"look at the volumes of pod {pod.name} in the kubelet's log on node {pod.node.name}"
    return Look(
        "files", pod, "finds the files of its volumes", command, ", ".join(wanted), attempt, step, patient=False
    )


def _memory_limit(ctx: Context, pod: Pod) -> Look:
    command = commands.fill_memory(2 * MEMORY_LIMIT // commands.MEMORY_BLOCK, 1, 0)

    async def attempt() -> Try:
        result = await pod.run(command, container=BESIDE, seconds=ctx.times.memory_fill, again=False)
        taken = commands.read_blocks(result.stdout)
        if not taken:
            return Try(False, "the program that takes memory did not finish", result)
        got = taken[-1] * commands.MEMORY_BLOCK
        return Try(got < MEMORY_LIMIT, f"{got // MEBIBYTE} MiB taken", result)

    expected = f"less than {MEMORY_LIMIT // MEBIBYTE} MiB, the limit of container {BESIDE}"
    step = f"look at the container runtime of node {pod.node.name}: are job object limits set?"
    what, tried = "is held to its memory limit", functools.partial(from_the_start, attempt)
    return Look("limit", pod, what, command, expected, tried, step, patient=False)


def _cpu_limit(ctx: Context, pod: Pod) -> Look:
    """A program that asks for a whole core for a minute; the kubelet says how much of it the container used."""

    async def attempt() -> Try:
        stop, cores, trouble = f"C:\\{marker()}", 0.0, ""
        seconds = ctx.times.cpu_window + 2 * ctx.times.powershell
        run = pod.run(commands.burn_cpu(stop), container=BESIDE, seconds=seconds, again=False, beside=True)
        burning = asyncio.create_task(run)
        try:
            await ctx.timing.pause(ctx.times.cpu_lead)
            try:
                before = await usages(pod, [BESIDE])
                await ctx.timing.pause(ctx.times.cpu_window)
                cores = (await usages(pod, [BESIDE]))[BESIDE].cores_since(before[BESIDE])
            except CheckBlocked as block:
                trouble = block.reason
            await pod.run(commands.write_file(pod.os, stop, "stop"), container=BESIDE)
            result = await burning
        finally:
            burning.cancel()
        return Try(CPU_LEAST <= cores <= CPU_MOST, trouble or f"{cores:.2f} cores used", result)

    expected = f"at most {CPU_MOST:g} cores, with a limit of {CPU_LIMIT:g} for container {BESIDE}"
    step = f"look at the container runtime of node {pod.node.name}: are job object limits set?"
    command = commands.burn_cpu("C:\\...")
    what, tried = "is held to its CPU limit", functools.partial(from_the_start, attempt)
    return Look("CPU limit", pod, what, command, expected, tried, step, patient=False, slow=True)


def _log(pod: Pod) -> Look:
    async def attempt() -> Try:
        text = await pod.client.logs(pod.namespace, pod.name, "main", tail=5)
        return Try(bool(text.strip()), text.strip()[-200:] or "nothing")

    step = f"look at the kubelet and the container runtime of node {pod.node.name}"
    return Look("log", pod, "has its log", [], "what the server wrote since it started", attempt, step, patient=False)


async def ask(ctx: Context, every_look: Sequence[Look], window: float, when: str) -> list[tuple[Look, Try]]:
    """Put all questions at once; what came of each."""

    async def one(look: Look) -> tuple[Look, Try]:
        start, attempts, result = now(), 0, Try(False, "not asked")
        patience = window if look.patient else min(window, ctx.times.pod_reachable)
        async for number in ctx.timing.attempts(patience, every=ctx.times.reboot_look):
            attempts, result = number, await look.attempt()
            if result.ok:
                break
        title = f"{look.pod.name} {look.what} {when}"
        ctx.probe.record(title, result, look.pod, look.command, look.expected, attempts=attempts, start=start)
        return look, result

    return list(await asyncio.gather(*(one(look) for look in every_look)))


async def require(ctx: Context, every_look: Sequence[Look], window: float, when: str) -> None:
    """All of them must show what they should; of several that do not, those are told that no other one explains."""
    failed = {look.key: (look, result) for look, result in await ask(ctx, every_look, window, when) if not result.ok}
    told = [(look, result) for look, result in failed.values() if look.rests_on not in failed]
    if told:
        look, result = told[0]
        raise CheckFailed(
            f"{when}: "
            + "; ".join(f"{describe(each.pod)} no longer {each.what}: {seen.seen}" for each, seen in told[:TOLD]),
            expected=look.expected,
            observed=result.seen,
            next_step=look.next_step,
        )

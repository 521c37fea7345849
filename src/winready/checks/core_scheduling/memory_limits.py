"""Memory limits over minutes.

Windows has no OOM killer: a job object refuses memory beyond its limit to the process that asks. So a program takes
what it gets, keeps it, and asks again and again.
"""

from __future__ import annotations

import asyncio

from winready.checks.context import Context
from winready.checks.core_scheduling.limited_pods import FREE, SECOND, container, limits_of, status_of
from winready.cluster import commands
from winready.cluster.commands import NETEXEC_HTTP, fetch
from winready.cluster.errors import ExecFailed
from winready.cluster.execution import Execution
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.namespaces import Namespace
from winready.cluster.pods import CONTAINER, Pod, from_the_start
from winready.cluster.probes import Try, describe, every
from winready.cluster.stats import usages

MEBIBYTE = 2**20
LIMITS = {CONTAINER: 512 * MEBIBYTE, SECOND: 320 * MEBIBYTE}
RESTARTS = {CONTAINER: 0, SECOND: 1}
"""How often each is started again because we want it."""
OVERSHOOT = 1.05
ROUNDS = 5
"""Attempts to get more, over two minutes."""
WANTED_BLOCKS = 2 * max(LIMITS.values()) // commands.MEMORY_BLOCK
CONTROL_BLOCKS = 640 * MEBIBYTE // commands.MEMORY_BLOCK


async def judge_memory(ctx: Context, node: Node, number: int) -> None:
    """Judge the memory limits of a pod on a node."""
    namespace = await ctx.world.namespace("lim")
    containers = [
        container(ctx, CONTAINER, {"memory": f"{LIMITS[CONTAINER]}"}),
        container(ctx, SECOND, {"memory": f"{LIMITS[SECOND]}"}, args=["netexec"]),
        container(ctx, FREE, {}),
    ]
    pod = await ctx.start(namespace, f"mem-{number}", node, containers)
    await _restart(ctx, namespace, pod)
    await _control(ctx, pod, limits_of(namespace.pod(pod.name), FREE).get("memory"))
    filled = await every(*(_fill(ctx, pod, name, WANTED_BLOCKS, ROUNDS, ctx.times.memory_step) for name in LIMITS))
    raw = namespace.pod(pod.name)
    await namespace.gone_pod(pod)
    for name, (got, peak) in zip(LIMITS, filled, strict=True):
        ended = int(status_of(raw, name).get("restartCount", 0)) - RESTARTS[name]
        _kept(pod, name, got, peak, ended)


async def _restart(ctx: Context, namespace: Namespace, pod: Pod) -> None:
    """Let the second container end, and wait until it runs again: its limit must come back with it."""
    window = ctx.times.windows_pod_start

    def runs_again() -> bool | None:
        status = status_of(namespace.pod(pod.name), SECOND)
        return (status.get("restartCount", 0) > 0 and "running" in status.get("state", {})) or None

    async def attempt() -> None:
        ending = pod.run(fetch(pod.os, f"http://127.0.0.1:{NETEXEC_HTTP}/exit?code=1"), container=SECOND, again=False)
        try:
            await ending
        except ExecFailed:
            # The container may end before the command in it does; or the command never came so far.
            if await namespace.seen(lambda: _ended(namespace, pod), ctx.times.exec_ready) is None:
                raise

    await from_the_start(attempt)
    if await namespace.seen(runs_again, window) is None:
        raise CheckBlocked(
            f"container {SECOND} of {describe(pod)} was told to end and does not run again after {window:g} s",
            next_step=f"'kubectl describe pod -n {namespace.name} {pod.name}' says what it waits for",
        )


def _ended(namespace: Namespace, pod: Pod) -> bool | None:
    status = status_of(namespace.pod(pod.name), SECOND)
    return (status.get("restartCount", 0) > 0 or "running" not in status.get("state", {})) or None


async def _control(ctx: Context, pod: Pod, given: str | None) -> None:
    """Without a limit there is more to be had; where admission gives every container a limit, that cannot be asked."""
    ctx.evidence.fact(f"memory limit that admission gave to {pod.name}/{FREE}", given)
    if given is not None:
        return
    free, _ = await _fill(ctx, pod, FREE, CONTROL_BLOCKS, 1, ctx.times.memory_hold)
    if free < CONTROL_BLOCKS * commands.MEMORY_BLOCK:
        raise CheckBlocked(
            f"{describe(pod)}: a container without a limit gets only {free // MEBIBYTE} MiB",
            next_step=f"node {pod.node.name} is short of memory; free some and run again",
        )


def _kept(pod: Pod, name: str, got: int, peak: int, ended: int) -> None:
    limit, who = LIMITS[name], f"container {name} of {describe(pod)}"
    seen = f"{got // MEBIBYTE} MiB taken, {peak // MEBIBYTE} MiB in use, {max(ended, 0)} restarts"
    if got >= limit or peak > limit * OVERSHOOT:
        raise CheckFailed(
            f"{who} has a memory limit of {limit // MEBIBYTE} MiB and gets beyond it: {seen}",
            expected=f"less than {limit // MEBIBYTE} MiB",
            observed=seen,
            next_step=f"look at the container runtime of node {pod.node.name}: are job object limits set?",
        )
    if ended > 0:
        raise CheckFailed(
            f"{who} was restarted when it reached its memory limit: {seen}",
            expected="memory is refused and the container goes on",
            observed=seen,
            next_step=f"'kubectl describe pod' and the event log of node {pod.node.name} say what ended it",
        )


async def _fill(ctx: Context, pod: Pod, name: str, blocks: int, rounds: int, pause: float) -> tuple[int, int]:
    """Take memory in a container until it is refused; how much it got, and the most that the kubelet saw in use."""
    command = commands.fill_memory(blocks, rounds, pause)
    seconds = ctx.times.memory_fill + rounds * pause
    peak = 0

    async def attempt() -> Execution:
        nonlocal peak
        filling = asyncio.create_task(pod.run(command, container=name, seconds=seconds, again=False, beside=True))
        try:
            while not filling.done():
                peak = max(peak, (await usages(pod, [name]))[name].memory_bytes)
                await asyncio.wait([filling], timeout=ctx.timing.wall(ctx.times.stats_look))
        finally:
            filling.cancel()
        return await filling

    result = await from_the_start(attempt)
    taken = commands.read_blocks(result.stdout)
    seen = f"{', '.join(map(str, taken))} blocks of 8 MiB, {peak // MEBIBYTE} MiB in use at most"
    ok, expected = len(taken) == rounds, f"up to {blocks} blocks of 8 MiB, asked for {rounds} times"
    ctx.probe.record(f"{pod.name}/{name} takes memory", Try(ok, seen, result), pod, command, expected)
    if not ok:
        error = commands.lines(result.stderr)
        raise CheckBlocked(
            f"container {name} of {describe(pod)}: the program that takes memory did not finish: "
            f"{error[-1] if error else 'no word'}",
            next_step="try the command of the evidence by hand",
        )
    return taken[-1] * commands.MEMORY_BLOCK, peak

"""CPU and memory limits of Windows pods are kept over time, as the kubelet measures it.

Windows has no OOM killer: a job object refuses memory beyond its limit to the process that asks, and caps processor
time per interval, so that a little more than the limit is normal. What is judged is the average of a minute.
"""

from __future__ import annotations

import asyncio

from winready.checks.context import Context
from winready.checks.registry import check
from winready.cluster import commands
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.namespaces import Namespace
from winready.cluster.pods import CONTAINER, Pod, idle_container
from winready.cluster.probes import Try, describe, every
from winready.cluster.stats import usage

CPU_LIMIT = 0.5
MOST, LEAST = 1.3 * CPU_LIMIT, 0.5 * CPU_LIMIT
"""0.52 to 0.60 cores were seen for a limit of 0.5; below half the limit nobody asked for the processor."""
TOLERATED = 0.84
"""What Kubernetes' own test lets pass; between this and `MOST` a second minute decides."""
MEBIBYTE = 2**20
MEMORY_LIMIT = 512 * MEBIBYTE
OVERSHOOT = 1.05
WANTED_BLOCKS = 2 * MEMORY_LIMIT // commands.MEMORY_BLOCK
CONTROL_BLOCKS = 640 * MEBIBYTE // commands.MEMORY_BLOCK
FREE = "free"


@check("core.scheduling.limits-honoured", expected_s=200, windows_pods_per_node=2)
async def limits_honoured(ctx: Context) -> None:
    """On each judged node: a pod that burns a core gets half a one, and memory ends at its limit."""
    await every(
        *(judge(ctx, node, n) for n, node in enumerate(ctx.windows_nodes, 1) for judge in (_judge_cpu, _judge_memory))
    )


async def _judge_cpu(ctx: Context, node: Node, number: int) -> None:
    namespace = await ctx.world.namespace("lim")
    burner = idle_container(
        ctx.settings,
        command=commands.burn_cpu(),
        args=[],
        resources={
            "limits": {"cpu": f"{CPU_LIMIT:g}", "memory": "512Mi"},
            "requests": {"cpu": "50m", "memory": "100Mi"},
        },
    )
    pod = await ctx.start(namespace, f"cpu-{number}", node, [burner])
    await ctx.timing.pause(ctx.times.cpu_settle)
    cores = await _average(ctx, pod)
    if MOST < cores <= TOLERATED:
        cores = await _average(ctx, pod)
    await namespace.gone_pod(pod)
    if cores < LEAST:
        raise CheckBlocked(
            f"{describe(pod)} burns the processor and gets only {cores:.2f} cores: nothing is left to limit there",
            next_step=f"look at the load of node {node.name} and run again",
        )
    if cores > MOST:
        raise CheckFailed(
            f"{describe(pod)} has a limit of {CPU_LIMIT:g} cores and uses {cores:.2f} over {ctx.times.cpu_window:g} s",
            expected=f"at most {MOST:.2f} cores",
            observed=f"{cores:.2f} cores",
            next_step=f"look at the container runtime of node {node.name}: are job object limits set?",
        )


async def _average(ctx: Context, pod: Pod) -> float:
    before = await usage(pod)
    await ctx.timing.pause(ctx.times.cpu_window)
    cores = (await usage(pod)).cores_since(before)
    title, expected = f"{pod.name} is held to its CPU limit", f"{LEAST:.2f} to {MOST:.2f} cores"
    ctx.probe.record(title, Try(LEAST <= cores <= MOST, f"{cores:.3f} cores"), pod, commands.burn_cpu(), expected)
    return cores


async def _judge_memory(ctx: Context, node: Node, number: int) -> None:
    namespace: Namespace = await ctx.world.namespace("lim")
    limits = {"limits": {"memory": f"{MEMORY_LIMIT}"}, "requests": {"cpu": "10m", "memory": "100Mi"}}
    containers = [idle_container(ctx.settings, resources=limits), idle_container(ctx.settings, name=FREE)]
    pod = await ctx.start(namespace, f"mem-{number}", node, containers)
    free, _ = await _fill(ctx, pod, FREE, CONTROL_BLOCKS)
    if free < CONTROL_BLOCKS * commands.MEMORY_BLOCK:
        raise CheckBlocked(
            f"{describe(pod)}: a container without a limit gets only {free // MEBIBYTE} MiB",
            next_step=f"node {node.name} is short of memory; free some and run again",
        )
    got, peak = await _fill(ctx, pod, CONTAINER, WANTED_BLOCKS)
    raw = namespace.pod(pod.name) or {}
    restarts = sum(item["restartCount"] for item in (raw.get("status") or {}).get("containerStatuses") or [])
    await namespace.gone_pod(pod)
    seen = f"{got // MEBIBYTE} MiB taken, {peak // MEBIBYTE} MiB in use, {restarts} restarts"
    if got >= MEMORY_LIMIT or peak > MEMORY_LIMIT * OVERSHOOT:
        raise CheckFailed(
            f"{describe(pod)} has a memory limit of {MEMORY_LIMIT // MEBIBYTE} MiB and gets beyond it: {seen}",
            expected=f"less than {MEMORY_LIMIT // MEBIBYTE} MiB",
            observed=seen,
            next_step=f"look at the container runtime of node {node.name}: are job object limits set?",
        )
    if restarts:
        raise CheckFailed(
            f"{describe(pod)} was restarted when it reached its memory limit: {seen}",
            expected="memory is refused and the container goes on",
            observed=seen,
            next_step=f"'kubectl describe pod' and the event log of node {node.name} say what ended it",
        )


async def _fill(ctx: Context, pod: Pod, container: str, blocks: int) -> tuple[int, int]:
    """Take memory in a container until it is refused; how much it got, and the most that the kubelet saw in use."""
    command = commands.fill_memory(blocks, ctx.times.memory_hold)
    seconds = ctx.times.memory_fill + ctx.times.memory_hold
    filling = asyncio.create_task(pod.run(command, container=container, seconds=seconds, again=False))
    peak = 0
    try:
        while not filling.done():
            peak = max(peak, (await usage(pod, container)).memory_bytes)
            await asyncio.wait([filling], timeout=ctx.timing.wall(ctx.times.stats_look))
    finally:
        filling.cancel()
    result = await filling
    taken = commands.read_blocks(result.stdout)
    seen = f"{taken} blocks of 8 MiB, {peak // MEBIBYTE} MiB in use at most"
    ok = taken is not None
    ctx.probe.record(
        f"{pod.name}/{container} takes memory", Try(ok, seen, result), pod, command, f"up to {blocks} blocks of 8 MiB"
    )
    if taken is None:
        error = commands.lines(result.stderr)
        raise CheckBlocked(
            f"{describe(pod)}: the program that takes memory did not finish: {error[-1] if error else 'no word'}",
            next_step="try the command of the evidence by hand",
        )
    return taken * commands.MEMORY_BLOCK, peak

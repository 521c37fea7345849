"""Files on a share, and in a folder of the node if one was named, are written and read by the account of a pod.

A file of a share is read by another container, and by the pod of another node: a file that never left the container
would satisfy whoever wrote it.
"""

import itertools
from collections.abc import Awaitable, Callable

from winready.checks.context import Context
from winready.checks.extend_activedirectory.lasting import Round, go_on
from winready.checks.extend_activedirectory.members import CONTAINERS, FOLDER, SECOND, Pair, members, pair, scene
from winready.checks.extend_activedirectory.shares import (
    LINES,
    LOOKS,
    Marked,
    new_file,
    often,
    reads,
    remove,
    run,
    write_often,
    writes,
)
from winready.checks.registry import check
from winready.cluster.commands import lines, read_file, write_lines
from winready.cluster.failures import CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.pods import CONTAINER, Pod
from winready.cluster.probes import Try, describe, every

Written = tuple[Pair, Marked]


@check("extend.activedirectory.storage", expected_s=160)
async def storage(ctx: Context) -> None:
    """On every judged node; then each node's file is read on another one."""
    shared = await scene(ctx)
    made: list[Written] = []
    try:
        await every(*(_remote(ctx, node, shared.given.allowed_share, made) for node in ctx.windows_nodes))
        if shared.given.folder:
            await every(*(_local(ctx, node, made) for node in ctx.windows_nodes))
        files = [(each, file) for each, file in made if file.path.startswith("\\\\")]
        readers = [each.member for each, _ in [*files[1:], *files[:1]]]
        if len(files) > 1:
            await every(*(_read_elsewhere(ctx, reader, *one) for reader, one in zip(readers, files, strict=True)))
        await every(*(_stays(ctx, each, shared.given.allowed_share, made) for each, _ in files))
    finally:
        for each, file in made:
            # A folder of a node is not for pods of others.
            able = await members(ctx, each.member) if file.path.startswith("\\\\") else [each.member]
            await remove(ctx, able, [file])


async def _remote(ctx: Context, node: Node, share: str, made: list[Written]) -> None:
    await _write_and_read(ctx, await pair(ctx, node), share, share, made, CONTAINER, SECOND)


async def _local(ctx: Context, node: Node, made: list[Written]) -> None:
    """Each container for itself: whether they share a volume is not the question here."""
    where = f"{(await scene(ctx)).given.folder} of the node"
    for container in CONTAINERS:
        await _write_and_read(ctx, await pair(ctx, node), FOLDER, where, made, container, container)


async def _write_and_read(
    ctx: Context, pods: Pair, place: str, where: str, made: list[Written], writer: str, reader: str
) -> None:
    pod, file = pods.member, new_file(ctx, place)
    made.append((pods, file))
    what, command = f"writes to {where} in its container {writer}", write_lines(file.path, file.text, LINES)
    await _require(ctx, pod, what, lambda: writes(pod, file, writer), command, where)
    what, command = f"reads in its container {reader} what it wrote to {where}", read_file("windows", file.path)
    await _require(ctx, pod, what, lambda: reads(pod, file, reader), command, where)


async def _read_elsewhere(ctx: Context, reader: Pod, writer: Pair, file: Marked) -> None:
    what = f"reads what {writer.member.name} on node {writer.member.node.name} wrote to the share"
    await _require(ctx, reader, what, lambda: reads(reader, file), read_file("windows", file.path), file.path)


async def _stays(ctx: Context, pods: Pair, share: str, made: list[Written]) -> None:
    """Files are written and read for minutes, by both containers in turn."""
    pod, file, turns = pods.member, new_file(ctx, share), itertools.cycle(CONTAINERS)
    made.append((pods, file))

    async def attempt() -> Round:
        result = await run(pod, write_often(file), next(turns), waits=LOOKS)
        found = lines(result.stdout)
        return Round(LOOKS, sum(line in found for line in often(file)), result)

    what = f"it writes to {share} and reads what it wrote"
    await go_on(ctx, pod, "a container", what, attempt, command=write_often(file), target=share)


async def _require(
    ctx: Context, pod: Pod, what: str, attempt: Callable[[], Awaitable[Try]], command: list[str], target: str
) -> None:
    found = await ctx.probe.until(
        f"{pod.name} {what}",
        attempt,
        window=ctx.times.identity,
        pod=pod,
        command=command,
        expected="all of it",
        target=target,
    )
    if not found.ok:
        raise CheckFailed(
            f"{describe(pod)}, with its credential spec, cannot do this for {ctx.times.identity:g} s: it {what}: "
            f"{found.seen}",
            expected="the file is written and read as it was written",
            observed=found.seen,
            next_step=f"look at what the account may do with {target}; names of servers need "
            f"EnableCompartmentNamespace in the registry of node {pod.node.name}",
        )

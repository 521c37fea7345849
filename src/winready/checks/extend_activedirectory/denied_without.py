"""Without a credential spec a pod of the same node does not get to the files that one with it has just written.

The way to the server must be open, and the pod with the account must get through before and after: a refusal counts
only then.
"""

from winready.checks.context import Context
from winready.checks.extend_activedirectory.members import FOLDER, Pair, members, pair, scene
from winready.checks.extend_activedirectory.shares import (
    LINES,
    Marked,
    lists,
    look_into,
    new_file,
    reads,
    remove,
    run,
    writes,
)
from winready.checks.registry import check
from winready.cluster.commands import connect, list_folder, read_file, write_lines
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.pods import Pod
from winready.cluster.probes import Try, describe, every
from winready.cluster.timing import uneven

SMB = 445
ROUNDS = 4
"""Attempts of each kind, spread over the time that a state is observed."""
STORAGE = "see extend.activedirectory.storage first"


@check("extend.activedirectory.denied-without", expected_s=160)
async def denied_without(ctx: Context) -> None:
    """On every judged node, for the share and for the folder of the node."""
    await every(*(_judge(ctx, node) for node in ctx.windows_nodes))


async def _judge(ctx: Context, node: Node) -> None:
    given, pods = (await scene(ctx)).given, await _running(ctx, node)
    await _require_way(ctx, pods.twin, f"{given.server}:{SMB}")
    places = {given.allowed_share: given.allowed_share}
    if given.folder:
        places[FOLDER] = f"{given.folder} of node {node.name}"
    await every(*(_compare(ctx, pods, place, words) for place, words in places.items()))


async def _running(ctx: Context, node: Node) -> Pair:
    """The pods; that one with an account does not even start is for others to find."""
    try:
        return await pair(ctx, node)
    except CheckFailed as failure:
        if "credential spec" not in failure.reason:
            raise
        raise CheckBlocked(failure.reason, next_step="see extend.activedirectory.gmsa-access first") from None


async def _require_way(ctx: Context, twin: Pod, address: str) -> None:
    found = await ctx.probe.until(
        f"control: {twin.name} connects to {address}",
        lambda: ctx.probe.connects(twin, address),
        window=ctx.times.pod_reachable,
        pod=twin,
        command=connect(address),
        expected="a connection",
        target=address,
    )
    if not found.ok:
        raise CheckBlocked(
            f"{describe(twin)} does not reach {address} ({found.seen}), so that being kept out would show nothing",
            next_step="open the way from pods to the file server, or name another one",
        )


async def _compare(ctx: Context, pods: Pair, place: str, words: str) -> None:
    file, foreign = new_file(ctx, place), new_file(ctx, place)
    try:
        await _control(ctx, pods.member, file, words, write=True)
        for pause in (0.0, *uneven(ctx.times.observe, ROUNDS - 1, f"{pods.twin.name} {place}")):
            await ctx.timing.pause(pause)
            await _kept_out(ctx, pods, file, foreign, place, words)
        await _control(ctx, pods.member, file, words, write=False)
    finally:
        able = [pods.member] if place == FOLDER else await members(ctx, pods.member)
        await remove(ctx, able, [file, foreign])


async def _control(ctx: Context, member: Pod, file: Marked, words: str, *, write: bool) -> None:
    """The pod with the account writes and reads there, or nothing can be said about one without."""

    async def attempt() -> Try:
        if write:
            written = await writes(member, file)
            if not written.ok:
                return written
        return await reads(member, file)

    found = await ctx.probe.until(
        f"control: {member.name} {'writes and reads' if write else 'still reads'} a file in {words}",
        attempt,
        window=ctx.times.identity,
        pod=member,
        command=read_file("windows", file.path),
        expected="all of it",
        target=words,
    )
    if not found.ok:
        raise CheckBlocked(
            f"{describe(member)} does not write and read in {words} with its account either: {found.seen}",
            next_step=STORAGE,
        )


async def _kept_out(ctx: Context, pods: Pair, file: Marked, foreign: Marked, place: str, words: str) -> None:
    twin = pods.twin
    listed = await lists(twin, place)
    attempts = (
        ("lists", listed, look_into(place)),
        ("reads a file of", await reads(twin, file), read_file("windows", file.path)),
        ("writes to", await writes(twin, foreign), write_lines(foreign.path, foreign.text, LINES)),
    )
    got = [what for what, found, _ in attempts if found.ok]
    for what, found, command in attempts:
        ctx.probe.record(
            f"{twin.name} without an account {what} {words}",
            Try(not found.ok, found.seen, found.execution),
            twin,
            command,
            "a refusal",
            words,
        )
    arrived = (await run(pods.member, list_folder(foreign.path))).exit_code == 0
    if arrived and "writes to" not in got:
        got.append("writes to")
    if place == FOLDER and got and not arrived and "reads a file of" not in got and not _shows(listed, file):
        raise CheckBlocked(
            f"{describe(twin)} finds another folder at {words} than {pods.member.name} does",
            next_step="see core.storage.hostpath-read and core.storage.hostpath-write first",
        )
    if got:
        raise CheckFailed(
            f"{describe(twin)} has no credential spec and all the same {', '.join(got)} {words}",
            expected="a refusal, as for everybody without the account",
            observed="; ".join(f"{what}: {found.seen}" for what, found, _ in attempts),
            next_step=f"look at the permissions of {words}, and at what the runtime of node {twin.node.name} gives to "
            "containers that ask for nothing",
        )


def _shows(listed: Try, file: Marked) -> bool:
    name = file.path.rpartition("\\")[2]
    return listed.execution is not None and name in listed.execution.stdout.decode(errors="replace")

"""Names are asked for over minutes: by Windows' own resolver, and by questions that no cache answers."""

from __future__ import annotations

from collections.abc import Mapping

from winready.checks.context import Context
from winready.checks.core_network.name_failures import fail, require
from winready.checks.core_network.name_records import read_records, require_records
from winready.checks.core_network.name_shares import Share, question, sample
from winready.checks.core_network.names import Answer, Led, Target, ask
from winready.cluster.commands import dig
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.pods import Pod
from winready.cluster.probes import Try, describe
from winready.cluster.timing import now, uneven

ROUNDS = 4
"""How often names are asked for while they are observed: at the beginning, twice between, at the end."""


async def hold(
    ctx: Context,
    client: Pod,
    controls: list[Pod],
    names: list[str],
    targets: list[Target],
    *,
    seconds: float | None = None,
    records: Mapping[str, str] | None = None,
) -> None:
    """Ask cluster DNS for ``names``, and let the pod look ``targets`` up; ``seconds``: for one question.

    ``records`` are the addresses that these names have: an answer now and then that says otherwise is one too many.
    """
    start, share, limit = now(), Share(), ctx.times.question if seconds is None else seconds
    looked = unresolved = 0
    wrong: list[Answer] = []
    for pause in (0.0, *uneven(ctx.times.observe, ROUNDS - 1, f"{client.name} {names[0]}")):
        await ctx.timing.pause(pause)
        replies, _ = await question(client, names, limit)
        share.count(replies, len(names))
        if records and len(replies) == len(names):
            require_records(client, records, read_records(names, replies))
        answers = (await ask(client, targets))[0] if targets else []
        wrong = [answer for answer in answers if not answer.right]
        looked += len(answers)
        unresolved += sum(answer.led is Led.UNRESOLVED for answer in wrong)
        if strangers := [answer for answer in wrong if answer.led is Led.STRANGER]:
            await fail(ctx, client, controls, strangers)
    if wrong:
        again = [answer.target for answer in wrong]
        await require(ctx, client, controls, again, window=ctx.times.hold)
    if not share.clean or unresolved:
        await sample(ctx, client, names, limit, share)
    share.asked, share.failed = share.asked + looked, share.failed + unresolved
    expected, title = f"answers for {ctx.times.observe:g} s", f"{client.name} goes on asking for names"
    ctx.probe.record(title, Try(share.borne, str(share)), client, dig(names, tries=1), expected, start=start)
    if not share.borne:
        await _too_often(ctx, client, controls, names, limit, share)


async def _too_often(
    ctx: Context, client: Pod, controls: list[Pod], names: list[str], seconds: float, share: Share
) -> None:
    for control in controls:
        others = Share()
        await sample(ctx, control, names, seconds, others)
        if others.borne:
            raise CheckFailed(
                f"{describe(client)} asked cluster DNS, and {share}; {describe(control)} does better",
                expected=f"answers for {ctx.times.observe:g} s",
                observed=str(share),
                next_step=f"look for lost datagrams between node {client.node.name} and cluster DNS (UDP port 53), and "
                "at the log of each of its pods",
            )
    raise CheckBlocked(
        f"{describe(control)} does no better than {describe(client)}: {others}",
        next_step="repair cluster DNS in general first: its pods, their logs and their forwarders",
    )

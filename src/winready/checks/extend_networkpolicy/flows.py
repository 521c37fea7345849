"""Who may talk to whom while a policy is in force, tried on new connections from every side at once.

A policy is judged at both ends that Windows has: what may reach a Windows pod, and what a Windows pod may reach. A flow
that must be kept out counts as kept out only while those that are allowed get through in the same round, or a dead
network would look like a good policy engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from winready.checks.context import Context
from winready.cluster.commands import NETEXEC_HTTP, Ask, Dialled, dial_all, dial_seconds, read_dials
from winready.cluster.errors import ExecFailed
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import UNKNOWN_ENGINE
from winready.cluster.pods import RETRIES, Pod
from winready.cluster.probes import LEAST_ATTEMPTS, Try, describe, every
from winready.cluster.timing import now, uneven

AT_ONCE = 4
"""Flows that one command tries: those that are kept out take their time, one after the other."""
HOLD_ROUNDS = 2
LONG_ROUNDS = 3


@dataclass(frozen=True, eq=False)
class Flow:
    """New connections from one pod to another, as a policy on one of the two decides about them."""

    source: Pod
    target: Pod
    inward: bool
    """Whether the pod that the policy is about is the target; otherwise it is the source."""
    allowed: bool = True

    @property
    def subject(self) -> Pod:
        """The pod that the policy is about."""
        return self.target if self.inward else self.source

    @property
    def other(self) -> Pod:
        """The pod on the other side."""
        return self.source if self.inward else self.target

    def right(self, seen: Dialled) -> bool:
        """Whether that is how it should be."""
        return seen.answers == [self.target.name] if self.allowed else not seen.answers


def flows(subject: Pod, others: Iterable[tuple[Pod, bool]]) -> list[Flow]:
    """To and from a pod that a policy is about; with each other side stands whether it is allowed."""
    made = []
    for other, allowed in others:
        made += [Flow(other, subject, True, allowed), Flow(subject, other, False, allowed)]
    return made


async def require_open(ctx: Context, wanted: Sequence[Flow]) -> None:
    """Before a policy: everybody reaches everybody and goes on to, or nothing can be said about one."""
    found = await _watch(ctx, wanted, ctx.times.pod_reachable, LEAST_ATTEMPTS)
    wrong = [flow for flow, seen in found.items() if not flow.right(seen)]
    lost = _told(wrong, found) if wrong else ""
    for _ in range(HOLD_ROUNDS if not lost else 0):
        found = await _look(ctx, wanted)
        try:
            await every(*(_judge_loss(ctx, flow) for flow, seen in found.items() if not flow.right(seen)))
        except CheckFailed as failure:
            lost = failure.reason
            break
    _record(ctx, "before any policy", found)
    if lost:
        raise CheckBlocked(
            f"without any policy of ours {lost}",
            next_step="repair the pod network between these nodes first",
        )


async def require_effect(ctx: Context, wanted: Sequence[Flow], what: str, *, long: bool = False) -> None:
    """Within the time that a policy may take, everything is as it says, and stays so; ``long``: for minutes."""
    window = ctx.times.policy_effect
    hold, rounds = (ctx.times.observe, LONG_ROUNDS) if long else (ctx.times.hold, HOLD_ROUNDS)
    # Faster than the clock of a cluster, a busy machine of ours may use the time up without anything having happened.
    found = await _watch(ctx, wanted, window, LEAST_ATTEMPTS if ctx.timing.scale > 1 else 1)
    wrong = [flow for flow, seen in found.items() if not flow.right(seen)]
    if wrong:
        _record(ctx, f"after {what}", found)
        _blame(ctx, wrong, found, wanted, f"{window:g} s after {what}")
    for pause in uneven(hold, rounds, what):
        await ctx.timing.pause(pause)
        found = await _look(ctx, wanted)
        leaks = [flow for flow, seen in found.items() if not flow.allowed and not flow.right(seen)]
        if leaks:
            _record(ctx, f"after {what}", found)
            _blame(ctx, leaks, found, wanted, f"after {what} had taken effect")
        await every(
            *(
                _judge_loss(ctx, flow, f", which is allowed after {what},")
                for flow, seen in found.items()
                if not flow.right(seen)
            )
        )
    _record(ctx, f"after {what}", found)


async def _judge_loss(ctx: Context, flow: Flow, why: str = "") -> None:
    """One lost connection is not a policy: what is allowed is judged by the share that gets through."""
    await ctx.probe.reach(
        flow.source,
        flow.target.address,
        NETEXEC_HTTP,
        [flow.target],
        f"{flow.target.name}{why}",
        window=ctx.times.policy_effect,
        hint=_step(ctx, [flow]),
    )


async def _watch(ctx: Context, wanted: Sequence[Flow], window: float, least: int) -> dict[Flow, Dialled]:
    """Look again and again until everything is right; the last look begins when the window ends.

    A look takes its time where flows are kept out: one that would be under way at the end is not begun before. What
    does not get through in the last one is asked once more, since a single connection may get lost.
    """
    end, attempts = now() + ctx.timing.deadline(window), 0
    while True:
        attempts, began = attempts + 1, now()
        found = await _look(ctx, wanted)
        wrong = [flow for flow, seen in found.items() if not flow.right(seen)]
        if not wrong:
            return found
        if began >= end and attempts >= least:
            return found | await _look(ctx, [flow for flow in wrong if flow.allowed])
        pause, left = ctx.timing.wall(ctx.times.poll), end - now()
        await asyncio.sleep(left if pause < left < pause + (now() - began) else pause)


async def _look(ctx: Context, wanted: Sequence[Flow]) -> dict[Flow, Dialled]:
    """Try every flow once, on a connection of its own."""
    ordered = sorted(wanted, key=lambda flow: (flow.source.namespace, flow.source.name))
    batches = []
    for _, group in groupby(ordered, key=lambda flow: flow.source.uid):
        own = list(group)
        batches += [own[place : place + AT_ONCE] for place in range(0, len(own), AT_ONCE)]
    found = await asyncio.gather(*(_try(batch) for batch in batches))
    return {flow: seen for each in found for flow, seen in each.items()}


def _asks(batch: Sequence[Flow]) -> list[Ask]:
    return [Ask(flow.target.address, NETEXEC_HTTP) for flow in batch]


async def _try(batch: Sequence[Flow]) -> dict[Flow, Dialled]:
    source, asks = batch[0].source, _asks(batch)
    for _ in range(RETRIES):
        result = await source.run(dial_all(source.os, asks), seconds=sum(dial_seconds(ask.tries) for ask in asks))
        if dialled := read_dials(result.stdout, asks):
            return dict(zip(batch, dialled, strict=True))
    told = (result.stderr or result.stdout)[:200].decode(errors="replace").strip()
    raise ExecFailed(f"{describe(source)} did not say what came of its connections: {told}")


def _record(ctx: Context, when: str, found: dict[Flow, Dialled]) -> None:
    """One probe for each pod that connections were opened from."""
    for _, group in groupby(found, key=lambda flow: flow.source.uid):
        own = list(group)
        source = own[0].source
        told = [f"{flow.target.name} {_seen(found[flow])}" for flow in own]
        wanted = [f"{flow.target.name} {'answers' if flow.allowed else 'is out of reach'}" for flow in own]
        result = Try(all(flow.right(found[flow]) for flow in own), "; ".join(told))
        command = dial_all(source.os, _asks(own[:AT_ONCE]))
        ctx.probe.record(f"{source.name} tries others {when}", result, source, command, "; ".join(wanted))


def _seen(seen: Dialled) -> str:
    if seen.answers:
        return f"answered as {seen.answers[0]}"
    return f"did not answer ({seen.errors[-1] if seen.errors else 'nothing came'})"


def _blame(ctx: Context, wrong: Sequence[Flow], found: dict[Flow, Dialled], wanted: Sequence[Flow], when: str) -> None:
    """Say which pods are not kept apart, or are although they should not be."""
    engine = ctx.world.inventory.features.get("network-policy", "")
    denied = [flow for flow in wanted if not flow.allowed]
    if engine.startswith(UNKNOWN_ENGINE) and denied and all(found[flow].answers for flow in denied):
        raise CheckBlocked(
            f"a network policy has no effect on any Windows pod, and whether there is an engine that should see to it "
            f"is {engine}",
            next_step="grant the right to list DaemonSets ('winready rbac' prints it)",
        )
    raise CheckFailed(
        f"{when}, {_told(wrong, found)}",
        expected="; ".join(_wish(flow) for flow in wrong[:4]),
        observed="; ".join(f"{flow.source.name} to {flow.target.name}: {_seen(found[flow])}" for flow in wrong[:4]),
        next_step=_step(ctx, wrong),
    )


def _wish(flow: Flow) -> str:
    return f"{flow.source.name} {'reaches' if flow.allowed else 'is kept from'} {flow.target.name}"


def _told(wrong: Sequence[Flow], found: dict[Flow, Dialled]) -> str:
    """What is wrong for each pod that the policy is about."""
    parts = []
    for subject in {flow.subject.uid: flow.subject for flow in wrong}.values():
        for inward, allowed, words in (
            (True, False, "is still reached by"),
            (True, True, "is not reached by"),
            (False, False, "still reaches"),
            (False, True, "does not reach"),
        ):
            others = [f for f in wrong if f.subject.uid == subject.uid and f.inward == inward and f.allowed == allowed]
            if others:
                names = ", ".join(f"{flow.other.name} on node {flow.other.node.name}" for flow in others[:3])
                names += f" and {len(others) - 3} more" if len(others) > 3 else ""
                parts.append(f"{describe(subject)} {words} {names} ({_seen(found[others[0]])})")
    return "; ".join(parts[:4]) + (f"; and {len(parts) - 4} more" if len(parts) > 4 else "")


def _step(ctx: Context, wrong: Sequence[Flow]) -> str:
    nodes = ", ".join(sorted({flow.subject.node.name for flow in wrong}))
    engine = ctx.world.inventory.features.get("network-policy", "the policy engine")
    return f"look at {engine} on node {nodes}: its log, and the ACLs of the pod's endpoint (Get-HnsEndpoint)"

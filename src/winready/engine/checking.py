"""Running one check and turning the way it ends into an outcome."""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

import msgspec

from winready.checks.context import Context
from winready.checks.registry import Check
from winready.checks.world import World
from winready.cluster.absence import BRING_BACK, NodeAway
from winready.cluster.activity import working
from winready.cluster.errors import ClusterError, ExecFailed, NotStarted, Refused
from winready.cluster.evidence import bounded
from winready.cluster.failures import CheckBlocked, CheckFailed, NotApplicable
from winready.cluster.refusals import OURS
from winready.cluster.timing import now
from winready.engine.outcomes import Outcome, RequirementResult, unproven
from winready.engine.plan import Planned

T = TypeVar("T")
REPORT_IT = "please report this with the run's journal"
LOOK_AT_API = "look at the API server's health and run again"
NAMED = 20
"""As many nodes are named one by one; the evidence names them all."""
ISOLATED = f"keep that policy out of namespaces with the label {OURS}, and run again"


class Ending(NamedTuple):
    """The way a check ended."""

    outcome: Outcome
    reason: str = ""
    next_step: str = ""
    expected: str = ""
    observed: str = ""


async def judge_requirement(check: Check, planned: Planned, world: World) -> RequirementResult:
    """Verify one requirement."""
    context = Context(world)
    start = now()
    with working(planned.id):
        ending, _ = await ended(check.run, context)
    result = RequirementResult(
        id=planned.id,
        category=planned.category,
        level=planned.level,
        outcome=ending.outcome,
        reason=ending.reason or shown(context),
        next_step=ending.next_step,
        expected=ending.expected,
        observed=ending.observed,
        duration_s=round(now() - start, 3),
        started_s=round(start - world.began, 3),
        verifier=planned.verifier,
        evidence=context.evidence.fold(),
    )
    if lack := unproven(result):
        return msgspec.structs.replace(
            result, outcome="error", reason=f"the check ended with {lack}", next_step=REPORT_IT
        )
    return result


async def ended(run: Callable[[Context], Awaitable[T]], context: Context) -> tuple[Ending, T | None]:
    """Let a check run to its end; of one that has shown what it should, also what it returns."""
    try:
        found = await run(context)
    except CheckFailed as failure:
        if failure.expected.strip() and failure.expected.strip() == failure.observed.strip():
            reason = f"winready contradicts itself, what was seen is what was expected: {failure.reason}"
            return Ending("error", reason, REPORT_IT, failure.expected, failure.observed), None
        if policies := await _isolated(context.world):
            reason = f"NetworkPolicy {policies} was written while the run went on, and may be why: {failure.reason}"
            return Ending("blocked", reason, ISOLATED), None
        if lost := await _absent(context.world, unsure=True):
            return Ending("blocked", f"{lost}; that may be why: {failure.reason}", BRING_BACK), None
        return Ending("failed", failure.reason, failure.next_step, failure.expected, failure.observed), None
    except NodeAway as away:
        return Ending("blocked", away.reason, away.next_step), None
    except CheckBlocked as block:
        if lost := await _absent(context.world):
            return Ending("blocked", f"{lost}; that may be why: {block.reason}", BRING_BACK), None
        return Ending("blocked", block.reason, block.next_step), None
    except NotApplicable as absence:
        return Ending("not-applicable", absence.reason), None
    except Refused as error:
        return Ending("blocked", f"{error.refusal}", error.remedy), None
    except ExecFailed as error:
        # A command that was not started had been tried for as long as there was hope.
        if lost := await _absent(context.world, unsure=not isinstance(error, NotStarted)):
            return Ending("blocked", lost, BRING_BACK), None
        return Ending("error", error.message, error.remedy or LOOK_AT_API), None
    except ClusterError as error:
        return Ending("error", error.message, error.remedy or LOOK_AT_API), None
    except asyncio.CancelledError:
        raise
    except Exception as error:
        context.evidence.fact("traceback", bounded("".join(traceback.format_exception(error))))
        return Ending("error", own_failure(error), REPORT_IT), None
    return Ending("passed"), found


def shown(context: Context) -> str:
    """Where it was shown, and where not although these nodes are judged."""
    nodes = [node for node in context.evidence.windows_nodes if node not in context.left_out]
    text = f"shown on {', '.join(nodes)}"
    if len(nodes) > NAMED:
        text = f"shown on {len(nodes):,} nodes, from {nodes[0]} to {nodes[-1]}"
    return "; ".join([text, *(f"not on {node}: {why}" for node, why in sorted(context.left_out.items()))])


async def _isolated(world: World) -> str:
    """Policies of others that may be why something failed; that we cannot ask changes nothing about the failure."""
    with contextlib.suppress(ClusterError):
        return await world.isolation()
    return ""


async def _absent(world: World, *, unsure: bool = False) -> str:
    """Nodes that went away meanwhile: what is seen of them then is no word about Windows."""
    with contextlib.suppress(ClusterError):
        return await world.absence(unsure=unsure)
    return ""


def own_failure(error: BaseException) -> str:
    """A bug in words; of several that happened together, the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"winready itself failed: {type(error).__name__}: {error}"


def unjudged(planned: Planned, outcome: Outcome, reason: str, next_step: str = "") -> RequirementResult:
    """The result of a requirement that was never started, or never finished."""
    return RequirementResult(
        id=planned.id,
        category=planned.category,
        level=planned.level,
        outcome=outcome,
        reason=reason,
        next_step=next_step,
        verifier=planned.verifier,
    )

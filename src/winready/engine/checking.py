"""Running one check and turning the way it ends into an outcome."""

from __future__ import annotations

import asyncio
import contextlib
import traceback

import msgspec

from winready.checks.context import Context
from winready.checks.registry import Check
from winready.checks.world import World
from winready.cluster.errors import ClusterError, Refused
from winready.cluster.evidence import bounded
from winready.cluster.failures import CheckBlocked, CheckFailed, NotApplicable
from winready.cluster.refusals import OURS
from winready.cluster.timing import now
from winready.engine.outcomes import Outcome, RequirementResult, unproven
from winready.engine.plan import Planned

REPORT_IT = "please report this with the run's journal"
LOOK_AT_API = "look at the API server's health and run again"
ISOLATED = f"keep that policy out of namespaces with the label {OURS}, and run again"


async def judge_requirement(check: Check, planned: Planned, world: World) -> RequirementResult:
    """Verify one requirement."""
    context = Context(world)
    start = now()

    def finish(
        outcome: Outcome, reason: str, next_step: str = "", expected: str = "", observed: str = ""
    ) -> RequirementResult:
        return RequirementResult(
            id=planned.id,
            category=planned.category,
            level=planned.level,
            outcome=outcome,
            reason=reason,
            next_step=next_step,
            expected=expected,
            observed=observed,
            duration_s=round(now() - start, 3),
            started_s=round(start - world.began, 3),
            verifier=planned.verifier,
            evidence=context.evidence,
        )

    try:
        await check.run(context)
    except CheckFailed as failure:
        if failure.expected.strip() and failure.expected.strip() == failure.observed.strip():
            reason = f"winready contradicts itself, what was seen is what was expected: {failure.reason}"
            return finish("error", reason, REPORT_IT, failure.expected, failure.observed)
        if policies := await _isolated(world):
            reason = f"NetworkPolicy {policies} was written while the run went on, and may be why: {failure.reason}"
            return finish("blocked", reason, ISOLATED)
        return finish("failed", failure.reason, failure.next_step, failure.expected, failure.observed)
    except CheckBlocked as block:
        return finish("blocked", block.reason, block.next_step)
    except NotApplicable as absence:
        return finish("not-applicable", absence.reason)
    except Refused as error:
        return finish("blocked", f"{error.refusal}", error.remedy)
    except ClusterError as error:
        return finish("error", error.message, error.remedy or LOOK_AT_API)
    except asyncio.CancelledError:
        raise
    except Exception as error:
        context.evidence.fact("traceback", bounded("".join(traceback.format_exception(error))))
        return finish("error", own_failure(error), REPORT_IT)
    passed = finish("passed", _shown(context))
    if lack := unproven(passed):
        return msgspec.structs.replace(
            passed, outcome="error", reason=f"the check ended with {lack}", next_step=REPORT_IT
        )
    return passed


def _shown(context: Context) -> str:
    """Where it was shown, and where not although these nodes are judged."""
    nodes = {pod.node for pod in context.evidence.pods if pod.os == "windows" and pod.build} - set(context.left_out)
    text = f"shown on {', '.join(sorted(nodes))}"
    return "; ".join([text, *(f"not on {node}: {why}" for node, why in sorted(context.left_out.items()))])


async def _isolated(world: World) -> str:
    """Policies of others that may be why something failed; that we cannot ask changes nothing about the failure."""
    with contextlib.suppress(ClusterError):
        return await world.isolation()
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

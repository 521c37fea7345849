"""The verdict: Pass or Fail by the rules of the standard, computed from outcomes alone; none of an interrupted run.

Pure on purpose: the same outcomes always give the same verdict, so that anyone can compute it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from winready.engine.outcomes import RequirementResult, RuleResult
from winready.spec.model import Specification

MAY_BE_AIR_GAPPED = "core.network.dns-external"
EXIT_PASS, EXIT_FAILED, EXIT_USAGE, EXIT_BLOCKED, EXIT_INTERRUPTED = 0, 1, 2, 3, 130
INTERRUPTED = "Interrupted, no verdict"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Pass or Fail, over how much of the standard, and why."""

    verdict: Literal["Pass", "Fail"] | None
    """None when the run was interrupted: what it has seen stands, and nobody knows whether the cluster is ready."""
    scope: Literal["complete", "partial"]
    exit_code: int
    core_selected: int
    core_total: int
    reasons: list[str]
    """What kept the run from passing, or from a verdict, one line each; empty for a Pass."""
    coverage: str = ""
    """How many of the Windows nodes it is about; empty when it is about all of them."""

    def __str__(self) -> str:
        if self.verdict is None:
            return INTERRUPTED
        limits = [self.coverage] if self.coverage else []
        if self.scope != "complete":
            limits.insert(0, f"partial: {self.core_selected} of {self.core_total} core requirements")
        return f"{self.verdict} ({'; '.join(limits)})" if limits else self.verdict


def judge(
    specification: Specification,
    results: Sequence[RequirementResult],
    rules: Sequence[RuleResult],
    *,
    air_gapped: bool = False,
    interrupted: bool = False,
    leftovers: bool = False,
    coverage: str = "",
) -> Verdict:
    """Judge a run. Nothing selected, nothing run or anything left unjudged never passes.

    A run that left something behind on the cluster may have passed, but is never done: its exit code says so.
    """
    core = [item.id for item in specification.requirements if specification.level(item) == "core"]
    judged = {result.id for result in results}
    failed: list[str] = []
    unjudged: list[str] = []
    for result in results:
        if result.level == "advisory" or result.outcome == "passed":
            continue
        if result.outcome == "not-applicable" and may_not_apply(result, air_gapped):
            continue
        (failed if result.outcome == "failed" else unjudged).append(f"{result.id} {result.outcome}: {result.reason}")
    for rule in rules:
        if rule.gates != "run" or rule.outcome in ("passed", "not-applicable") or rule.waived_by:
            continue
        (failed if rule.outcome == "failed" else unjudged).append(f"{rule.id} {rule.outcome}: {rule.reason}")
    if not results:
        unjudged.append("no requirement was selected")
    elif not any(result.outcome == "passed" for result in results):
        unjudged.append("nothing was verified")
    selected = sum(1 for requirement_id in core if requirement_id in judged)
    reasons = [*failed, *unjudged]
    exit_code = EXIT_FAILED if failed else EXIT_BLOCKED if unjudged or leftovers else EXIT_PASS
    verdict: Literal["Pass", "Fail"] | None = "Fail" if reasons else "Pass"
    if interrupted:
        # What was not judged has one cause; what failed by then failed all the same.
        verdict, reasons, exit_code = None, ["the run was interrupted", *failed], EXIT_INTERRUPTED
    return Verdict(
        verdict=verdict,
        scope="complete" if selected == len(core) else "partial",
        exit_code=exit_code,
        core_selected=selected,
        core_total=len(core),
        reasons=reasons,
        coverage=coverage,
    )


def refused(verdict: Verdict, why: str) -> Verdict:
    """The verdict of a run that cannot be vouched for, whatever its outcomes were."""
    return msgspec.structs.replace(
        verdict,
        verdict="Fail" if verdict.verdict else None,
        exit_code=verdict.exit_code if verdict.exit_code != EXIT_PASS else EXIT_BLOCKED,
        reasons=[why, *verdict.reasons],
    )


def may_not_apply(result: RequirementResult, air_gapped: bool) -> bool:
    """Whether a requirement that does not apply keeps nothing from passing."""
    if result.level == "core":
        return air_gapped and result.id == MAY_BE_AIR_GAPPED
    return True

"""How things end: outcomes of requirements and rules, in the words of the standard."""

from __future__ import annotations

from typing import Literal

import msgspec

from winready.cluster.evidence import Evidence

Outcome = Literal["passed", "failed", "blocked", "not-applicable", "error"]
Judged = tuple[Outcome, str]
"""An outcome and its reason."""


class RequirementResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one selected requirement."""

    id: str
    category: str
    level: str
    outcome: Outcome
    reason: str
    next_step: str = ""
    expected: str = ""
    observed: str = ""
    duration_s: float = 0.0
    started_s: float = 0.0
    """Wall seconds since the run began."""
    verifier: str = ""
    evidence: Evidence = msgspec.field(default_factory=Evidence)


class RuleResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one rule of the run."""

    id: str
    outcome: Outcome
    reason: str
    gates: str
    waived_by: str | None = None


def unproven(result: RequirementResult) -> str:
    """No evidence, no pass: what a pass lacks; empty when it rests on a Windows container, and when it is no pass."""
    if result.outcome != "passed":
        return ""
    if not any(probe.ok for probe in result.evidence.probes):
        return "no answer of the cluster is recorded"
    if not any(pod.os == "windows" and pod.build for pod in result.evidence.pods):
        return "no proof that a Windows container took part"
    return ""

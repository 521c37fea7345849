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


Support = Literal["yes", "limited", "off", "no", "never", "unknown"]
Way = Literal["requirement", "check", "upstream", "data"]
"""How a feature is shown: by requirements of the standard, by a check of its own, by upstream tests; or by data only,
where nothing on a cluster could show it."""


NO_TESTS = "only upstream tests show it, and none took part"
NO_CHECK = "only winready's own check shows it, and it took no part"
"""Why a run that could show a feature in another way has not."""


class FeatureResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one feature that was to be shown. Advisory: no verdict looks at it.

    It has passed when the cluster shows what the data says, be it that the feature works or that Windows has no such
    thing; ``works`` tells which of both was seen.
    """

    id: str
    name: str
    area: str
    outcome: Outcome
    reason: str
    way: Way
    support: Support
    documented: str
    """What the data says for the cluster's version, such as "supported since 1.22"."""
    works: bool | None = None
    """Whether it was seen to work; None when nothing was seen either way."""
    contradiction: str = ""
    """How the cluster and the data differ; empty where they do not."""
    next_step: str = ""
    expected: str = ""
    observed: str = ""
    requirements: list[str] = []
    """Ids of the requirements whose results it rests on."""
    tests: list[str] = []
    """The upstream tests that it rests on, by their names in the mapping."""
    duration_s: float = 0.0
    started_s: float = 0.0
    """Wall seconds since the run began."""
    evidence: Evidence = msgspec.field(default_factory=Evidence)


class RuleResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one rule of the run."""

    id: str
    outcome: Outcome
    reason: str
    gates: str
    waived_by: str | None = None


def unproven(result: RequirementResult | FeatureResult) -> str:
    """No evidence, no pass: what a pass lacks; empty when it rests on a Windows container, and when it is no pass."""
    if result.outcome != "passed":
        return ""
    if not any(probe.ok for probe in result.evidence.probes):
        return "no answer of the cluster is recorded"
    if not any(pod.os == "windows" and pod.build for pod in result.evidence.everybody):
        return "no proof that a Windows container took part"
    return ""

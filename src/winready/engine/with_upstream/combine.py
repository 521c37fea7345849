"""One result of two verifiers: where winready's own check and upstream disagree, nothing passes."""

from __future__ import annotations

from typing import Any

import msgspec

from winready.cluster.evidence import Evidence
from winready.engine.outcomes import RequirementResult


def combine(native: RequirementResult, upstream: RequirementResult) -> RequirementResult:
    """One result of two verifiers. They must agree; what upstream cannot judge is left to the native check."""
    outcomes = (native.outcome, upstream.outcome)
    in_part = native.outcome == "passed" and upstream.evidence.facts.get("upstream", {}).get("shown") == "a part"
    agreement = "agree" if native.outcome == upstream.outcome else "agree in part" if in_part else "native only"
    outcome, reason, step = native.outcome, native.reason, native.next_step
    if "failed" in outcomes and "passed" in outcomes:
        agreement, outcome = "disagree", "failed"
        loser = native if native.outcome == "failed" else upstream
        reason = f"the two verifiers disagree: winready's check {native.outcome}, upstream {upstream.outcome}"
        reason, step = f"{reason}. {loser.reason}", loser.next_step
    elif upstream.outcome == "failed":
        agreement, outcome, reason, step = "upstream only", "failed", upstream.reason, upstream.next_step
    elif upstream.outcome == "error" and native.outcome == "passed":
        agreement, outcome, reason, step = "native only", "error", upstream.reason, upstream.next_step
    facts: dict[str, Any] = {
        **native.evidence.facts,
        **upstream.evidence.facts,
        "agreement": {"verdict": agreement, "native": native.outcome, "upstream": upstream.outcome},
    }
    if upstream.outcome != "passed":
        facts["agreement"]["upstream_reason"] = upstream.reason
    evidence = Evidence(
        pods=[*native.evidence.everybody, *upstream.evidence.everybody],
        probes=[*native.evidence.probes, *upstream.evidence.probes],
        facts=facts,
        dropped_probes=native.evidence.dropped_probes,
        counted=native.evidence.counted,
    ).fold()
    if outcome == "passed" and agreement == "agree":
        reason = f"{native.reason}; upstream tests agree"
    elif outcome == "passed" and agreement == "agree in part":
        reason = f"{native.reason}; upstream tests agree as far as they reach"
    elif outcome == "passed":
        reason = f"{native.reason}; upstream does not judge it ({upstream.reason.partition('. Unproven')[0]})"
    return msgspec.structs.replace(
        native,
        outcome=outcome,
        reason=reason,
        next_step=step,
        observed=native.observed or upstream.observed,
        duration_s=round(native.duration_s + upstream.duration_s, 3),
        verifier="both",
        evidence=evidence,
    )

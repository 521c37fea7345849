"""What the results of upstream tests mean for a requirement.

A test that passed is a pass only if it was seen to run Windows containers, and a part of a requirement is never the
whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from winready.cluster.evidence import Evidence, Probe, bounded
from winready.engine.outcomes import Outcome, RequirementResult, unproven
from winready.engine.plan import Planned
from winready.engine.with_upstream.prepare import Prepared
from winready.upstream.suite import Result

NATIVE_STEP = "--engine native, or both, judges it by winready's own check"


def judge_upstream(planned: Planned, prepared: Prepared, results: Mapping[str, Result]) -> RequirementResult:
    """What the results of its tests mean for a requirement."""
    mine = [results[name] for name in planned.upstream]
    meaning = _meaning(planned, prepared, mine)
    judged = RequirementResult(
        id=planned.id,
        category=planned.category,
        level=planned.level,
        outcome=meaning.outcome,
        reason=meaning.reason,
        next_step=meaning.next_step,
        expected="the upstream tests pass, in Windows containers" if meaning.outcome == "failed" else "",
        observed=meaning.observed,
        duration_s=round(sum(result.seconds for result in mine), 3),
        verifier="upstream",
        evidence=_evidence(mine, prepared, meaning.shown),
    )
    if lack := unproven(judged):
        reason = f"the upstream tests passed with {lack}"
        return msgspec.structs.replace(judged, outcome="blocked", reason=reason, next_step=NATIVE_STEP)
    return judged


class Meaning(NamedTuple):
    """What test results say about a requirement."""

    outcome: Outcome
    reason: str
    next_step: str = ""
    observed: str = ""
    shown: str = "nothing"
    """How much of the requirement the tests have shown."""


def _meaning(planned: Planned, prepared: Prepared, mine: list[Result]) -> Meaning:
    excused = ""
    for result in mine:
        if result.status != "failed":
            continue
        words = f"the upstream test {result.text!r} failed: {_headline(result.message)}"
        if not (excuse := prepared.table.tests[result.name].excuse):
            return Meaning("failed", words, f"its output is in {result.log}", bounded(result.message))
        excused = f"{words} That need not be the cluster's fault: {excuse}"
    impostors = [pod.impostor for result in mine for pod in result.pods if pod.impostor]
    if impostors:
        step = "look at the container runtime and at webhooks that set a runtimeClass on that node"
        return Meaning("failed", impostors[0], step)
    if excused:
        return Meaning("blocked", excused, NATIVE_STEP)
    skipped = [_skip(result, prepared) for result in mine if result.status == "skipped"]
    if skipped and (planned.upstream_full or len(skipped) == len(mine)):
        return Meaning("blocked", skipped[0], "meet what it asks for, or use --engine native")
    mine = [result for result in mine if result.status != "skipped"]
    for result in mine:
        match result.status:
            case "unfinished":
                reason = f"the upstream test {result.text!r} did not finish: {result.message}"
                return Meaning("blocked", reason, f"its output is in {result.log}" if result.log else "run again")
            case "crashed":
                step = f"all it said is in {result.log}"
                return Meaning("error", f"the upstream test {result.text!r} gave no result: {result.message}", step)
        if objection := _objection(result, prepared):
            step = "look at the pods in the evidence; --engine native places its own"
            return Meaning("blocked", objection, step)
    if planned.upstream_full:
        nodes = sorted({pod.fact.node for result in mine for pod in result.pods if pod.fact.build})
        return Meaning("passed", f"shown by upstream tests on {', '.join(nodes)}", shown="all")
    open_points = "; ".join([*planned.unproven, *skipped])
    reason = f"upstream tests show a part of it only ({len(mine)} passed). Unproven: {open_points}"
    return Meaning("blocked", reason, "--engine both lets winready's own check complete it", shown="a part")


def _skip(result: Result, prepared: Prepared) -> str:
    why = result.message.partition("\n")[0] or prepared.table.tests[result.name].skips or "no reason given"
    return f"the upstream test {result.text!r} skipped itself: {bounded(why, 300)}"


def _objection(result: Result, prepared: Prepared) -> str:
    """Why a test that passed proves nothing about Windows; empty when it does."""
    test = prepared.table.tests[result.name]
    if test.placement == "anywhere":
        return ""
    astray = [pod for pod in result.pods if pod.fact.os != "windows" and not pod.host_network]
    if test.placement == "steered" and not test.linux_pods and astray:
        where = ", ".join(sorted({f"{pod.fact.name} on {pod.fact.node}" for pod in astray})[:3])
        return f"the upstream test {result.text!r} passed with pods on Linux nodes ({where})"
    windows = [pod for pod in result.pods if pod.fact.os == "windows"]
    if not windows:
        seen = "none of its pods was seen" if not result.pods else "none of its pods ran on a Windows node"
        return f"the upstream test {result.text!r} passed, but {seen}"
    if not any(pod.fact.build for pod in windows):
        return f"the upstream test {result.text!r} passed, but none of its containers could be shown to be Windows"
    return ""


def _evidence(results: Iterable[Result], prepared: Prepared, shown: str) -> Evidence:
    evidence = Evidence()
    program = f"e2e.test {prepared.binary.full_version}"
    for result in results:
        for pod in result.pods:
            evidence.saw([pod.fact])
        evidence.probe(
            Probe(
                title=result.text,
                ok=result.status == "passed",
                target=program,
                expected="passed",
                observed=bounded(f"{result.status}\n{result.message}".strip()),
                seconds=round(result.seconds, 3),
            )
        )
    evidence.fact("upstream", {"program": program, "steering": prepared.steering or "none", "shown": shown})
    return evidence


def _headline(message: str) -> str:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return bounded(lines[0], 300) if lines else "no message"

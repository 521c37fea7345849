"""What a bundle may vouch for: computed from the journal by the rules, never taken over from what somebody wrote."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from winready.engine import events
from winready.engine.facts import Facts, gather
from winready.engine.outcomes import RequirementResult, RuleResult, unproven
from winready.engine.rules import JUDGES, judge_rules
from winready.engine.rules.judge import LINUX_CONFORMANCE, WINDOWS_BUILDS
from winready.engine.selection import SelectionError, select
from winready.engine.verdict import EXIT_INTERRUPTED, Verdict, judge
from winready.engine.workloads import WorkloadResult, answers, exit_with, judge_workload, key
from winready.report.record import Record
from winready.spec.builds import load_builds
from winready.spec.conformance_tests import conformance_tests
from winready.spec.model import Specification
from winready.spec.versions import Version

NAMED = 5


class JournalError(Exception):
    """The journal tells no whole and consistent story."""


@dataclass(frozen=True)
class Recomputed:
    """What follows from a journal."""

    verdict: Verdict
    rules: int
    """How many rules were judged again; none of a journal from before their facts were written down."""
    cannot_tell: list[str]
    """What could not be, and why."""


def recompute(specification: Specification, happened: Sequence[events.AnyEvent]) -> Recomputed:
    """Rules and verdict from what the journal tells; raises `JournalError` when it contradicts itself."""
    if not happened or not isinstance(happened[0], events.RunStarted):
        raise JournalError("the journal does not begin with the start of a run")
    last = happened[-1]
    if not isinstance(last, events.RunFinished):
        raise JournalError("the journal has no verdict: the run did not finish")
    if sum(isinstance(event, events.RunStarted | events.RunFinished) for event in happened) != 2:
        raise JournalError("the journal tells of more than one run")
    started = happened[0]
    results = _results(specification, happened)
    rules = _rules(specification, happened)
    try:
        selected = [item.id for item in select(specification, started.selection)]
    except SelectionError as error:
        raise JournalError(f"the selection cannot be understood: {error}") from None
    if missing := [name for name in selected if name not in results]:
        raise JournalError(f"{missing[0]} was selected and has no outcome")
    judged = [results[name] for name in selected]
    facts = gather(happened)
    again, cannot_tell = _judged_again(specification, facts, judged, rules)
    leftovers = [left for event in happened if isinstance(event, events.CleanedUp) for left in event.leftovers]
    verdict = judge(
        specification,
        judged,
        rules,
        air_gapped=started.settings.get("air_gapped") is True,
        interrupted=last.verdict.exit_code == EXIT_INTERRUPTED,
        # Runs from before the terms were written down did not count what they left behind.
        leftovers=bool(leftovers) and facts.terms is not None,
        # Nor did runs from before the choice of nodes was written down say what they had not judged.
        coverage=facts.coverage if "nodes" in started.settings else "",
    )
    if verdict.verdict is None and last.verdict.verdict == "Fail":
        # Earlier versions called it a Fail.
        verdict = msgspec.structs.replace(verdict, verdict="Fail")
    _nodes(facts, judged, verdict)
    return Recomputed(exit_with(verdict, _workloads(facts, judged, happened)), again, cannot_tell)


def _workloads(
    facts: Facts, results: Sequence[RequirementResult], happened: Sequence[events.AnyEvent]
) -> list[WorkloadResult]:
    """The answers for workloads, from what the journal tells of features and of their own pods."""
    shown = answers(results, [event.result for event in happened if isinstance(event, events.FeatureFinished)])
    nodes = [node.name for node in facts.nodes]
    again = [
        judge_workload(each, shown, nodes, [step for whose, step in facts.tried if whose == key(each)])
        for each in facts.workloads
    ]
    told = {key(event.result): event.result for event in happened if isinstance(event, events.WorkloadJudged)}
    for each in again:
        if (said := told.get(key(each))) is None or said.outcome != each.outcome:
            raise JournalError(f"by the outcomes in the journal {each.title} is {each.outcome}, and it says otherwise")
    return again


def _nodes(facts: Facts, results: Sequence[RequirementResult], verdict: Verdict) -> None:
    """Which nodes were judged is what the evidence shows, not what a list says."""
    usable = {node.name for node in facts.inventory.usable("windows")} if facts.inventory else set()
    if strange := [name for name in facts.judged_nodes if name not in usable]:
        raise JournalError(f"node {strange[0]} is said to be judged, and is no Windows node that could be used")
    if verdict.verdict != "Pass" or verdict.scope != "complete" or any(each.verifier == "upstream" for each in results):
        return
    shown = {node for each in results for node in each.evidence.windows_nodes}
    if silent := [name for name in facts.judged_nodes if name not in shown]:
        raise JournalError(f"node {silent[0]} is said to be judged, and no Windows container there gave evidence")


def _results(specification: Specification, happened: Sequence[events.AnyEvent]) -> dict[str, RequirementResult]:
    results: dict[str, RequirementResult] = {}
    levels = {item.id: specification.level(item) for item in specification.requirements}
    for event in happened:
        if not isinstance(event, events.RequirementFinished):
            continue
        result = event.result
        if result.id in results:
            raise JournalError(f"{result.id} has two outcomes")
        if levels.get(result.id) != result.level:
            raise JournalError(f"{result.id} is not a requirement of level {result.level!r} in the specification")
        if lack := unproven(result):
            raise JournalError(f"{result.id} passed with {lack}")
        results[result.id] = result
    return results


def _rules(specification: Specification, happened: Sequence[events.AnyEvent]) -> list[RuleResult]:
    rules = [event.result for event in happened if isinstance(event, events.RuleJudged)]
    gates = {rule.id: rule.gates for rule in specification.rules}
    for rule in rules:
        if gates.get(rule.id) != rule.gates:
            raise JournalError(f"{rule.id} does not gate the {rule.gates} in the specification")
    if len({rule.id for rule in rules}) != len(rules):
        raise JournalError("a rule has two outcomes")
    if missing := [name for name in gates if name not in {rule.id for rule in rules}]:
        raise JournalError(f"{missing[0]} has no outcome")
    return rules


def _judged_again(
    specification: Specification, facts: Facts, results: Sequence[RequirementResult], told: Sequence[RuleResult]
) -> tuple[int, list[str]]:
    """Hold the outcomes of the rules against what they are by the facts; returns where that cannot be done."""
    if facts.terms is None:
        why = "its journal is older than the record of what they look at, so they cannot be computed again"
        return 0, [f"whether its rules were judged right: {why}"]
    allowed = load_builds().lists[facts.terms.windows_builds]
    by_id = {rule.id: rule for rule in judge_rules(specification, facts, results)}
    cannot_tell = []
    for rule in told:
        if rule.id not in JUDGES:
            cannot_tell.append(f"whether {rule.id} was judged right: this winready does not know that rule")
        elif rule.id == WINDOWS_BUILDS and allowed.taken != facts.terms.builds_taken:
            cannot_tell.append(
                f"whether {rule.id} was judged right: the list of builds is of {facts.terms.builds_taken}, "
                f"this winready has that of {allowed.taken}"
            )
        elif rule.id == LINUX_CONFORMANCE and (why := _unknown_tests(facts)):
            cannot_tell.append(f"whether {rule.id} was judged right: {why}")
        elif (by_id[rule.id].outcome, by_id[rule.id].waived_by) != (rule.outcome, rule.waived_by):
            again = by_id[rule.id]
            raise JournalError(f"by the facts in the journal {rule.id} is {again.outcome}, not {rule.outcome}")
    return len(told) - len(cannot_tell), cannot_tell


def _unknown_tests(facts: Facts) -> str:
    """Why nobody here can say whether the conformance tests are the right ones; empty when we can."""
    given = facts.terms.conformance if facts.terms else None
    if given is None:
        return ""
    if given.tests is None:
        return "its journal is older than the record of which conformance tests ran"
    version, known = facts.inventory.version if facts.inventory else "", conformance_tests()
    with contextlib.suppress(ValueError):
        found = Version.parse(version)
        if found > Version(1, max(known)):
            return f"this winready does not know the conformance tests of Kubernetes {found}"
    return ""


def refusals(run: Record, specification: Specification) -> list[str]:
    """Why no certificate can rest on this run; empty when one can."""
    reasons = []
    if run.verdict is None:
        reasons.append("it was interrupted and has no verdict ('winready run --resume' does the rest)")
    elif run.verdict != "Pass":
        reasons.append(f"the verdict is {run.verdict_text}")
    if run.scope != "complete" and run.verdict is not None:
        reasons.append(f"the run is partial: {run.verdict_text}")
    if run.simulated:
        reasons.append("it ran on the sandbox, a simulated cluster")
    if skipped := run.coverage.skipped:
        names = f"{', '.join(skipped[:NAMED])}{f' and {len(skipped) - NAMED} more' if len(skipped) > NAMED else ''}"
        reasons.append(f"not all usable Windows nodes were judged, {names} were not (run with --nodes all)")
    if run.time_scale != 1:
        reasons.append(f"its waits were divided by a time scale of {run.time_scale:g}")
    if run.spec.get("digest") != specification.digest:
        reasons.append("it followed a modified specification")
    judged = {rule.id: rule for rule in run.rules}
    for rule in specification.rules:
        found = judged.get(rule.id)
        if rule.gates == "certificate" and (found is None or found.outcome != "passed"):
            why = found.reason if found else "no result was given (run with --linux-conformance FILE)"
            reasons.append(f"{rule.id} is not shown: {why}")
        if found is not None and found.waived_by:
            reasons.append(f"{rule.id} was waived by {found.waived_by}: {found.reason}")
    return reasons

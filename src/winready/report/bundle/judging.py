"""What a bundle may vouch for: computed from the journal by the rules, never taken over from what somebody wrote."""

from __future__ import annotations

from collections.abc import Sequence

from winready.engine import events
from winready.engine.outcomes import RequirementResult
from winready.engine.selection import SelectionError, select
from winready.engine.verdict import EXIT_INTERRUPTED, Verdict, judge
from winready.report.record import Record
from winready.spec.model import Specification


class JournalError(Exception):
    """The journal tells no whole and consistent story."""


def recompute(specification: Specification, happened: Sequence[events.AnyEvent]) -> Verdict:
    """The verdict by the rules, from the journal's outcomes alone; raises `JournalError` when it contradicts itself."""
    if not happened or not isinstance(happened[0], events.RunStarted):
        raise JournalError("the journal does not begin with the start of a run")
    last = happened[-1]
    if not isinstance(last, events.RunFinished):
        raise JournalError("the journal has no verdict: the run did not finish")
    if sum(isinstance(event, events.RunStarted | events.RunFinished) for event in happened) != 2:
        raise JournalError("the journal tells of more than one run")
    started = happened[0]
    results: dict[str, RequirementResult] = {}
    for event in happened:
        if isinstance(event, events.RequirementFinished):
            if event.result.id in results:
                raise JournalError(f"{event.result.id} has two outcomes")
            results[event.result.id] = event.result
    rules = [event.result for event in happened if isinstance(event, events.RuleJudged)]
    levels = {item.id: specification.level(item) for item in specification.requirements}
    gates = {rule.id: rule.gates for rule in specification.rules}
    for result in results.values():
        if levels.get(result.id) != result.level:
            raise JournalError(f"{result.id} is not a requirement of level {result.level!r} in the specification")
        _require_proof(result)
    for rule in rules:
        if gates.get(rule.id) != rule.gates:
            raise JournalError(f"{rule.id} does not gate the {rule.gates} in the specification")
    if len({rule.id for rule in rules}) != len(rules):
        raise JournalError("a rule has two outcomes")
    if missing := [name for name in gates if name not in {rule.id for rule in rules}]:
        raise JournalError(f"{missing[0]} has no outcome")
    try:
        selected = [item.id for item in select(specification, started.selection)]
    except SelectionError as error:
        raise JournalError(f"the selection cannot be understood: {error}") from None
    if missing := [name for name in selected if name not in results]:
        raise JournalError(f"{missing[0]} was selected and has no outcome")
    return judge(
        specification,
        [results[name] for name in selected],
        rules,
        air_gapped=started.settings.get("air_gapped") is True,
        interrupted=last.verdict.exit_code == EXIT_INTERRUPTED,
    )


def _require_proof(result: RequirementResult) -> None:
    """No evidence, no pass. A few upstream tests place their pods anywhere; their word needs no Windows container."""
    if result.outcome != "passed":
        return
    witnesses = [pod for pod in result.evidence.pods if pod.os == "windows" and pod.build]
    if not any(probe.ok for probe in result.evidence.probes) or not (witnesses or result.verifier == "upstream"):
        raise JournalError(f"{result.id} passed without proof that a Windows container took part")


def refusals(run: Record, specification: Specification) -> list[str]:
    """Why no certificate can rest on this run; empty when one can."""
    reasons = []
    if run.verdict != "Pass":
        reasons.append(f"the verdict is {run.verdict_text}")
    if run.scope != "complete":
        reasons.append(f"the run is partial: {run.verdict_text}")
    if run.settings.get("sandbox"):
        reasons.append("it ran on the sandbox, a simulated cluster")
    scale = run.settings.get("time_scale", 1)
    if scale != 1:
        reasons.append(f"its waits were divided by a time scale of {scale:g}")
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

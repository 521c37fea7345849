"""A run in words: the lines that a terminal, a log and a summary share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from winready.engine.coverage import why_not
from winready.engine.events import UpstreamProgress
from winready.engine.outcomes import FeatureResult, RequirementResult, RuleResult
from winready.engine.plan import Plan
from winready.engine.workloads import FeatureUse, FieldFinding, Step, WorkloadResult, names
from winready.report.causes import Cause, by_cause
from winready.report.record import Record

MARKS = {"passed": "✓", "failed": "✗", "blocked": "■", "not-applicable": "-", "error": "!"}
STYLES = {"passed": "green", "failed": "red", "blocked": "yellow", "not-applicable": "dim", "error": "magenta"}

STOPPING = "interrupted: cleaning up; nothing more is judged"
NO_VERDICT = "no requirement was selected, so nothing could pass: features are advisory"
REASONS = 3
"""What a sentence names of a workload that is not ready; reports name it all."""
NAMED = 10
"""Nodes of a reason that a line names; reports name them all."""


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


AGREEMENTS = {
    "agree": "upstream agrees",
    "agree in part": "upstream agrees as far as it reaches",
    "native only": "upstream cannot tell",
}


def count(number: int, thing: str) -> str:
    """``1 node``, ``2 nodes``."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def told_at_once(result: RequirementResult) -> bool:
    """Whether a result is news; what was never begun, or given up, has a cause that the summary tells once."""
    return result.duration_s > 0 or result.outcome not in ("blocked", "error", "not-applicable")


def result_line(result: RequirementResult) -> str:
    """One finished requirement."""
    text = f"{MARKS[result.outcome]} {result.id:<48} {result.outcome:<14} {duration(result.duration_s):>8}"
    if result.outcome != "passed":
        return f"{text}  {_short(result.reason)}"
    agreement = result.evidence.facts.get("agreement", {}).get("verdict")
    return f"{text}  {AGREEMENTS.get(agreement, agreement)}" if agreement else text


def result_lines(result: RequirementResult, columns: int) -> list[str]:
    """One finished requirement where lines are so long: whatever does not fit stands below it."""
    line = result_line(result)
    if len(line) <= columns:
        return [line]
    took = f" {result.outcome}  {duration(result.duration_s)}"
    room = max(columns - len(took) - 2, 12)
    name = result.id if len(result.id) <= room else f"…{result.id[1 - room :]}"
    head = f"{MARKS[result.outcome]} {name:<{room}}{took}"
    return [head] if result.outcome == "passed" else [head, f"    {_short(result.reason)}"]


def evidence_lines(result: RequirementResult) -> list[str]:
    """What a requirement was judged by: every probe, who asked from where, and what was seen."""
    return [
        f"    {MARKS['passed' if probe.ok else 'failed']} {_short(probe.title)}: {_short(probe.observed)}"
        for probe in result.evidence.probes
    ]


def feature_line(result: FeatureResult) -> str:
    """One feature of the matrix that was to be shown."""
    text = f"{MARKS[result.outcome]} {result.id:<28} {result.outcome:<14} {result.documented}"
    return text if result.outcome == "passed" else f"{text}; {_short(result.reason)}"


def feature_lines(features: Sequence[FeatureResult]) -> list[tuple[str, str]]:
    """What became of all of them, contradictions first: (style, line)."""
    if not features:
        return []
    odd = [each for each in features if each.outcome in ("failed", "error", "blocked")]
    odd.sort(key=lambda each: (not each.contradiction, ("failed", "error", "blocked").index(each.outcome)))
    lines = []
    for each in odd:
        lines.append((STYLES[each.outcome], f"{MARKS[each.outcome]} feature {each.id} {each.outcome} ({each.name})"))
        lines.append(("", f"    {each.reason}"))
        if each.next_step:
            lines.append(("dim", f"    next step: {each.next_step}"))
    return [*lines, ("bold", features_text(features))]


class Seen(Protocol):
    """What a sentence about features needs of each."""

    @property
    def outcome(self) -> str: ...
    @property
    def way(self) -> str: ...
    @property
    def contradiction(self) -> object: ...


def features_text(features: Collection[Seen]) -> str:
    """All of them in one sentence."""
    data = sum(each.way == "data" for each in features)
    counts = Counter(each.outcome for each in features if each.way != "data")
    shown = f"{counts.pop('passed', 0)} of {count(len(features) - data, 'feature')} shown as documented"
    parts = [shown, *(f"{number} {outcome}" for outcome, number in counts.most_common())]
    if odd := sum(bool(each.contradiction) for each in features):
        parts.append(count(odd, "contradiction"))
    return ", ".join([*parts, *([f"{data} more by data only"] if data else [])])


def check_line(result: RequirementResult) -> str:
    """A check that ended, while upstream tests of the same requirement are to come."""
    return f"  check {result.id:<44} {result.outcome:<14} {duration(result.duration_s):>8}"


def upstream_line(event: UpstreamProgress) -> str:
    """One upstream test that ended."""
    return f"  e2e.test {event.done}/{event.total} {event.state:<8} {_short(event.text)}"


def _short(text: str, limit: int = 160) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"


def grouped(nodes: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    """Nodes by why they take no part."""
    found: dict[str, list[str]] = {}
    for name, why in nodes.items():
        found.setdefault(why, []).append(name)
    return list(found.items())


def not_judged_lines(record: Record) -> list[str]:
    """The nodes that a verdict says nothing about, a line for each reason."""
    windows = [f"not judged: {', '.join(names)}: {why}" for why, names in grouped(record.not_judged)]
    return windows + [f"not judged: {some(names)}: {why}" for why, names in grouped(record.linux_not_judged)]


def some(names: Sequence[str]) -> str:
    """The first names of a list, and how many more there are."""
    more = [f"{len(names) - NAMED} more"] if len(names) > NAMED else []
    return ", ".join([*names[:NAMED], *more])


def cluster_lines(record: Record, columns: int | None = None) -> list[str]:
    """The cluster, a line per node; one that is longer than ``columns`` goes without its container runtime."""
    if record.cluster is None:
        return []
    simulated = ", a simulated cluster (sandbox)" if record.simulated else ""
    if record.settings.get("virtual_time"):
        simulated += ", in simulated time"
    lines = [f"Kubernetes {record.cluster.version} at {record.cluster.server}{simulated}"]
    for node in record.cluster.nodes:
        note = f"  not used: {why}" if (why := why_not(node)) else ""
        line = f"  {node.name:<12} {node.os:<8} {node.build:<20} {node.runtime}{note}"
        if columns is not None and len(line) > columns:
            line = f"  {node.name:<12} {node.os:<8} {node.build}{note}"
        lines.append(line)
    return lines


def summary_lines(record: Record) -> list[tuple[str, str]]:
    """What a person wants to know at the end: (style, line)."""
    lines: list[tuple[str, str]] = []
    judged, unjudged = judged_and_left(record)
    counts = [f"{number} {outcome}" for outcome, number in Counter(item.outcome for item in judged).most_common()]
    if record.requirements or not record.features:
        lines.append(("", ", ".join([*counts, *([f"{unjudged} not judged"] if unjudged else [])]) or "nothing was run"))
    rules = [rule for rule in record.rules if not (record.interrupted and rule.outcome in ("blocked", "error"))]
    causes = by_cause(judged, rules, air_gapped=record.settings.get("air_gapped") is True)
    for cause in causes:
        lines += _explained(cause)
    lines += _without(judged, {each.id for cause in causes for each in cause.requirements})
    if text := suspect(record):
        lines.append(("bold", text))
    for rule in record.rules:
        if rule.gates != "run":
            lines.append(("dim", f"{rule.id}, which only a certificate needs: {rule.reason}"))
        elif rule.waived_by:
            lines.append((STYLES[rule.outcome], f"{MARKS[rule.outcome]} {_waived(rule)}"))
    for workload in record.workloads:
        lines += workload_lines(workload)
    lines += [("yellow", line) for line in not_judged_lines(record)]
    for left in record.leftovers:
        lines.append(("yellow", f"left behind on the cluster: {left}"))
    lines += feature_lines(record.features)
    if record.features and not record.requirements:
        return [*lines, ("dim", NO_VERDICT)]
    style = {"Pass": "bold green", "Fail": "bold red"}.get(record.verdict or "", "bold yellow")
    return [*lines, (style, record.verdict_text)]


def judged_and_left(record: Record) -> tuple[list[RequirementResult], int]:
    """What the run found out, and how much it was kept from by an interruption."""
    if not record.interrupted:
        return record.requirements, 0
    judged = [item for item in record.requirements if item.outcome not in ("blocked", "error")]
    return judged, len(record.requirements) - len(judged)


def workload_line(result: WorkloadResult) -> str:
    """One workload: whether it is ready, and how much of what it relies on was shown."""
    text = f"{result.title}: {'ready' if result.ready else 'not ready'}; "
    text += f"{result.shown} of {count(len(result.features), 'feature')} it uses "
    text += "was shown" if len(result.features) == 1 else "were shown"
    if by_data := [use.id for use in result.features if use.by_data]:
        text += f", {len(by_data)} only documented ({', '.join(by_data)})"
    return text


def workloads_text(outcomes: Iterable[str]) -> str:
    """How many of several workloads are ready."""
    found = [outcome == "passed" for outcome in outcomes]
    return f"{sum(found)} of {count(len(found), 'workload')} ready"


def workload_lines(result: WorkloadResult) -> list[tuple[str, str]]:
    """A workload, and what keeps it from being ready: what it is, on which node, and the line that needs it."""
    return [
        (STYLES[result.outcome], f"{MARKS[result.outcome]} {workload_line(result)}"),
        *(("", f"    {_use(use)}") for use in result.features if use.outcome != "passed" and not use.by_data),
        *(("", f"    {_field(finding)}") for finding in result.findings),
        *(("", f"    {step_line(step)}") for step in result.tried),
    ]


def workload_reason(result: WorkloadResult) -> str:
    """What keeps a workload from being ready, in one sentence."""
    parts = [_use(use) for use in result.features if use.outcome != "passed" and not use.by_data]
    parts += [_field(finding) for finding in result.findings if finding.severity == "error"]
    parts += [step_line(step) for step in result.tried if step.outcome != "passed"]
    more = [f"and {len(parts) - REASONS} more"] if len(parts) > REASONS else []
    return "; ".join([*parts[:REASONS], *more])


def step_line(step: Step) -> str:
    """How far a workload's own pod came on a node."""
    differs = f" (tried with: {'; '.join(step.differs)})" if step.differs else ""
    return f"tried on {step.node}: {step.reached}: {step.reason}{differs}"


def _field(finding: FieldFinding) -> str:
    return f"{finding.severity} at {finding.path}:{finding.line} ({finding.rule}): {finding.reason}"


def _use(use: FeatureUse) -> str:
    where = f" on {', '.join(use.nodes)}" if use.nodes else ""
    return f"{use.id} {use.outcome}{where}, needed at {use.path}:{use.line} ({use.field}): {_short(use.reason)}"


def leftovers_line(record: Record) -> str:
    """What must not be overlooked of a run that could not clean up."""
    left = count(len(record.leftovers), "object")
    return f"{left} of this run left behind on the cluster, named above: 'winready cleanup' tries again"


def by_reason(results: list[RequirementResult]) -> list[list[RequirementResult]]:
    """What did not pass, with results that one reason explains put together: failures first."""
    groups: dict[tuple[str, str], list[RequirementResult]] = {}
    for item in results:
        if item.outcome in ("failed", "error", "blocked"):
            groups.setdefault((item.outcome, item.reason), []).append(item)
    return sorted(groups.values(), key=lambda same: ("failed", "error", "blocked").index(same[0].outcome))


def suspect(record: Record) -> str:
    """Where to look first: the one node that most of several failures lead to; empty when there is no such node."""
    failed = [item for item in record.requirements if item.outcome == "failed"]
    nodes = [node.name for node in record.cluster.nodes] if record.cluster else []
    led = Counter(name for item in failed for name in nodes if name in item.next_step and names(item.next_step, name))
    if len(failed) < 3 or not led:
        return ""
    (name, most), *others = led.most_common(2)
    if 2 * most <= len(failed) or any(number == most for _, number in others):
        return ""
    return f"{most} of {len(failed)} failures lead to node {name}: look there first."


def _explained(cause: Cause) -> list[tuple[str, str]]:
    """A cause, what to do about it, and behind that whom it concerns."""
    alone = len(cause.ids) == 1
    lines = [
        (STYLES[cause.outcome], f"{MARKS[cause.outcome]} {cause.ids[0] if alone else cause.concerns} {cause.outcome}"),
        ("", f"    {cause.reason}"),
    ]
    if cause.next_step:
        lines.append(("dim", f"    next step: {cause.next_step}"))
    return lines if alone else [*lines, ("dim", f"    concerns: {some(cause.ids)}")]


def _without(results: Sequence[RequirementResult], told: Collection[str]) -> list[tuple[str, str]]:
    """What the cluster does not offer, each reason once."""
    groups: dict[str, list[str]] = {}
    for item in results:
        if item.outcome == "not-applicable" and item.id not in told:
            groups.setdefault(item.reason, []).append(item.id)
    lines = []
    for reason, ids in groups.items():
        who = ids[0] if len(ids) == 1 else count(len(ids), "requirement")
        lines += [("dim", f"{MARKS['not-applicable']} {who} not-applicable"), ("dim", f"    {reason}")]
        if len(ids) > 1:
            lines.append(("dim", f"    concerns: {some(ids)}"))
    return lines


def _waived(rule: RuleResult) -> str:
    return f"{rule.id} {rule.outcome} (waived by {rule.waived_by}): {rule.reason}"


def planned_features(plan: Plan) -> str:
    """How many features of the matrix are to be shown, and how many of them by something on the cluster."""
    able = sum(bool(each.check or each.requirements or each.tests) for each in plan.features)
    return f"{able} of {len(plan.features)} chosen features can be shown, the others are known by data only"


def plan_table(plan: Plan) -> list[str]:
    """A plan, requirement by requirement."""
    lines = [f"{'requirement':<50} {'action':<15} {'verifier':<9} {'takes':>12}  Windows pods"]
    for item in plan.requirements:
        takes = duration(item.expected_s) if item.action == "run" else ""
        pods = str(item.windows_pods) if item.action == "run" else ""
        lines.append(f"{item.id:<50} {item.action:<15} {item.verifier:<9} {takes:>12}  {pods:>12}".rstrip())
        # Why something is blocked, or not applicable, is told once, with everything that it concerns.
        if item.reason and item.action == "run":
            lines.append(f"    {item.reason}")
    return lines


def plan_around(plan: Plan, scale: float) -> tuple[list[str], list[str]]:
    """What stands above and below that: which nodes, and how long."""
    nodes = [
        f"Windows nodes judged: {', '.join(plan.windows_nodes) or 'none'}",
        f"Linux nodes beside them: {', '.join(plan.linux_nodes) or 'none'}",
    ]
    nodes += [f"left out: {', '.join(names)}: {why}" for why, names in grouped(plan.nodes_left_out)]
    times = ["", planned_features(plan)] if plan.features else []
    times += ["", f"critical path: {' -> '.join(plan.critical_path) or 'nothing to run'}"]
    expected = f"expected time: {duration(plan.expected_s)} with warm images"
    if scale != 1:
        expected += f", {duration(plan.expected_s / scale)} at time scale {scale:g}"
    return [*nodes, ""], [*times, expected]

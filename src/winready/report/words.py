"""A run in words: the lines that a terminal, a log and a summary share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from winready.engine.coverage import why_not
from winready.engine.events import UpstreamProgress
from winready.engine.outcomes import RequirementResult, RuleResult
from winready.engine.plan import Plan
from winready.engine.verdict import EXIT_INTERRUPTED
from winready.report.record import Record

MARKS = {"passed": "✓", "failed": "✗", "blocked": "■", "not-applicable": "-", "error": "!"}
STYLES = {"passed": "green", "failed": "red", "blocked": "yellow", "not-applicable": "dim", "error": "magenta"}

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


def result_line(result: RequirementResult) -> str:
    """One finished requirement."""
    text = f"{MARKS[result.outcome]} {result.id:<48} {result.outcome:<14} {duration(result.duration_s):>8}"
    if result.outcome != "passed":
        return f"{text}  {_short(result.reason)}"
    agreement = result.evidence.facts.get("agreement", {}).get("verdict")
    return f"{text}  {AGREEMENTS.get(agreement, agreement)}" if agreement else text


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


def cluster_lines(record: Record) -> list[str]:
    """The cluster, a line per node."""
    if record.cluster is None:
        return []
    simulated = ", a simulated cluster (sandbox)" if record.simulated else ""
    lines = [f"Kubernetes {record.cluster.version} at {record.cluster.server}{simulated}"]
    for node in record.cluster.nodes:
        note = f"  not used: {why}" if (why := why_not(node)) else ""
        lines.append(f"  {node.name:<12} {node.os:<8} {node.build:<20} {node.runtime}{note}")
    return lines


def summary_lines(record: Record) -> list[tuple[str, str]]:
    """What a person wants to know at the end: (style, line)."""
    lines: list[tuple[str, str]] = []
    counts = Counter(item.outcome for item in record.requirements)
    lines.append(("", ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common()) or "nothing was run"))
    for same in by_reason(record.requirements):
        lines += _explained(same)
    if text := suspect(record):
        lines.append(("bold", text))
    for rule in record.rules:
        if rule.gates != "run":
            lines.append(("dim", f"{rule.id}, which only a certificate needs: {rule.reason}"))
        elif rule.outcome != "passed":
            lines.append(_rule_line(rule))
    lines += [("yellow", line) for line in not_judged_lines(record)]
    for left in record.leftovers:
        lines.append(("yellow", f"left behind on the cluster: {left}"))
    if record.exit_code == EXIT_INTERRUPTED:
        lines.append(("yellow", record.verdict_reasons[0]))
    lines.append(("bold green" if record.verdict == "Pass" else "bold red", record.verdict_text))
    return lines


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
    led = Counter(
        name
        for item in failed
        for name in nodes
        if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", item.next_step)
    )
    if len(failed) < 3 or not led:
        return ""
    (name, most), *others = led.most_common(2)
    if 2 * most <= len(failed) or any(number == most for _, number in others):
        return ""
    return f"{most} of {len(failed)} failures lead to node {name}: look there first."


def _explained(same: list[RequirementResult]) -> list[tuple[str, str]]:
    first = same[0]
    lines = [(STYLES[first.outcome], f"{MARKS[first.outcome]} {item.id} {item.outcome}") for item in same]
    lines.append(("", f"    {first.reason}"))
    if first.next_step:
        lines.append(("dim", f"    next step: {first.next_step}"))
    return lines


def _rule_line(rule: RuleResult) -> tuple[str, str]:
    waived = f" (waived by {rule.waived_by})" if rule.waived_by else ""
    return STYLES[rule.outcome], f"{MARKS[rule.outcome]} {rule.id} {rule.outcome}{waived}: {rule.reason}"


def plan_lines(plan: Plan, scale: float) -> list[str]:
    """A plan as a table."""
    lines = [
        f"Windows nodes judged: {', '.join(plan.windows_nodes) or 'none'}",
        f"Linux nodes beside them: {', '.join(plan.linux_nodes) or 'none'}",
    ]
    lines += [f"left out: {', '.join(names)}: {why}" for why, names in grouped(plan.nodes_left_out)]
    lines += ["", f"{'requirement':<50} {'action':<15} {'verifier':<9} {'takes':>12}  Windows pods"]
    for item in plan.requirements:
        takes = duration(item.expected_s) if item.action == "run" else ""
        pods = str(item.windows_pods) if item.action == "run" else ""
        lines.append(f"{item.id:<50} {item.action:<15} {item.verifier:<9} {takes:>12}  {pods:>12}".rstrip())
        if item.reason:
            lines.append(f"    {item.reason}" + (f"; {item.next_step}" if item.next_step else ""))
    lines += ["", f"critical path: {' -> '.join(plan.critical_path) or 'nothing to run'}"]
    expected = f"expected time: {duration(plan.expected_s)} with warm images"
    if scale != 1:
        expected += f", {duration(plan.expected_s / scale)} at time scale {scale:g}"
    return [*lines, expected]

"""Two runs side by side: per requirement better, worse or the same, with the evidence that differs.

Features and workloads are compared likewise, by whether they work; advisory, so they never make a comparison worse.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from winready.cluster.evidence import Probe
from winready.engine.outcomes import FeatureResult, RequirementResult, RuleResult
from winready.engine.workloads import WorkloadResult, labelled
from winready.report.record import Record
from winready.report.words import not_judged_lines, workload_reason

Change = Literal["better", "worse", "same", "changed", "not judged", "new", "gone"]
ORDER: tuple[Change, ...] = ("worse", "better", "changed", "not judged", "new", "gone", "same")
NOT_SELECTED, NOT_JUDGED = "not selected", "not judged"
RANKS = {"failed": 0, "error": 1, "blocked": 1, "not-applicable": 2, "passed": 3}
_DIFFERENT_EVERY_TIME = (
    (re.compile(r"\d{6}-\d{6}-[0-9a-f]{4}"), "RUN"),
    (re.compile(r"-[0-9a-f]{8,10}-[0-9a-z]{5}\b"), "-*"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b"), "ADDRESS"),
    (re.compile(r"(?<=ADDRESS):\d+"), ":PORT"),
    (re.compile(r"(?<!\d)\d+(?:\.\d+)? (?:ms|milliseconds|s)\b"), "TIME"),
)


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two runs."""

    name: str
    """What stands above its column: the name that was given, else when it began."""
    run_id: str
    verdict: str
    cluster: str
    version: str
    builds: list[str]
    tool: str
    spec: str


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One requirement in both runs."""

    id: str
    change: Change
    before: str = ""
    after: str = ""
    reason_before: str = ""
    reason_after: str = ""
    appeared: list[str] = []
    """Probes that failed only in the second run, with what was seen."""
    vanished: list[str] = []
    """Probes that failed only in the first run."""
    seconds_before: float = 0.0
    seconds_after: float = 0.0

    @property
    def sides(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Both runs as they are shown: the outcome that gives the colour, and the words."""
        return _seen(self.before), _seen(self.after)


class FeatureRow(Row, frozen=True, kw_only=True, omit_defaults=True):
    """One feature of the matrix in both runs: better and worse tell whether it works, whatever the data says."""

    name: str
    area: str
    works_before: bool | None = None
    works_after: bool | None = None
    contradiction_before: str = ""
    """How cluster and data differed in the first run."""
    contradiction_after: str = ""

    @property
    def sides(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Both runs as they are shown."""
        if self.change == NOT_JUDGED:
            return super().sides
        return (
            _feature_side(self.before, self.works_before, self.contradiction_before),
            _feature_side(self.after, self.works_after, self.contradiction_after),
        )


class WorkloadRow(Row, frozen=True, kw_only=True, omit_defaults=True):
    """One workload in both runs."""

    ready_before: bool | None = None
    ready_after: bool | None = None

    @property
    def sides(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Both runs as they are shown."""
        if self.change == NOT_JUDGED:
            return super().sides
        return (
            (self.before, "ready" if self.ready_before else "not ready" if self.before else NOT_SELECTED),
            (self.after, "ready" if self.ready_after else "not ready" if self.after else NOT_SELECTED),
        )


R = TypeVar("R", bound=Row)
T = TypeVar("T")
Probed = RequirementResult | FeatureResult


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that differs, worst first."""

    a: Side
    b: Side
    rows: list[Row]
    notes: list[str]
    """What makes the two runs less comparable than they look."""
    features: list[FeatureRow] = []
    """Empty unless both runs were to show features."""
    workloads: list[WorkloadRow] = []
    """Empty unless both runs were to answer for workloads."""

    @property
    def worse(self) -> bool:
        """Whether any requirement or rule got worse."""
        return any(row.change == "worse" for row in self.rows)

    @property
    def counts(self) -> list[tuple[Change, int]]:
        """How many requirements and rules of each."""
        return tally(self.rows)

    @property
    def advisory(self) -> list[tuple[str, Sequence[Row]]]:
        """What is told beside the requirements, where there is any."""
        parts: list[tuple[str, Sequence[Row]]] = [("features", self.features), ("workloads", self.workloads)]
        return [(name, rows) for name, rows in parts if rows]


def tally(rows: Iterable[Row]) -> list[tuple[Change, int]]:
    """How many of each change."""
    found = Counter(row.change for row in rows)
    return [(name, found[name]) for name in ORDER if found[name]]


def compare(a: Record, b: Record, names: tuple[str, str] = ("", "")) -> Comparison:
    """What changed from ``a`` to ``b``."""
    first, second = ({item.id: item for item in run.requirements} | _rules(run) for run in (a, b))

    def judged(rows: list[R]) -> list[R]:
        return [_without_interruption(row, a, b) for row in rows] if a.interrupted or b.interrupted else rows

    return Comparison(
        a=_side(a, names[0]),
        b=_side(b, names[1]),
        rows=judged(_pairs(first, second, _row)),
        notes=[*_notes(a, b), *_one_sided(a, b)],
        features=judged(_pairs(_features(a), _features(b), _feature_row)) if a.features and b.features else [],
        workloads=judged(_pairs(_workloads(a), _workloads(b), _workload_row)) if a.workloads and b.workloads else [],
    )


def unjudged(outcome: str, *, interrupted: bool) -> bool:
    """Whether something was left without an outcome of its own because its run was interrupted."""
    return interrupted and outcome in ("blocked", "error")


def _without_interruption(row: R, a: Record, b: Record) -> R:
    """A row that does not take the end of a run for a change of the cluster."""
    found: dict[str, str] = {}
    for run, outcome, reason in ((a, "before", "reason_before"), (b, "after", "reason_after")):
        if unjudged(getattr(row, outcome), interrupted=run.interrupted):
            found |= {outcome: NOT_JUDGED, reason: ""}
    if found and row.change not in ("new", "gone"):
        found["change"] = NOT_JUDGED
    return msgspec.structs.replace(row, **found)


def _seen(outcome: str) -> tuple[str, str]:
    return ("", outcome or NOT_SELECTED) if outcome in ("", NOT_JUDGED) else (outcome, outcome)


def _rules(run: Record) -> dict[str, RequirementResult]:
    return {rule.id: _as_result(rule) for rule in run.rules}


def _pairs(a: Mapping[str, T], b: Mapping[str, T], make: Callable[[str, T | None, T | None], R]) -> list[R]:
    """A row for everything that is in one of both, worst first."""
    rows = [make(name, a.get(name), b.get(name)) for name in dict.fromkeys([*a, *b])]
    return sorted(rows, key=lambda row: ORDER.index(row.change))


def _features(run: Record) -> dict[str, FeatureResult]:
    return {item.id: item for item in run.features}


def _workloads(run: Record) -> dict[str, WorkloadResult]:
    return labelled(run.workloads)


def _as_result(rule: RuleResult) -> RequirementResult:
    return RequirementResult(id=rule.id, category="", level="rule", outcome=rule.outcome, reason=rule.reason)


def _row(name: str, a: RequirementResult | None, b: RequirementResult | None) -> Row:
    return Row(id=name, change=_change(a, b), **_both(a, b))


def _both(a: Probed | None, b: Probed | None) -> dict[str, Any]:
    appeared, vanished = _failed(b), _failed(a)
    return {
        "before": a.outcome if a else "",
        "after": b.outcome if b else "",
        "reason_before": a.reason if a and a.outcome != "passed" else "",
        "reason_after": b.reason if b and b.outcome != "passed" else "",
        "appeared": [text for key, text in appeared.items() if key not in vanished],
        "vanished": [text for key, text in vanished.items() if key not in appeared],
        "seconds_before": a.duration_s if a else 0.0,
        "seconds_after": b.duration_s if b else 0.0,
    }


def _change(a: Probed | WorkloadResult | None, b: Probed | WorkloadResult | None) -> Change:
    if a is None:
        return "new"
    if b is None:
        return "gone"
    before, after = (rank(item.outcome, _works(item)) for item in (a, b))
    if before != after:
        return "better" if after > before else "worse"
    return "same" if a.outcome == b.outcome else "changed"


def _works(result: Probed | WorkloadResult) -> bool | None:
    return result.works if isinstance(result, FeatureResult) else None


def rank(outcome: str, works: bool | None = None) -> int:
    """The higher the better. Of a feature it counts whether it was seen to work, not whether the data foresaw it."""
    return RANKS[outcome if works is None else "passed" if works else "failed"]


def _feature_row(name: str, a: FeatureResult | None, b: FeatureResult | None) -> FeatureRow:
    known = [item for item in (b, a) if item]
    return FeatureRow(
        id=name,
        name=known[0].name,
        area=known[0].area,
        change=_change(a, b),
        works_before=a.works if a else None,
        works_after=b.works if b else None,
        contradiction_before=a.contradiction if a else "",
        contradiction_after=b.contradiction if b else "",
        **_both(a, b),
    )


def _feature_side(outcome: str, works: bool | None, contradiction: str) -> tuple[str, str]:
    if works is None:
        return outcome, outcome or NOT_SELECTED
    text = "works" if works else "does not work"
    if contradiction:
        return ("passed" if works else "failed"), f"{text}, a contradiction"
    if works:
        return "passed", text
    return ("not-applicable", f"{text}, as documented") if outcome == "passed" else (outcome, text)


def _workload_row(name: str, a: WorkloadResult | None, b: WorkloadResult | None) -> WorkloadRow:
    return WorkloadRow(
        id=name,
        change=_change(a, b),
        before=a.outcome if a else "",
        after=b.outcome if b else "",
        ready_before=a.ready if a else None,
        ready_after=b.ready if b else None,
        reason_before=workload_reason(a) if a and not a.ready else "",
        reason_after=workload_reason(b) if b and not b.ready else "",
    )


def _failed(result: Probed | None) -> dict[str, str]:
    """Failed probes by what they asked, without names and addresses that differ every time."""
    return {_stable(probe): _told(probe) for probe in result.evidence.probes if not probe.ok} if result else {}


def _stable(probe: Probe) -> str:
    text = f"{probe.node}: {probe.title}: {probe.observed}"
    for pattern, word in _DIFFERENT_EVERY_TIME:
        text = pattern.sub(word, text)
    return text


def _told(probe: Probe) -> str:
    seen = " ".join(probe.observed.split())
    return f"{probe.title} (node {probe.node}): {seen if len(seen) <= 200 else f'{seen[:200]}…'}"


def _side(run: Record, name: str) -> Side:
    nodes = run.cluster.nodes if run.cluster else []
    return Side(
        name=name or (f"{run.started[:16].replace('T', ' ')} UTC" if run.started else run.run_id),
        run_id=run.run_id,
        verdict=run.verdict_text,
        cluster="sandbox" if run.simulated else run.cluster.server if run.cluster else "",
        version=run.cluster.version if run.cluster else "",
        builds=sorted({node.build for node in nodes if node.windows}),
        tool=run.tool,
        spec=run.spec.get("digest", ""),
    )


def _notes(a: Record, b: Record) -> list[str]:
    notes = [
        f"the {which} run was interrupted: what it had not judged by then says nothing about the cluster"
        for which, run in (("first", a), ("second", b))
        if run.interrupted
    ]
    if a.spec.get("digest") != b.spec.get("digest"):
        notes.append("the runs follow different texts of the standard")
    for setting in ("time_scale", "air_gapped"):
        if a.settings.get(setting) != b.settings.get(setting):
            word = setting.replace("_", " ")
            notes.append(f"{word} differs: {a.settings.get(setting)} and {b.settings.get(setting)}")
    if a.simulated != b.simulated:
        notes.append("only one of the two clusters is simulated")
    judged = [set(run.coverage.judged) for run in (a, b)]
    if a.cluster and b.cluster and a.cluster.uid == b.cluster.uid and judged[0] != judged[1]:
        notes.append(f"other Windows nodes were judged: {_names(judged[0])}, and {_names(judged[1])}")
    left_out = [not_judged_lines(run) for run in (a, b)]
    for line in dict.fromkeys(left_out[0] + left_out[1]):
        where = "both runs" if line in left_out[0] and line in left_out[1] else "the first run"
        notes.append(f"in {where if line in left_out[0] else 'the second run'} {line}")
    if a.tool != b.tool:
        notes.append(f"made by {a.tool} and {b.tool}")
    return notes


def _one_sided(a: Record, b: Record) -> list[str]:
    """What only one of the runs was asked for; it cannot be compared, and is no difference of the clusters."""
    found = (("feature", len(a.features), len(b.features)), ("workload", len(a.workloads), len(b.workloads)))
    return [
        f"only the {'first' if one else 'second'} run tells of {thing}s ({one or other} of them)"
        for thing, one, other in found
        if bool(one) != bool(other)
    ]


def _names(nodes: set[str]) -> str:
    found = sorted(nodes)
    return ", ".join([*found[:5], *([f"{len(found) - 5} more"] if len(found) > 5 else [])]) or "none"


def changed(rows: Iterable[R]) -> list[R]:
    """The rows that are worth a word."""
    return [row for row in rows if row.change not in ("same", NOT_JUDGED) or row.appeared or row.vanished]

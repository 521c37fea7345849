"""Two runs side by side: per requirement better, worse or the same, with the evidence that differs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Literal

import msgspec

from winready.cluster.evidence import Probe
from winready.engine.outcomes import RequirementResult, RuleResult
from winready.report.record import Record
from winready.report.words import not_judged_lines

Change = Literal["better", "worse", "same", "changed", "new", "gone"]
ORDER: tuple[Change, ...] = ("worse", "better", "changed", "new", "gone", "same")
RANKS = {"failed": 0, "error": 1, "blocked": 1, "not-applicable": 2, "passed": 3}
_DIFFERENT_EVERY_TIME = (
    (re.compile(r"\d{6}-\d{6}-[0-9a-f]{4}"), "RUN"),
    (re.compile(r"-[0-9a-f]{8,10}-[0-9a-z]{5}\b"), "-*"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b"), "ADDRESS"),
    (re.compile(r"(?<=ADDRESS):\d+"), ":PORT"),
    (re.compile(r"\d+(?:\.\d+)? (?:ms|milliseconds|s)\b"), "TIME"),
)


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two runs."""

    name: str
    """What stands above its column: a product, a cluster, or the run's id."""
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


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that differs, worst first."""

    a: Side
    b: Side
    rows: list[Row]
    notes: list[str]
    """What makes the two runs less comparable than they look."""

    @property
    def worse(self) -> bool:
        """Whether anything got worse."""
        return any(row.change == "worse" for row in self.rows)

    @property
    def counts(self) -> list[tuple[Change, int]]:
        """How many of each."""
        found = Counter(row.change for row in self.rows)
        return [(name, found[name]) for name in ORDER if found[name]]


def compare(a: Record, b: Record, names: tuple[str, str] = ("", "")) -> Comparison:
    """What changed from ``a`` to ``b``."""
    first = {item.id: item for item in a.requirements}
    second = {item.id: item for item in b.requirements}
    first |= {rule.id: _as_result(rule) for rule in a.rules}
    second |= {rule.id: _as_result(rule) for rule in b.rules}
    rows = [_row(name, first.get(name), second.get(name)) for name in dict.fromkeys([*first, *second])]
    rows.sort(key=lambda row: ORDER.index(row.change))
    return Comparison(a=_side(a, names[0]), b=_side(b, names[1]), rows=rows, notes=_notes(a, b))


def _as_result(rule: RuleResult) -> RequirementResult:
    return RequirementResult(id=rule.id, category="", level="rule", outcome=rule.outcome, reason=rule.reason)


def _row(name: str, a: RequirementResult | None, b: RequirementResult | None) -> Row:
    appeared, vanished = _failed(b), _failed(a)
    return Row(
        id=name,
        change=_change(a, b),
        before=a.outcome if a else "",
        after=b.outcome if b else "",
        reason_before=a.reason if a and a.outcome != "passed" else "",
        reason_after=b.reason if b and b.outcome != "passed" else "",
        appeared=[text for key, text in appeared.items() if key not in vanished],
        vanished=[text for key, text in vanished.items() if key not in appeared],
        seconds_before=a.duration_s if a else 0.0,
        seconds_after=b.duration_s if b else 0.0,
    )


def _change(a: RequirementResult | None, b: RequirementResult | None) -> Change:
    if a is None:
        return "new"
    if b is None:
        return "gone"
    if a.outcome == b.outcome:
        return "same"
    before, after = RANKS[a.outcome], RANKS[b.outcome]
    return "better" if after > before else "worse" if after < before else "changed"


def _failed(result: RequirementResult | None) -> dict[str, str]:
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
        name=name or run.run_id,
        run_id=run.run_id,
        verdict=run.verdict_text,
        cluster="sandbox" if run.simulated else run.cluster.server if run.cluster else "",
        version=run.cluster.version if run.cluster else "",
        builds=sorted({node.build for node in nodes if node.windows}),
        tool=run.tool,
        spec=run.spec.get("digest", ""),
    )


def _notes(a: Record, b: Record) -> list[str]:
    notes = []
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


def _names(nodes: set[str]) -> str:
    found = sorted(nodes)
    return ", ".join([*found[:5], *([f"{len(found) - 5} more"] if len(found) > 5 else [])]) or "none"


def changed(rows: Iterable[Row]) -> list[Row]:
    """The rows that are worth a word."""
    return [row for row in rows if row.change != "same" or row.appeared or row.vanished]

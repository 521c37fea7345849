"""The grid: requirements by runs, one character per outcome, so that hundreds of runs are a small document."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from winready.report import words
from winready.report.changes import FLAKY_RUNS, flaky
from winready.report.comparing import unjudged
from winready.report.dashboard.state import make_states, tone, verdict, why
from winready.report.history import Entry, FeatureSeen, History, Outcome, RuleSeen, WorkloadSeen
from winready.spec.loader import load_standard

LETTERS = {"passed": "p", "failed": "f", "blocked": "b", "not-applicable": "n", "error": "e"}
NOT_SELECTED, NOT_JUDGED = ".", "u"
CUT_OFF = "the run was interrupted before it was judged"
CONTRADICTION, BY_DATA = "c", "d"
WORST_FIRST = "cfebpnd."


@dataclass
class _Rows:
    """Rows of letters that are put together, and the reasons of all of them."""

    cells: list[str] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)
    why: dict[str, int] = field(default_factory=dict)

    def add(self, cells: Iterable[tuple[str, str]]) -> str:
        """One more row, from a letter and a reason for each run."""
        letters, row = [], len(self.cells)
        for column, (letter, reason) in enumerate(cells):
            letters.append(letter)
            if reason:
                self.why[f"{row}.{column}"] = self.reasons.setdefault(reason, len(self.reasons))
        self.cells.append("".join(letters))
        return self.cells[-1]


def make_grid(index: History, entries: list[Entry]) -> dict[str, Any]:
    """What the page needs of these runs: newest first, a row of letters per requirement, reasons once each.

    Below the requirements come features, those of an area together, then workloads; the rules that a verdict looks at
    stand above all of them. ``why`` counts rows through requirements, features, workloads and rules.
    """
    results, features, workloads = index.results(entries), index.features(entries), index.workloads(entries)
    rows = _Rows()
    requirements = _requirements(entries, results, rows)
    shown = _features(entries, features, rows)
    return {
        "requirements": requirements,
        "features": shown,
        "areas": _areas(shown),
        "workloads": _workloads(entries, workloads, rows),
        "rules": _rules(entries, index.rules(entries), rows),
        "clusters": make_states(entries, results),
        "runs": [
            _run(entry) | _told(features.get(entry.folder, {}), workloads.get(entry.folder, {})) for entry in entries
        ],
        "reasons": list(rows.reasons),
        "why": rows.why,
        "flaky": _flaky(entries, results),
    }


def _requirements(entries: list[Entry], results: dict[str, dict[str, Outcome]], rows: _Rows) -> list[dict[str, str]]:
    used = {name for run in results.values() for name in run}
    standard = load_standard().requirements
    categories, statements = ({item.id: getattr(item, name) for item in standard} for name in ("category", "statement"))
    names = [*(name for name in categories if name in used), *sorted(used - set(categories))]

    def cell(entry: Entry, name: str) -> tuple[str, str]:
        item = results[entry.folder].get(name)
        if item is None:
            return NOT_SELECTED, ""
        if unjudged(item.outcome, interrupted=entry.interrupted):
            return NOT_JUDGED, CUT_OFF
        return LETTERS[item.outcome], item.reason

    return [
        {
            "id": name,
            "category": categories.get(name, "Others"),
            "statement": statements.get(name, ""),
            "cells": rows.add(cell(entry, name) for entry in entries),
        }
        for name in names
    ]


def _rules(entries: list[Entry], rules: dict[str, dict[str, RuleSeen]], rows: _Rows) -> list[dict[str, str]]:
    """Those that a verdict looks at; what was waived counts as not applicable."""
    statements = {rule.id: rule.statement for rule in load_standard().rules}
    used = dict.fromkeys(name for seen in rules.values() for name, rule in seen.items() if rule.gates == "run")

    def cell(entry: Entry, name: str) -> tuple[str, str]:
        item = rules.get(entry.folder, {}).get(name)
        if item is None:
            return NOT_SELECTED, ""
        if unjudged(item.outcome, interrupted=entry.interrupted):
            return NOT_JUDGED, CUT_OFF
        if item.waived:
            return LETTERS["not-applicable"], f"waived: {item.reason}"
        return LETTERS[item.outcome], "" if item.outcome == "passed" else item.reason

    return [
        {"id": name, "statement": statements.get(name, ""), "cells": rows.add(cell(entry, name) for entry in entries)}
        for name in used
    ]


def _features(entries: list[Entry], features: dict[str, dict[str, FeatureSeen]], rows: _Rows) -> list[dict[str, str]]:
    """By area; a feature is called as the newest run calls it."""
    known: dict[str, FeatureSeen] = {}
    for seen in features.values():
        known = seen | known

    def cell(entry: Entry, name: str) -> tuple[str, str]:
        item = features[entry.folder].get(name) if entry.folder in features else None
        if item is None:
            return NOT_SELECTED, ""
        if item.way == "data":
            return BY_DATA, ""  # why is the same in every run, and stands in each report
        return CONTRADICTION if item.contradiction else LETTERS[item.outcome], item.reason

    return [
        {"id": name, "name": seen.name, "area": seen.area, "cells": rows.add(cell(entry, name) for entry in entries)}
        for name, seen in sorted(known.items(), key=lambda item: (item[1].area, item[0]))
    ]


def _areas(features: list[dict[str, str]]) -> list[dict[str, str]]:
    """Each area as one row: the worst of its features in each run."""
    groups: dict[str, list[str]] = {}
    for item in features:
        groups.setdefault(item["area"], []).append(item["cells"])
    return [
        {"id": area, "cells": "".join(min(column, key=WORST_FIRST.index) for column in zip(*cells, strict=True))}
        for area, cells in groups.items()
    ]


def _workloads(
    entries: list[Entry], workloads: dict[str, dict[str, WorkloadSeen]], rows: _Rows
) -> list[dict[str, str]]:
    def cell(entry: Entry, name: str) -> tuple[str, str]:
        item = workloads.get(entry.folder, {}).get(name)
        return (LETTERS[item.outcome], item.reason) if item else (NOT_SELECTED, "")

    names = sorted({name for seen in workloads.values() for name in seen})
    return [{"id": name, "cells": rows.add(cell(entry, name) for entry in entries)} for name in names]


def _told(features: dict[str, FeatureSeen], workloads: dict[str, WorkloadSeen]) -> dict[str, str]:
    """What a run tells beside the requirements, in words."""
    told = {}
    if features:
        told["features"] = words.features_text(features.values())
    if workloads:
        told["workloads"] = words.workloads_text(item.outcome for item in workloads.values())
    return told


def _run(entry: Entry) -> dict[str, str]:
    return {
        "id": entry.folder,
        "started": entry.started[:16].replace("T", " "),
        "verdict": verdict(entry),
        "tone": tone(entry),
        "why": why(entry, 160),
        "cluster": entry.label,
        "version": entry.version,
    }


def _flaky(entries: list[Entry], results: dict[str, dict[str, Outcome]]) -> dict[str, list[str]]:
    """Flaky requirements by cluster."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.label, []).append(entry)
    found = {}
    for label, runs in groups.items():
        if names := flaky([results[run.folder] for run in runs[:FLAKY_RUNS]]):
            found[label] = names
    return found

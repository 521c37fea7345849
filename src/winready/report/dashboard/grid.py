"""The grid: requirements by runs, one character per outcome, so that a thousand runs are a small document."""

from __future__ import annotations

from typing import Any

from winready.report.changes import FLAKY_RUNS, flaky
from winready.report.history import Entry, History, Outcome
from winready.spec.loader import load_standard

LETTERS = {"passed": "p", "failed": "f", "blocked": "b", "not-applicable": "n", "error": "e"}
NOT_SELECTED = "."


def make_grid(index: History, limit: int = 1000) -> dict[str, Any]:
    """What the page needs: runs newest first, a row of letters per requirement, reasons once each."""
    entries = index.runs(limit)
    results = index.results(entries)
    used = {name for run in results.values() for name in run}
    categories = {item.id: item.category for item in load_standard().requirements}
    names = [*(name for name in categories if name in used), *sorted(used - set(categories))]
    reasons: dict[str, int] = {}
    why: dict[str, int] = {}
    letters: list[list[str]] = [[] for _ in names]
    for column, entry in enumerate(entries):
        found = results[entry.folder]
        for row, name in enumerate(names):
            item = found.get(name)
            letters[row].append(LETTERS[item.outcome] if item else NOT_SELECTED)
            if item and item.reason:
                why[f"{row}.{column}"] = reasons.setdefault(item.reason, len(reasons))
    return {
        "requirements": [
            {"id": name, "category": categories.get(name, "Others"), "cells": "".join(row)}
            for name, row in zip(names, letters, strict=True)
        ],
        "runs": [_run(entry) for entry in entries],
        "reasons": list(reasons),
        "why": why,
        "flaky": _flaky(entries, results),
    }


def _run(entry: Entry) -> dict[str, str]:
    return {
        "id": entry.folder,
        "started": entry.started[:16].replace("T", " "),
        "verdict": entry.verdict_text,
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

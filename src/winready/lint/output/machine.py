"""Findings for programs: JSON, written as it comes so that a large run needs no large memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from winready.lint.finding import Finding, Summary, Unreadable


def render(results: Iterable[Finding | Unreadable], summary: Summary, kubernetes: str) -> Iterator[str]:
    """One object with ``findings``, ``errors`` and ``summary``."""
    errors: list[Unreadable] = []
    yield f'{{"kubernetes": {json.dumps(kubernetes)},\n "findings": ['
    separator = "\n  "
    for one in results:
        if isinstance(one, Unreadable):
            errors.append(one)
            continue
        yield separator + json.dumps(finding(one), ensure_ascii=False)
        separator = ",\n  "
    unreadable = [{"path": e.path, "line": e.line, "column": e.column, "message": e.message} for e in errors]
    yield f'],\n "errors": {json.dumps(unreadable, ensure_ascii=False)},\n'
    yield f' "summary": {json.dumps(totals(summary))}}}\n'


def finding(one: Finding) -> dict[str, Any]:
    """The published fields of a finding."""
    return {
        "rule": one.rule,
        "severity": one.severity,
        "effect": one.effect,
        "path": one.path,
        "line": one.line,
        "column": one.column,
        "kind": one.kind,
        "namespace": one.namespace,
        "name": one.name,
        "container": one.container,
        "field": one.field,
        "message": one.message,
        "fix": one.fix,
        "fixable": one.fixable,
        "since": one.since,
        "until": one.until,
        "outcomes": [
            {"versions": str(o.versions), "effect": o.effect, "severity": o.severity, "note": o.note}
            for o in one.outcomes
        ],
        "evidence": one.evidence,
    }


def totals(summary: Summary) -> dict[str, int]:
    """The published counts."""
    return {
        "files": summary.files,
        "objects": summary.objects,
        "windows_workloads": summary.windows,
        "errors": summary.counts["error"],
        "warnings": summary.counts["warning"],
        "infos": summary.counts["info"],
        "suppressed": summary.suppressed,
        "unreadable": summary.unreadable,
    }

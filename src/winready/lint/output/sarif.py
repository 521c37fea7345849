"""SARIF 2.1.0, the form that code hosts show beside the code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from winready import __version__
from winready.lint import catalog
from winready.lint.finding import Finding, Summary, Unreadable, from_root

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def render(results: Iterable[Finding | Unreadable], summary: Summary) -> Iterator[str]:
    """One run; suppressed findings are in it and say why they are silent."""
    order = {rule: index for index, rule in enumerate(catalog.load())}
    found: list[dict[str, Any]] = []
    problems: list[dict[str, Any]] = []
    for one in results:
        if isinstance(one, Unreadable):
            problems.append({"level": "error", "message": {"text": one.message}, "locations": [_location(one, 1)]})
        else:
            found.append(_result(one, order[one.rule]))
    invocation: dict[str, Any] = {"executionSuccessful": not problems}
    if problems:
        invocation["toolExecutionNotifications"] = problems
    driver = {
        "name": "winready",
        "version": __version__,
        "rules": [_rule(rule) for rule in catalog.load().values()],
    }
    run = {"tool": {"driver": driver}, "invocations": [invocation], "columnKind": "unicodeCodePoints", "results": found}
    yield json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1, ensure_ascii=False) + "\n"


def _rule(rule: catalog.Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.fix},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": ["windows", "kubernetes", rule.area]},
    }


def _result(one: Finding, index: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": one.rule,
        "ruleIndex": index,
        "level": _LEVELS[one.severity],
        "message": {"text": f"{one.message} Fix: {one.fix}"},
        "locations": [_location(one, one.width, one.object, one.field)],
        "properties": {"since": one.since, "until": one.until, "effect": one.effect},
    }
    if one.suppressed:
        result["suppressions"] = [{"kind": "inSource", "justification": one.suppressed}]
    return result


def _location(one: Finding | Unreadable, width: int, name: str = "", field: str = "") -> dict[str, Any]:
    region = {"startLine": one.line, "startColumn": one.column, "endColumn": one.column + width}
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(from_root(one.path.replace("\\", "/")))},
            "region": region,
        }
    }
    if name:
        location["logicalLocations"] = [
            {"name": name, "fullyQualifiedName": f"{name} {field}".strip(), "kind": "resource"}
        ]
    return location

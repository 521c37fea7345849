"""A run as Sonobuoy's tree of results, which comes out as ``passed`` for a Pass and as ``failed`` for everything else.

Sonobuoy computes the word of a parent from its leaves: one ``failed`` leaf is enough, a tree of nothing but ``skipped``
leaves has passed, and any word that it does not know makes it count words instead of judging. So each leaf has one of
three words, what Sonobuoy has no word for stands in its details, and the first leaf is the verdict itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import yaml

from winready.engine.outcomes import RequirementResult, RuleResult
from winready.engine.verdict import MAY_BE_AIR_GAPPED
from winready.report.printable import printable
from winready.report.record import Record

NAME = "sonobuoy_results.yaml"
VERDICT = "Verdict"
Word = Literal["passed", "failed", "skipped"]
Item = dict[str, Any]


def word_of(result: RequirementResult, *, air_gapped: bool = False) -> Word:
    """What Sonobuoy is told of a requirement: what keeps a run from passing has failed, whatever it is called here."""
    if result.outcome == "passed":
        return "passed"
    if result.level == "advisory":
        return "skipped"
    may_not_apply = result.level != "core" or (air_gapped and result.id == MAY_BE_AIR_GAPPED)
    return "skipped" if result.outcome == "not-applicable" and may_not_apply else "failed"


def word_of_rule(rule: RuleResult) -> Word:
    """The same of a rule."""
    if rule.outcome == "passed":
        return "passed"
    waived = rule.gates != "run" or rule.waived_by or rule.outcome == "not-applicable"
    return "skipped" if waived else "failed"


def render(run: Record) -> str:
    """``sonobuoy_results.yaml`` of a run."""
    return _document(tree(run))


def render_trouble(what: str, log: Sequence[str] = ()) -> str:
    """The same where there was no run: one leaf, named after what is wrong."""
    return _document([_leaf(what, "failed", {"reason": what, **({"log": "\n".join(log)} if log else {})})])


def tree(run: Record) -> list[Item]:
    """The items below the root: the verdict, the categories with their requirements, and the rules."""
    passed = run.verdict == "Pass"
    said: dict[str, Any] = {"verdict": run.verdict_text, "run": run.run_id, "tool": run.tool}
    said |= {"exit code": run.exit_code, "reasons": list(run.verdict_reasons), "left behind": list(run.leftovers)}
    said |= {"simulated": run.simulated, "not judged": sorted({**run.not_judged, **run.linux_not_judged})}
    items = [_leaf(VERDICT, "passed" if passed else "failed", said)]
    air_gapped = run.settings.get("air_gapped") is True
    by_category: dict[str, list[Item]] = {}
    for result in run.requirements:
        word = word_of(result, air_gapped=air_gapped)
        by_category.setdefault(result.category, []).append(_leaf(result.id, word, _details(result), id=result.id))
    judged = {result.id for result in run.requirements}
    if lost := [name for name in run.selected if name not in judged]:
        why = {"outcome": "error", "reason": "the run ended before it was judged"}
        by_category["Not judged"] = [_leaf(name, "failed", why, id=name) for name in lost]
    items += [{"name": name, "items": leaves} for name, leaves in by_category.items()]
    if run.rules:
        items.append({"name": "Rules", "items": [_rule(rule) for rule in run.rules]})
    return items


def aggregate(items: Sequence[Mapping[str, Any]]) -> str:
    """The word that Sonobuoy gives a tree of these items."""
    words = [aggregate(item["items"]) if item.get("items") else str(item["status"]) for item in items]
    if "failed" in words or "timeout" in words:
        return "failed"
    return "unknown" if not words or "unknown" in words else "passed"


def _document(items: list[Item]) -> str:
    document = {"name": "winready", "status": aggregate(items), "items": items}
    return str(yaml.safe_dump(_plain(document), sort_keys=False, allow_unicode=True))


def _details(result: RequirementResult) -> dict[str, Any]:
    nodes = result.evidence.windows_nodes
    failed = [f"{probe.title}: {probe.observed}" for probe in result.evidence.probes if not probe.ok]
    return {
        "outcome": result.outcome,
        "level": result.level,
        "reason": result.reason,
        "next step": result.next_step,
        "expected": result.expected,
        "observed": result.observed,
        "duration": f"{result.duration_s:.1f}",
        "windows nodes": nodes,
        "probes": len(result.evidence.probes),
        "failed probes": failed[:20],
    }


def _rule(rule: RuleResult) -> Item:
    details = {"outcome": rule.outcome, "reason": rule.reason, "gates": rule.gates, "waived by": rule.waived_by or ""}
    return _leaf(rule.id, word_of_rule(rule), details, id=rule.id)


def _leaf(name: str, word: Word, details: dict[str, Any], **meta: str) -> Item:
    kept = {key: value for key, value in details.items() if value not in ("", [], None)}
    return {"name": name, "status": word, **({"meta": meta} if meta else {}), "details": kept}


def _plain(value: Any) -> Any:
    """Text that no terminal stumbles over: ``sonobuoy results`` prints it as it is."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return printable(value) if isinstance(value, str) else value

"""``report.html``: one file that works from a mail attachment, allows itself nothing but its own style and script."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from winready.engine.outcomes import RequirementResult
from winready.engine.workloads import Step
from winready.report import folding, meaning, words
from winready.report.causes import by_cause, by_next_step
from winready.report.html import answers
from winready.report.html.features import WAYS, make_features
from winready.report.html.matrix import make_matrix
from winready.report.html.nodes import make_nodes
from winready.report.html.timeline import make_timeline
from winready.report.record import Record
from winready.spec.loader import load_standard

NAME = "report.html"
ORDER = ("failed", "error", "blocked", "passed", "not-applicable")
VERIFIERS = {
    "native": "winready's own check",
    "upstream": "upstream tests (e2e.test)",
    "both": "winready's own check and upstream tests (e2e.test), which must agree",
}


def render(record: Record, *, draft: Sequence[str] = (), home: str = "", note: str = "") -> str:
    """The page of a run. ``draft``: what it must say on every page that it is not. ``home``: where it is a part of."""
    nodes = {node.name for node in record.cluster.nodes} if record.cluster else set()
    causes = by_cause(record.requirements, record.rules, air_gapped=record.settings.get("air_gapped") is True)
    style, script = asset("base.css") + asset("report.css"), asset("report.js")
    return (
        environment()
        .get_template("report.html")
        .render(
            record=record,
            style=Markup(style),  # noqa: S704 - our own file, allowed by its digest
            script=Markup(script),  # noqa: S704
            policy=f"default-src 'none'; style-src {digest(style)}; script-src {digest(script)}; "
            "base-uri 'none'; form-action 'none'",
            counts=[(name, count) for name in ORDER if (count := _counts(record)[name])],
            headline=meaning.headline(record),
            judged=meaning.has_verdict(record),
            causes=by_next_step(causes),
            deciding=by_next_step([cause for cause in causes if cause.decides]),
            suspect=words.suspect(record),
            sums=meaning.sums(record),
            rules_sum=_rules(record),
            meaning=meaning.explain(record),
            not_judged=words.grouped(record.not_judged),
            linux_not_judged=words.grouped(record.linux_not_judged),
            categories=_categories(record.requirements),
            core=meaning.core(record),
            windows=meaning.builds(record),
            statements=_statements(),
            nodes=nodes,
            node_rows=make_nodes(record),
            evidence=answers.shown({item.id: item.evidence for item in record.requirements}, nodes),
            timeline=make_timeline(record),
            matrix=make_matrix(record),
            features=make_features(record.features, nodes),
            draft=draft,
            home=home,
            note=note,
        )
    )


@functools.cache
def environment() -> jinja2.Environment:
    """The templates; everything that they print is escaped unless it says otherwise."""
    env = jinja2.Environment(
        loader=jinja2.PackageLoader("winready.report.html"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    env.filters |= {"duration": words.duration, "command": _command, "shown": _shown, "clock": _clock}
    env.filters |= {"short": folding.short, "ranges": folding.ranges, "folded": folding.folded, "alike": _alike}
    env.globals |= {"MARKS": words.MARKS, "ORDER": ORDER, "VERIFIERS": VERIFIERS, "WAYS": WAYS}
    return env


@functools.cache
def asset(name: str) -> str:
    """A file that lies beside the templates."""
    return resources.files("winready.report.html").joinpath("templates", name).read_text(encoding="utf-8")


@functools.cache
def digest(text: str) -> str:
    """How a content security policy names an inline style or script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _counts(record: Record) -> Counter[str]:
    return Counter(item.outcome for item in record.requirements)


def _rules(record: Record) -> meaning.Sum:
    """The rules that the verdict looks at; what was waived does not keep it from passing."""
    judged = [rule for rule in record.rules if rule.gates == "run"]
    counts: Counter[str] = Counter("not-applicable" if rule.waived_by else rule.outcome for rule in judged)
    return meaning.Sum("rules", "", counts, len(judged), len(judged))


def _categories(results: Sequence[RequirementResult]) -> dict[str, list[RequirementResult]]:
    grouped: dict[str, list[RequirementResult]] = {}
    for item in results:
        grouped.setdefault(item.category, []).append(item)
    return grouped


def _statements() -> dict[str, str]:
    standard = load_standard()
    requirements = {item.id: item.statement for item in standard.requirements}
    return requirements | {rule.id: rule.statement for rule in standard.rules}


def _alike(steps: Sequence[Step]) -> list[tuple[Step, str]]:
    """How far a workload's pods came, what is the same on several nodes once, with the nodes; the worst first."""
    groups: dict[tuple[str, ...], list[Step]] = {}
    for step in steps:
        groups.setdefault((step.outcome, step.reached, step.reason, *step.differs), []).append(step)
    found = [(same[0], folding.ranges(step.node for step in same)) for same in groups.values()]
    return sorted(found, key=lambda pair: pair[0].outcome == "passed")


def _command(words_of_it: Sequence[str]) -> str:
    """A command as one would type it; only for reading."""
    plain = re.compile(r"[^\s\"'\\]+")
    return " ".join(word if plain.fullmatch(word) else json.dumps(word, ensure_ascii=False) for word in words_of_it)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    try:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1, default=str)
    except RecursionError:
        return "(nested too deep to be shown)"


def _clock(seconds: float) -> str:
    """A mark on the time axis: short, because many stand side by side."""
    if seconds < 60:
        return f"{seconds:g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02} h"

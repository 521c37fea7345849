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
from winready.report import words
from winready.report.html.matrix import make_matrix
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
            problems=words.by_reason(record.requirements),
            suspect=words.suspect(record),
            not_judged=words.grouped(record.not_judged),
            linux_not_judged=words.grouped(record.linux_not_judged),
            categories=_categories(record.requirements),
            core=_core(record),
            windows=_windows(record),
            statements=_statements(),
            timeline=make_timeline(record),
            matrix=make_matrix(record),
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
    env.globals |= {"MARKS": words.MARKS, "VERIFIERS": VERIFIERS}
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


def _core(record: Record) -> str:
    """How many core requirements passed, and of how many; another text of the standard may have another number."""
    selected = [item for item in record.requirements if item.level == "core"]
    standard = load_standard()
    known = [item for item in standard.requirements if standard.level(item) == "core"]
    passed = sum(item.outcome == "passed" for item in selected)
    if record.spec.get("digest") != standard.digest:
        return f"{passed} of {len(selected)} selected"
    return f"{passed} of {len(known)}"


def _windows(record: Record) -> list[str]:
    """The Windows builds of the cluster, with how many nodes have each."""
    found = Counter(node.build for node in record.cluster.nodes if node.windows) if record.cluster else Counter()
    return [
        f"{build or 'of unknown build'} on {words.count(number, 'node')}" for build, number in sorted(found.items())
    ]


def _categories(results: Sequence[RequirementResult]) -> list[tuple[str, str, list[RequirementResult]]]:
    titles = {item.name: item.title for item in load_standard().document.categories}
    grouped: dict[str, list[RequirementResult]] = {}
    for item in results:
        grouped.setdefault(item.category, []).append(item)
    return [(name, titles.get(name, ""), items) for name, items in grouped.items()]


def _statements() -> dict[str, str]:
    standard = load_standard()
    requirements = {item.id: item.statement for item in standard.requirements}
    return requirements | {rule.id: rule.statement for rule in standard.rules}


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

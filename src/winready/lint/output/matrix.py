"""The support matrix as text, Markdown, HTML and JSON: one table model, several pens."""

from __future__ import annotations

import html
import json
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from winready.lint import matrix
from winready.lint.catalog import Outcome, load
from winready.lint.matrix import Feature, FeatureChange, RuleChange, Status
from winready.lint.versions import Range

Row = tuple[str, ...]


@dataclass(slots=True)
class Section:
    """A heading and a table."""

    title: str
    columns: Row
    rows: list[Row] = field(default_factory=list)


@dataclass(slots=True)
class Page:
    """A title, what to know first, tables, and the same as data."""

    title: str
    intro: str
    sections: list[Section]
    data: dict[str, Any]


def support_page(features: Sequence[Feature], versions: Range, *, wide: bool = False) -> Page:
    """What these versions support; ``wide`` also tells ids, gates and lint rules."""
    single = versions.low == versions.high
    more: Row = ("id", "gate", "lint rules") if wide else ()
    columns: Row = ("feature", "support", *(("stage", "since") if single else ()), *more, "notes")
    sections = []
    for area, chosen in matrix.areas(features):
        section = Section(area, columns)
        for feature in chosen:
            note = " ".join(part for part in (feature.limits, feature.note) if part)
            known = _known(feature) if wide else ()
            if single:
                status = feature.status(versions.low)
                since = f"1.{status.since}" if status.since and status.stage else ""
                section.rows.append(
                    (feature.name, matrix.SUPPORT[status.support], _stage(feature, status), since, *known, note)
                )
            else:
                story = "; ".join(f"{span}: {_words(feature, status)}" for span, status in feature.history(versions))
                section.rows.append((feature.name, story, *known, note))
        sections.append(section)
    title = f"Windows support in Kubernetes {versions}"
    data = {"kubernetes": str(versions), "features": [_feature_data(feature, versions) for feature in features]}
    return Page(title, "", sections, data)


def detail_text(feature: Feature, versions: Range) -> str:
    """One feature told in full: the answer to a question."""
    lines = [f"{feature.name} ({feature.id})"]
    lines += [f"  Kubernetes {span}: {_words(feature, status)}" for span, status in feature.history(versions)]
    if feature.limits:
        lines.append(f"  Limits: {feature.limits}")
    if feature.note:
        lines.append(f"  Note: {feature.note}")
    if feature.gate:
        lines.append(f"  Feature gate: {feature.gate}")
    if feature.stages:
        story = ", ".join(f"1.{s.since} {_stage_name(s.name)}{'' if s.on else ' (off)'}" for s in feature.stages)
        lines.append(f"  History: {story}")
    for rule in feature.rules:
        lines.append(f"  Lint rule {rule}: {load()[rule].title}")
    return "\n".join(lines) + "\n"


def diff_page(before: int, after: int, features: Sequence[Feature], with_rules: bool, *, wide: bool = False) -> Page:
    """What an upgrade changes; ``wide`` also tells ids, gates, lint rules and what rules are about."""
    changed = matrix.changes(before, after, features)
    rules = matrix.rule_changes(before, after) if with_rules else []
    versions = (f"1.{before}", f"1.{after}")
    columns: Row = ("feature", *versions, *(("id", "gate", "lint rules") if wide else ()), "notes")
    better = Section("Gained or matured", columns, [_change_row(one, wide) for one in changed if one.better])
    worse = Section("Lost", columns, [_change_row(one, wide) for one in changed if not one.better])
    about = ("about",) if wide else ()
    manifests = Section("Manifests judged differently", ("rule", *versions, *about, "what to do"))
    manifests.rows += [_rule_row(one, wide) for one in rules]
    sections = [section for section in (better, worse, manifests) if section.rows]
    intro = "" if sections else "Nothing changes for Windows between these versions."
    data = {
        "from": f"1.{before}",
        "to": f"1.{after}",
        "features": [
            {"id": c.feature.id, "name": c.feature.name, "before": status_data(c.before), "after": status_data(c.after)}
            for c in changed
        ],
        "rules": [
            {"id": c.rule.id, "before": _outcome(c.before), "after": _outcome(c.after), "fix": c.rule.fix}
            for c in rules
        ],
    }
    return Page(f"Windows from Kubernetes 1.{before} to 1.{after}", intro, sections, data)


def as_json(page: Page) -> Iterator[str]:
    """The data of the page."""
    yield json.dumps(page.data, indent=2, ensure_ascii=False) + "\n"


def as_text(page: Page) -> Iterator[str]:
    """Aligned columns, the last one wrapped to the terminal."""
    width = max(80, shutil.get_terminal_size((120, 24)).columns)
    yield f"{page.title}\n"
    if page.intro:
        yield f"\n{page.intro}\n"
    for section in page.sections:
        yield f"\n{section.title}\n"
        widths = [
            min(44, max(len(row[i]) for row in [section.columns, *section.rows]))
            for i in range(len(section.columns) - 1)
        ]
        for row in [tuple(name.upper() for name in section.columns), *section.rows]:
            yield from _text_row(row, widths, width)


def _text_row(row: Row, widths: Sequence[int], width: int) -> Iterator[str]:
    room = max(30, width - sum(widths) - 2 * len(widths) - 2)
    # What stands without a space, such as a file and its line, can be copied only whole.
    wrap = textwrap.TextWrapper(break_long_words=False, break_on_hyphens=False)
    cells = []
    for cell, size in zip(row, [*widths, room], strict=True):
        wrap.width = size
        cells.append(wrap.wrap(cell) or [""])
    for number in range(max(len(cell) for cell in cells)):
        parts = [cell[number] if number < len(cell) else "" for cell in cells]
        line = "  ".join(part.ljust(size) for part, size in zip(parts, [*widths, 0], strict=True))
        yield f"  {line}".rstrip() + "\n"


def as_markdown(page: Page) -> Iterator[str]:
    """Tables of Markdown."""
    yield f"# {page.title}\n"
    if page.intro:
        yield f"\n{page.intro}\n"
    for section in page.sections:
        yield f"\n## {section.title}\n\n"
        for row in [section.columns, tuple("---" for _ in section.columns), *section.rows]:
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n"


_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #1a1a1a }
table { border-collapse: collapse; width: 100%; margin-bottom: 2rem }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid #ddd }
th { border-bottom: 2px solid #888 }
@media (prefers-color-scheme: dark) { body { background: #16181c; color: #e6e6e6 } th, td { border-color: #444 } }
"""


def as_html(page: Page) -> Iterator[str]:
    """A page that needs nothing else."""
    title = html.escape(page.title)
    yield f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title>'
    yield f"<style>{_STYLE}</style></head>\n"
    yield f"<body>\n<h1>{title}</h1>\n"
    if page.intro:
        yield f"<p>{html.escape(page.intro)}</p>\n"
    for section in page.sections:
        yield f"<h2>{html.escape(section.title)}</h2>\n<table>\n<thead><tr>"
        yield "".join(f'<th scope="col">{html.escape(name)}</th>' for name in section.columns)
        yield "</tr></thead>\n<tbody>\n"
        for row in section.rows:
            yield "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>\n"
        yield "</tbody>\n</table>\n"
    yield "</body>\n</html>\n"


def _stage_name(stage: str) -> str:
    return {"ga": "stable", "none": "gone"}.get(stage, stage)


def _stage(feature: Feature, status: Status) -> str:
    if not status.stage:
        return ""
    gate = (
        f" ({feature.gate}{' off' if status.support == 'off' else ''})" if feature.gate and status.stage != "ga" else ""
    )
    return _stage_name(status.stage) + gate


def _words(feature: Feature, status: Status) -> str:
    stage = f", {_stage(feature, status)} since 1.{status.since}" if status.stage else ""
    return f"{matrix.SUPPORT[status.support]}{stage}"


def _known(feature: Feature) -> Row:
    return feature.id, feature.gate, ", ".join(feature.rules)


def _change_row(change: FeatureChange, wide: bool) -> Row:
    note = change.feature.limits or change.feature.note
    return (
        change.feature.name,
        stage_words(change.feature, change.before),
        stage_words(change.feature, change.after),
        *(_known(change.feature) if wide else ()),
        note,
    )


def stage_words(feature: Feature, status: Status) -> str:
    """The stage of a feature in a version, or that it is not there."""
    return _stage(feature, status) or ("never" if status.support == "never" else "no")


def _rule_row(change: RuleChange, wide: bool) -> Row:
    before, after = (f"{o.effect} ({o.severity})" if o else "no rule" for o in (change.before, change.after))
    return change.rule.id, before, after, *((change.rule.title,) if wide else ()), change.rule.fix


def _feature_data(feature: Feature, versions: Range) -> dict[str, Any]:
    return {
        "id": feature.id,
        "name": feature.name,
        "area": feature.area,
        "gate": feature.gate or None,
        "limits": feature.limits or None,
        "note": feature.note or None,
        "rules": list(feature.rules),
        "statuses": [{"versions": str(span), **status_data(status)} for span, status in feature.history(versions)],
    }


def status_data(status: Status) -> dict[str, Any]:
    """A status for machines."""
    since = f"1.{status.since}" if status.since and status.stage else None
    return {"support": status.support, "stage": status.stage or None, "since": since}


def _outcome(outcome: Outcome | None) -> dict[str, str] | None:
    return {"effect": outcome.effect, "severity": outcome.severity, "note": outcome.note} if outcome else None

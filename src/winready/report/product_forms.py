"""The table of products as text, Markdown, CSV or a page."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import groupby

from markupsafe import Markup

from winready.report import words
from winready.report.comparing import NOT_JUDGED, NOT_SELECTED
from winready.report.formats import escape, table
from winready.report.html import page
from winready.report.printable import printable
from winready.report.products import WAIVED, Column, Products, Row

SIGNS = {**words.MARKS, WAIVED: "w", NOT_JUDGED: "·", NOT_SELECTED: " "}
LEGEND = [(SIGNS[name], name.replace("-", " ")) for name in (*words.MARKS, WAIVED, NOT_JUDGED)]
MARKS = {
    "draft": "from a bundle that is no certificate",
    "sandbox": "a simulated cluster: says nothing about a real one",
    "interrupted": "ended before its time, without a verdict",
    "partial": "not all core requirements were selected",
    "time scale": "waits were shortened",
    "not all nodes": "some Windows nodes were not judged",
}
WIDTH = 4
"""Characters of a column on a terminal."""


def as_text(found: Products) -> str:
    """For a terminal: products by number, then a sign for each, as many side by side as there is room for."""
    lines = []
    for number, column in enumerate(found.columns, 1):
        lines.append(f"{number:>3}  {_line(column.name)}  Kubernetes {_line(column.kubernetes) or '?'}")
        lines.append(f"     {_line(column.verdict)}{_marked(column)}  Windows {_line(_windows(column))}")
    lines += [f"note: {note}" for note in found.notes]
    name = max((len(row.id) for row in found.rows), default=0) + 2
    room = max(1, (shutil.get_terminal_size((120, 24)).columns - name) // WIDTH)
    for start in range(0, len(found.columns), room):
        part = range(start, min(start + room, len(found.columns)))
        lines += ["", f"{'':<{name}}{''.join(f'{place + 1:>{WIDTH}}' for place in part)}"]
        verdicts = (
            {"pass": "passed", "fail": "failed", "none": "blocked"}[found.columns[place].state] for place in part
        )
        lines.append(f"{'verdict':<{name}}{''.join(f'{SIGNS[each]:>{WIDTH}}' for each in verdicts)}")
        for category, rows in found.groups:
            lines += ["", _line(category)]
            lines += [
                f"{_line(row.id):<{name}}{''.join(f'{SIGNS[row.outcomes[place]]:>{WIDTH}}' for place in part)}".rstrip()
                for row in rows
            ]
    lines += ["", f"{', '.join(f'{sign} {text}' for sign, text in LEGEND)}, nothing: {NOT_SELECTED}"]
    lines += [f"{mark}: {MARKS[mark]}" for mark in used(found)]
    return printable("\n".join(lines) + "\n")


def wide_rows(found: Products) -> Iterator[tuple[str, ...]]:
    """The same as rows with words, for a table; the first are its heads."""
    yield "", "CATEGORY", *(f"{column.name} {column.kubernetes}" for column in found.columns)
    for name, cells in _facts(found):
        yield name, "", *cells
    for row in found.rows:
        yield row.id, row.category, *(outcome.replace("-", " ") for outcome in row.outcomes)


def as_markdown(found: Products) -> str:
    """A table that can be published, and below it why something did not pass."""
    lines = ["## Windows operational readiness by product", ""]
    names = " | ".join(escape(column.name) for column in found.columns)
    lines += [f"| | {names} |", f"|---|{'---|' * len(found.columns)}"]
    for name, cells in _facts(found):
        lines.append(f"| {name} | {' | '.join(escape(cell) for cell in cells)} |")
    for category, rows in found.groups:
        lines.append(f"| **{escape(category)}** |{' |' * len(found.columns)}")
        lines += [
            f"| {escape(row.id)} | {' | '.join(escape(SIGNS[outcome]) for outcome in row.outcomes)} |" for row in rows
        ]
    lines += ["", f"{', '.join(f'{escape(sign)} {text}' for sign, text in LEGEND)}; an empty cell: {NOT_SELECTED}."]
    lines += [f"*{escape(mark)}*: {MARKS[mark]}." for mark in used(found)]
    lines += [f"Note: {escape(note)}." for note in found.notes]
    why = [f"- {escape(row.id)}, {escape(name)}: {escape(reason)}" for row, name, reason in reasons(found)]
    if why:
        lines += [
            "",
            f"<details><summary>Why something did not pass ({len(why)})</summary>",
            "",
            *why,
            "",
            "</details>",
        ]
    return "\n".join([*lines, ""])


def as_csv(found: Products) -> str:
    """For a spreadsheet: no cell is taken for a formula."""
    columns = ("id", "category", "level", *(f"{column.name} {column.kubernetes}".strip() for column in found.columns))
    rows = [(name, "", "fact", *cells) for name, cells in _facts(found)]
    return table(columns, [*rows, *((row.id, row.category, row.level, *row.outcomes) for row in found.rows)])


def as_html(found: Products) -> str:
    """One self-contained page."""
    style = page.asset("base.css") + page.asset("products.css")
    template = page.environment().get_template("products.html")
    # Words that run backwards would deceive a reader of a page, too.
    return printable(
        template.render(
            found=found,
            style=Markup(style),  # noqa: S704 - our own file, allowed by its digest
            policy=f"default-src 'none'; style-src {page.digest(style)}; base-uri 'none'; form-action 'none'",
            signs=SIGNS,
            legend=LEGEND,
            tones={"pass": "passed", "fail": "failed", "none": "blocked"},
            meanings=[(mark, MARKS[mark]) for mark in used(found)],
            spans=[(name, len(list(same))) for name, same in groupby(column.name for column in found.columns)],
            facts=[(name, cells) for name, cells in _facts(found) if name not in ("verdict", "marks", "Kubernetes")],
            reasons=list(reasons(found)),
        )
    )


def used(found: Products) -> list[str]:
    """The marks that some column has."""
    return [mark for mark in MARKS if any(mark in column.marks for column in found.columns)]


def reasons(found: Products) -> Iterator[tuple[Row, str, str]]:
    """Everything that did not pass, by requirement and product, and why."""
    for row in found.rows:
        for column, outcome, reason in zip(found.columns, row.outcomes, row.reasons, strict=True):
            if reason and outcome in ("failed", "error", "blocked"):
                yield row, f"{column.name} {column.kubernetes}".strip(), reason


def _facts(found: Products) -> Iterator[tuple[str, list[str]]]:
    """What stands above the requirements, a cell for each column."""
    yield "verdict", [column.verdict for column in found.columns]
    yield "marks", [", ".join(column.marks) for column in found.columns]
    yield "Kubernetes", [column.kubernetes for column in found.columns]
    yield "Windows", [_windows(column) for column in found.columns]
    yield "run", [column.run_id for column in found.columns]
    yield "started", [column.started[:16].replace("T", " ") for column in found.columns]


def _windows(column: Column) -> str:
    return ", ".join(column.windows) or "?"


def _marked(column: Column) -> str:
    return f"  [{', '.join(column.marks)}]" if column.marks else ""


def _line(text: str) -> str:
    """Text of strangers that does not look like one more line."""
    return " ".join(text.split())


FORMS: dict[str, Callable[[Products], str]] = {
    "text": as_text,
    "markdown": as_markdown,
    "csv": as_csv,
    "html": as_html,
}

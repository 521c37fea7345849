"""A comparison as text, Markdown, CSV or a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from markupsafe import Markup

from winready.report import words
from winready.report.comparing import Comparison, Row, changed, tally
from winready.report.formats import escape, table
from winready.report.html import page
from winready.report.printable import printable

SIGNS = {"worse": "▼", "better": "▲", "changed": "~", "not judged": "·", "new": "+", "gone": "-", "same": "="}


def as_text(found: Comparison) -> str:
    """For a terminal: the two runs, then what changed, worst first."""
    lines = []
    for letter, side in (("A", found.a), ("B", found.b)):
        where = f"Kubernetes {side.version} at {side.cluster}" if side.version else "no cluster"
        run = "" if side.name == side.run_id else f" (run {side.run_id})"
        lines.append(f"{letter}  {side.name}{run}: {side.verdict}, {where}, Windows {', '.join(side.builds) or '-'}")
    lines += [f"note: {note}" for note in found.notes]
    lines += ["", ", ".join(f"{count} {name}" for name, count in found.counts) or "nothing to compare"]
    lines += _lines(found.rows)
    for name, rows in found.advisory:
        lines += ["", f"{name}, which the verdict does not look at: {_tally(rows)}", *_lines(rows)]
    return printable("\n".join(lines) + "\n")


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    for row in changed(rows):
        (_, before), (_, after) = row.sides
        yield f"{SIGNS[row.change]} {row.id:<48} {before} -> {after}"
        yield from (f"    {text}" for text in _why(row))


def _tally(rows: Sequence[Row]) -> str:
    return ", ".join(f"{count} {name}" for name, count in tally(rows))


def _why(row: Row) -> Iterator[str]:
    if row.reason_before and row.reason_before != row.reason_after:
        yield f"A: {row.reason_before}"
    if row.reason_after:
        yield f"B: {row.reason_after}"
    for sign, probes in (("only in A", row.vanished), ("only in B", row.appeared)):
        for text in probes[:5]:
            yield f"{sign}: {text}"
        if len(probes) > 5:
            yield f"{sign}: and {len(probes) - 5} more"


def as_markdown(found: Comparison) -> str:
    """A table that can be published."""
    a, b = escape(found.a.name), escape(found.b.name)
    lines = [
        f"## {a} and {b}",
        "",
        f"| | {a} | {b} |",
        "|---|---|---|",
        f"| verdict | {escape(found.a.verdict)} | {escape(found.b.verdict)} |",
        f"| Kubernetes | {escape(found.a.version)} | {escape(found.b.version)} |",
        f"| Windows | {escape(', '.join(found.a.builds))} | {escape(', '.join(found.b.builds))} |",
        "",
        *(f"Note: {escape(note)}." for note in found.notes),
        "",
        *_markdown_table("requirement", found, found.rows),
        "",
    ]
    for name, rows in found.advisory:
        summary = f"**{name.capitalize()}:** {_tally(rows)}. Advisory, not part of the verdict."
        lines += [summary, "", *_markdown_table(name.removesuffix("s"), found, rows), ""]
    return "\n".join(lines)


def _markdown_table(thing: str, found: Comparison, rows: Sequence[Row]) -> Iterator[str]:
    yield f"| change | {thing} | {escape(found.a.name)} | {escape(found.b.name)} | why |"
    yield "|---|---|---|---|---|"
    for row in rows:
        reasons = ((found.a.name, row.reason_before), (found.b.name, row.reason_after))
        why = "; ".join(f"{name}: {reason}" for name, reason in reasons if reason)
        cells = (f"{SIGNS[row.change]} {row.change}", row.id, *(_outcome(*side) for side in row.sides), why)
        yield f"| {' | '.join(escape(cell) for cell in cells)} |"


def _outcome(name: str, text: str) -> str:
    return f"{words.MARKS[name]} {text}" if name else text


def as_csv(found: Comparison) -> str:
    """For a spreadsheet; features and workloads come after the requirements."""
    columns = (
        "requirement", "change", found.a.name, found.b.name, "reason A", "reason B", "seconds A", "seconds B", "kind",
        "seen A", "seen B",
    )  # fmt: skip
    rows = [
        (row.id, row.change, row.before, row.after, row.reason_before, row.reason_after, row.seconds_before,
         row.seconds_after, kind, row.sides[0][1], row.sides[1][1])
        for kind, of_kind in (("requirement", found.rows), ("feature", found.features), ("workload", found.workloads))
        for row in of_kind
    ]  # fmt: skip
    return table(columns, rows)


def as_html(found: Comparison, *, home: str = "", runs: tuple[str, str] = ("", "")) -> str:
    """One self-contained page. ``home``: where it is a part of; ``runs``: what the two are called there."""
    style = page.asset("base.css") + page.asset("compare.css")
    policy = f"default-src 'none'; style-src {page.digest(style)}; base-uri 'none'; form-action 'none'"
    parts = [("requirements", found.rows), *found.advisory]
    template = page.environment().get_template("compare.html")
    return template.render(
        found=found,
        parts=[(name, tally(rows), *_apart(rows)) for name, rows in parts],
        style=Markup(style),  # noqa: S704 - our own file, allowed by its digest
        policy=policy,
        signs=SIGNS,
        home=home,
        runs=runs,
    )


def _apart(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """What is worth a word, and the rest."""
    worth = changed(rows)
    return worth, [row for row in rows if row not in worth]


FORMS: dict[str, Callable[[Comparison], str]] = {
    "text": as_text,
    "markdown": as_markdown,
    "csv": as_csv,
    "html": as_html,
}

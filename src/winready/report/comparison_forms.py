"""A comparison as text, Markdown, CSV or a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from markupsafe import Markup

from winready.report import words
from winready.report.comparing import Comparison, Row, changed
from winready.report.formats import escape, table
from winready.report.html import page
from winready.report.printable import printable

SIGNS = {"worse": "▼", "better": "▲", "changed": "~", "new": "+", "gone": "-", "same": "="}


def as_text(found: Comparison) -> str:
    """For a terminal: the two runs, then what changed, worst first."""
    lines = []
    for letter, side in (("A", found.a), ("B", found.b)):
        where = f"Kubernetes {side.version} at {side.cluster}" if side.version else "no cluster"
        run = "" if side.name == side.run_id else f" (run {side.run_id})"
        lines.append(f"{letter}  {side.name}{run}: {side.verdict}, {where}, Windows {', '.join(side.builds) or '-'}")
    lines += [f"note: {note}" for note in found.notes]
    lines += ["", ", ".join(f"{count} {name}" for name, count in found.counts) or "nothing to compare"]
    for row in changed(found.rows):
        lines.append(
            f"{SIGNS[row.change]} {row.id:<48} {row.before or 'not selected'} -> {row.after or 'not selected'}"
        )
        lines += [f"    {text}" for text in _why(row)]
    return printable("\n".join(lines) + "\n")


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
    rows = [
        (SIGNS[row.change] + " " + row.change, row.id, _outcome(row.before), _outcome(row.after),
         "; ".join(filter(None, (row.reason_before and f"{found.a.name}: {row.reason_before}",
                                 row.reason_after and f"{found.b.name}: {row.reason_after}"))))
        for row in found.rows
    ]  # fmt: skip
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
        f"| change | requirement | {a} | {b} | why |",
        "|---|---|---|---|---|",
        *(f"| {' | '.join(escape(cell) for cell in row)} |" for row in rows),
        "",
    ]
    return "\n".join(lines)


def _outcome(name: str) -> str:
    return f"{words.MARKS[name]} {name}" if name else "not selected"


def as_csv(found: Comparison) -> str:
    """For a spreadsheet."""
    columns = ("requirement", "change", found.a.name, found.b.name, "reason A", "reason B", "seconds A", "seconds B")
    rows = [
        (row.id, row.change, row.before, row.after, row.reason_before, row.reason_after, row.seconds_before,
         row.seconds_after)
        for row in found.rows
    ]  # fmt: skip
    return table(columns, rows)


def as_html(found: Comparison, *, home: str = "") -> str:
    """One self-contained page."""
    style = page.asset("base.css") + page.asset("compare.css")
    policy = f"default-src 'none'; style-src {page.digest(style)}; base-uri 'none'; form-action 'none'"
    worth = changed(found.rows)
    template = page.environment().get_template("compare.html")
    return template.render(
        found=found,
        changed=worth,
        same=[row for row in found.rows if row not in worth],
        style=Markup(style),  # noqa: S704 - our own file, allowed by its digest
        policy=policy,
        signs=SIGNS,
        home=home,
    )


FORMS: dict[str, Callable[[Comparison], str]] = {
    "text": as_text,
    "markdown": as_markdown,
    "csv": as_csv,
    "html": as_html,
}

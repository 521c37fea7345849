"""Findings for people: the place, the line itself, what happens and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from winready.lint.finding import Finding, Summary, Unreadable

_COLOURS = {"error": "31;1", "warning": "33;1", "info": "36;1", "path": "1", "rule": "2"}
_MARGIN = 160


def render(
    results: Iterable[Finding | Unreadable], summary: Summary, colour: bool, hidden: Callable[[], int]
) -> Iterator[str]:
    """One block per finding, then one line of counts."""

    def paint(text: str, style: str) -> str:
        return f"\x1b[{_COLOURS[style]}m{text}\x1b[0m" if colour else text

    for one in results:
        place = paint(f"{_plain(one.path)}:{one.line}:{one.column}", "path")
        if isinstance(one, Unreadable):
            yield f"{place}: {paint('unreadable', 'error')}: {_plain(one.message)}\n\n"
            continue
        whose = one.object + (f", container {one.container}" if one.container else "")
        yield f"{place}: {paint(one.severity, one.severity)}: {_plain(one.message)}\n"
        yield from _excerpt(one)
        yield f"  fix: {one.fix}\n"
        if len(one.outcomes) > 1:
            history = "; ".join(f"{outcome.versions} {outcome.effect} ({outcome.severity})" for outcome in one.outcomes)
            yield f"  versions: {history}\n"
        what = f"{_plain(whose)}, " if whose else ""
        yield f"  {paint(f'{what}{one.rule}, {_since(one)}', 'rule')}\n\n"
    yield _total(summary, hidden())


def _excerpt(one: Finding) -> Iterator[str]:
    line, column = one.excerpt.replace("\t", " "), one.column
    if column > _MARGIN:
        line, column = "..." + line[column - 40 :], 43
    line = _plain(line[:_MARGIN])
    number = str(one.line)
    yield f"  {number} | {line}\n"
    width = max(1, min(one.width, _MARGIN - column))
    yield f"  {' ' * len(number)} | {' ' * (column - 1)}{'^' * width}\n"


def _plain(text: str) -> str:
    """Without control characters, which a file could use to repaint the terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _since(one: Finding) -> str:
    return f"{one.since} to {one.until}" if one.until else f"since {one.since}"


def _total(summary: Summary, hidden: int) -> str:
    counts = summary.counts
    parts = [_count(counts["error"], "error"), _count(counts["warning"], "warning"), _count(counts["info"], "note")]
    text = f"{', '.join(parts)} in {_count(summary.files, 'file')} ({_count(summary.windows, 'Windows workload')})"
    if summary.unreadable:
        text += f", {summary.unreadable} unreadable"
    if summary.suppressed:
        text += f", {summary.suppressed} suppressed"
    if hidden:
        text += f"; {hidden} not shown (--severity info shows all)"
    return text + "\n"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

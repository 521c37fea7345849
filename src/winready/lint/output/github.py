"""Annotations of GitHub Actions: workflow commands, one line per finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from winready.lint.finding import Finding, Summary, Unreadable, from_root

_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def render(results: Iterable[Finding | Unreadable], summary: Summary) -> Iterator[str]:
    """``::error file=...,line=...::message``."""
    for one in results:
        place = f"file={_property(from_root(one.path))},line={one.line},col={one.column}"
        if isinstance(one, Unreadable):
            yield f"::error {place},title=unreadable::{_message(one.message)}\n"
        else:
            text = f"{one.object}: {one.message} Fix: {one.fix}" if one.kind else f"{one.message} Fix: {one.fix}"
            yield f"::{_COMMANDS[one.severity]} {place},title={_property(one.rule)}::{_message(text)}\n"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")

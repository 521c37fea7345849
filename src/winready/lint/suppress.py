"""Findings that the manifest or the configuration silences, always by rule and with a reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from winready.lint import catalog
from winready.lint.files import excluded
from winready.lint.objects import Object, mapping
from winready.spec.yamlfile import Text

ANNOTATION = "lint-ignore.winready.io/"

_COMMENT = re.compile(r"(?:^|\s)#\s*winready:ignore\b(.*)")
_RULES = re.compile(r"([a-z0-9-]+(?:\s*,\s*[a-z0-9-]+)*)(?:\s+(.*))?")


@dataclass(frozen=True, slots=True)
class Ignore:
    """One entry of the configuration file."""

    rule: str
    reason: str
    paths: tuple[str, ...] = ()


def reason(rule: str, object: Object, template: object, file: str, line: int, ignores: Sequence[Ignore]) -> str:
    """Why this finding is silenced, or nothing."""
    for entry in ignores:
        if entry.rule == rule and (not entry.paths or excluded(file, entry.paths)):
            return entry.reason
    for found in (object.annotations, mapping(template, "metadata", "annotations")):
        if ANNOTATION + rule in found:
            return str(found[ANNOTATION + rule] or "").strip()
    text = object.document.text
    return _by_comment(rule, text, line) if text.has("winready:ignore") else ""


def _by_comment(rule: str, text: Text, line: int) -> str:
    number = line
    while number > 0:
        rules, why = parse(text.line(number))
        if rule in rules and why:
            return why
        number -= 1
        if not text.line(number).lstrip().startswith("#"):
            return ""
    return ""


def parse(line: str) -> tuple[list[str], str]:
    """The rules and the reason of an ignore comment on this line."""
    if "winready:ignore" not in line or (match := _COMMENT.search(line)) is None:
        return [], ""
    parts = _RULES.fullmatch(match[1].strip())
    return ([one.strip() for one in parts[1].split(",")], parts[2] or "") if parts else ([], "")


def incomplete_comments(text: Text) -> Iterator[tuple[int, int, str]]:
    """Ignore comments that silence nothing: their offset, width and what is missing."""
    for match in re.finditer(r"#\s*winready:ignore\b[^\n]*", text.content):
        line = text.line(text.position(match.start())[0])
        rules, why = parse(line)
        if problem := _problem(rules, why):
            yield match.start(), len(match[0].rstrip()), problem


def incomplete_annotations(object: Object) -> Iterator[tuple[str, str]]:
    """Ignore annotations that silence nothing: their key and what is missing."""
    for key, value in object.annotations.items():
        if key.startswith(ANNOTATION) and (problem := _problem([key.removeprefix(ANNOTATION)], str(value or ""))):
            yield key, problem


def _problem(rules: list[str], why: str) -> str:
    if not rules:
        return "it names no rule"
    unknown = [rule for rule in rules if rule not in catalog.load()]
    if unknown:
        return f"there is no rule {unknown[0]}"
    return "" if why.strip() else "it gives no reason"

"""Changing a document in its text: keys removed, added, renamed, and not one other character touched.

Every operation knows how to change the parsed value as well. The changed text is parsed again and must give exactly
the changed value; a text that does not (anchors, odd layouts) is left alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from winready.spec.yamlfile import Document, Map, Path, Seq, YamlError, read, resolve


class CannotEdit(Exception):
    """The layout of the text does not allow this change."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Text between two offsets, and what takes its place."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Remove:
    """Take a key out."""

    path: Path


@dataclass(frozen=True, slots=True)
class Put:
    """Add a key to a mapping, or an item to a list (``key`` empty)."""

    path: Path
    key: str
    value: Any


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Replace a plain value."""

    path: Path
    value: Any


@dataclass(frozen=True, slots=True)
class Rename:
    """Replace a key."""

    path: Path
    key: str


Operation = Remove | Put | Rewrite | Rename


def apply(content: str, changes: Sequence[tuple[int, Operation]]) -> str:
    """The text with all operations done (each for the document of that number), proven by reading it again."""
    documents = _documents(content)
    newline = "\r\n" if "\r\n" in content else "\n"
    edits: list[Edit] = []
    expected = [_plain(document.value) for document in documents]
    for number in sorted({number for number, _ in changes}):
        operations = _whole_mappings(documents[number], [one for at, one in changes if at == number])
        edits += [_edit(documents[number], one, newline) for one in operations]
        for one in operations:
            _change(expected[number], one)
    changed = _splice(content, edits)
    if [_plain(document.value) for document in _documents(changed)] != expected:
        raise CannotEdit("the layout of the file does not allow it")
    return changed


def _documents(content: str) -> list[Document]:
    found = list(read(content))
    for one in found:
        if isinstance(one, YamlError):
            raise CannotEdit(f"line {one.line}: {one.problem}")
    return [one for one in found if isinstance(one, Document)]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value


def _splice(content: str, edits: Iterable[Edit]) -> str:
    ordered = sorted(edits, key=lambda edit: (edit.start, edit.end))
    pieces, at = [], 0
    for edit in ordered:
        if edit.start < at:
            raise CannotEdit("two repairs touch the same text")
        pieces += [content[at : edit.start], edit.text]
        at = edit.end
    return "".join([*pieces, content[at:]])


def _whole_mappings(document: Document, operations: list[Operation]) -> list[Operation]:
    """A mapping that would lose its last key goes as a whole."""
    removed = {one.path for one in operations if isinstance(one, Remove)}
    touched = {one.path for one in operations if isinstance(one, Put)}
    again = True
    while again:
        again = False
        for parent in {path[:-1] for path in removed}:
            value = _at(document.value, parent)
            if not isinstance(value, Map) or not parent or not isinstance(parent[-1], str) or parent in touched:
                continue
            if all((*parent, key) in removed for key in value):
                removed = {path for path in removed if path[: len(parent)] != parent} | {parent}
                again = True
                break
    others = [one for one in operations if not isinstance(one, Remove)]
    inside = [path for path in removed if not any(path[:length] in removed for length in range(1, len(path)))]
    return [*(Remove(path) for path in sorted(inside, key=str)), *others]


def _at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def _change(value: Any, operation: Operation) -> None:
    match operation:
        case Remove(path):
            del _at(value, path[:-1])[path[-1]]
        case Put(path, "", item):
            _at(value, path).insert(0, deepcopy(item))
        case Put(path, key, item):
            _at(value, path)[key] = deepcopy(item)
        case Rewrite(path, item):
            _at(value, path[:-1])[path[-1]] = item
        case Rename(path, key):
            parent = _at(value, path[:-1])
            parent[key] = parent.pop(path[-1])


def _edit(document: Document, operation: Operation, newline: str) -> Edit:
    match operation:
        case Remove(path):
            return _remove(document, path)
        case Put(path, key, value):
            return _put(document, path, key, value, newline)
        case Rewrite(path, value):
            entry = _entry(document, path)
            return Edit(entry.value, entry.value_end, json.dumps(value) if isinstance(value, bool) else str(value))
        case Rename(path, key):
            entry = _entry(document, path)
            old = document.text.content[entry.key : entry.key_end]
            return Edit(entry.key, entry.key_end, old.replace(str(path[-1]), key))


def _entry(document: Document, path: Path) -> Any:
    entry = document.entry(path)
    if entry is None:
        raise CannotEdit("the field is not there")
    return entry


def _remove(document: Document, path: Path) -> Edit:
    content, entry = document.text.content, _entry(document, path)
    parent = _at(document.value, path[:-1])
    if not isinstance(parent, Map):
        raise CannotEdit("only keys can be removed")
    order = sorted(parent.entries.values(), key=lambda one: one.key)
    place = order.index(entry)
    if parent.flow:
        if place + 1 < len(order):
            return Edit(entry.key, order[place + 1].key, "")
        return Edit(order[place - 1].value_end if place else entry.key, entry.value_end, "")
    line_start = content.rfind("\n", 0, entry.key) + 1
    if content[line_start : entry.key].strip():
        return _remove_first_of_item(content, order, place)
    end = _content_end(content, _at(document.value, path), entry.value_end)
    line_end = content.find("\n", end)
    return Edit(line_start, len(content) if line_end < 0 else line_end + 1, "")


def _remove_first_of_item(content: str, order: Sequence[Any], place: int) -> Edit:
    """The key stands behind the dash of a list item: the next key takes its place."""
    if place or len(order) < 2:
        raise CannotEdit("the field shares its line with another")
    following = order[1].key
    if "#" in content[order[0].value_end : following]:
        raise CannotEdit("a comment stands in the way")
    return Edit(order[0].key, following, "")


def _content_end(content: str, value: Any, end: int) -> int:
    """Where a value really ends: block collections and block texts are said to end where the next token begins."""
    while isinstance(value, Map | Seq) and not value.flow and value:
        key: Any
        if isinstance(value, Map):
            key, last = max(value.entries.items(), key=lambda pair: pair[1].value_end)
        else:
            key, last = len(value) - 1, value.entries[-1]
        value, end = value[key], last.value_end
    while end > 0 and content[end - 1] in "\r\n":
        end -= 1
    return end


def _put(document: Document, path: Path, key: str, value: Any, newline: str) -> Edit:
    content, target = document.text.content, _at(document.value, path)
    if not isinstance(target, Map if key else Seq):
        raise CannotEdit("what stands there is neither a mapping nor a list")
    if target.flow:
        text = json.dumps(value) if not key else f"{json.dumps(key)}: {json.dumps(value)}"
        return Edit(target.start + 1, target.start + 1, f"{text}, " if target else text)
    entries = list(target.entries.values()) if isinstance(target, Map) else target.entries
    first = min(entry.key for entry in entries)
    line_start = content.rfind("\n", 0, first) + 1
    lead = content[line_start:first]
    if isinstance(target, Seq):
        dash = re.fullmatch(r"(\s*)-(\s+)", lead)
        if dash is None:
            raise CannotEdit("the list shares its line with something else")
        indent, lines = dash[1], _block(value)
        lines = [f"-{dash[2]}{lines[0]}", *(" " * (1 + len(dash[2])) + line for line in lines[1:])]
    else:
        if lead.strip():
            raise CannotEdit("the mapping shares its line with something else")
        indent, lines = lead, _block({key: value})
    text = "".join(f"{indent}{line}{newline}" for line in lines)
    return Edit(line_start, line_start, text)


def _block(value: Any) -> list[str]:
    """A small mapping in block style; lists are indented below their key."""
    lines: list[str] = []
    for key, one in value.items():
        if isinstance(one, dict):
            lines += [f"{key}:", *(f"  {line}" for line in _block(one))]
        elif isinstance(one, list):
            lines.append(f"{key}:")
            for item in one:
                first, *rest = _block(item)
                lines += [f"  - {first}", *(f"    {line}" for line in rest)]
        else:
            lines.append(f"{key}: {_scalar(one)}")
    return lines


def _scalar(value: Any) -> str:
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w./-]*", value):
        return value if isinstance(resolve(value), str) else json.dumps(value)
    return json.dumps(value)

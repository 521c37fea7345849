"""How values look on the screen."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

from winready_sandbox.machine.errors import OutOfMemory
from winready_sandbox.programs.powershell.values import MOST_ITEMS, Hash, NetArray, PSObject, flat, to_text


def lines(values: list[Any]) -> list[str]:
    """The lines that a list of values prints: texts as they are, objects as tables or lists."""
    out: list[str] = []
    pending: list[PSObject] = []

    def flush() -> None:
        if pending:
            out.extend(formatted(pending))
            pending.clear()

    for value in values:
        item = _as_object(value)
        if isinstance(item, PSObject) and item.text is None and item.properties:
            if pending and pending[-1].type_name != item.type_name:
                flush()
            pending.append(item)
            continue
        flush()
        out += text_lines(item)
    flush()
    return out


def _as_object(value: Any) -> Any:
    if not isinstance(value, Hash):
        return value
    return PSObject("Entries", {"Entries": value}) if len(value) else None


def text_lines(value: Any) -> list[str]:
    """A single value without properties."""
    if value is None:
        return []
    if isinstance(value, list | range):
        return lines(list(flat(value)))
    if isinstance(value, NetArray):
        return [to_text(value.items.get(index, 0)) for index in range(min(value.length, 4096))]
    return to_text(value).split("\n")


def formatted(items: list[PSObject]) -> list[str]:
    """Objects of one kind: a table if few properties matter, else a list."""
    if items[0].type_name == "Entries":
        pairs = [pair for item in items for pair in item.properties["Entries"].items()]
        return table([PSObject("Entry", {"Name": key, "Value": value}) for key, value in pairs], ["Name", "Value"], 30)
    shown = items[0].shown or tuple(items[0].properties)
    return table(items, list(shown)) if len(shown) <= 4 or items[0].shown else as_list_view(items, list(shown))


def table(items: list[PSObject], columns: list[str], least: int = 0) -> list[str]:
    """Format-Table."""
    rows = [[_cell(item.get(column)) for column in columns] for item in items]
    numeric = [all(isinstance(item.get(column), int | float) for item in items) for column in columns]
    widths = [
        max(len(column), least if index == 0 else 0, *(len(row[index]) for row in rows))
        for index, column in enumerate(columns)
    ]

    def line(cells: list[str]) -> str:
        padded = [
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(cells, widths, numeric, strict=True)
        ]
        return " ".join(padded).rstrip()

    rule = ["-" * len(column) for column in columns]
    return ["", line(columns), line(rule), *(line(row) for row in rows), "", ""]


def as_list_view(items: list[PSObject], columns: list[str]) -> list[str]:
    """Format-List."""
    width = max(len(column) for column in columns)
    out = [""]
    for item in items:
        out += ["", *(f"{column.ljust(width)} : {_cell(item.get(column))}" for column in columns)]
    return [*out, "", "", ""]


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return "{" + ", ".join(to_text(item) for item in flat(value)) + "}"
    if isinstance(value, Hash):
        return "{" + ", ".join(to_text(key) for key, _ in value.items()) + "}"
    return to_text(value)


def to_json(value: Any, *, compress: bool, depth: int = 2, desktop: bool = False) -> str:
    """ConvertTo-Json; Windows PowerShell indents more widely than Core."""
    left = itertools.count(MOST_ITEMS, -1)
    plain = _plain(value, depth, left)
    if compress:
        return json.dumps(plain, separators=(",", ":"))
    text = json.dumps(plain, indent=4 if desktop else 2).replace("\n", "\r\n")
    return re.sub(r'^(\s*"(?:[^"\\]|\\.)*": )', r"\1 ", text, flags=re.MULTILINE) if desktop else text


def _plain(value: Any, depth: int, left: Iterator[int]) -> Any:
    if next(left) < 0:
        raise OutOfMemory
    if isinstance(value, PSObject):
        if value.text is not None and not value.shown:
            return value.text
        if depth < 0:
            return to_text(value)
        return {name: _plain(each, depth - 1, left) for name, each in value.properties.items()}
    if isinstance(value, Hash):
        if depth < 0:
            return to_text(value)
        return {to_text(name): _plain(each, depth - 1, left) for name, each in value.items()}
    if isinstance(value, list | range):
        return [_plain(each, depth - 1, left) for each in value] if depth >= 0 else to_text(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return to_text(value)

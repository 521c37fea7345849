"""What tables are made of: columns, ages, lists that fit into a cell."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from winready_sandbox.api.objects import Object, parse_timestamp
from winready_sandbox.api.resources import Resource
from winready_sandbox.api.selectors import selector_text
from winready_sandbox.clock import utc_now

NONE = "<none>"
UNKNOWN = "<unknown>"


@dataclass(frozen=True)
class Column:
    """One column; those with a priority are shown only by ``-o wide``."""

    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0

    def definition(self) -> Object:
        """As a ``TableColumnDefinition``."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": "",
            "priority": self.priority,
        }


@dataclass(frozen=True)
class Layout:
    """The columns of a kind and how an object fills them."""

    columns: tuple[Column, ...]
    cells: Callable[[Object], list[Any]]


def plain(name: str) -> Column:
    """A column of text; the name of an object is marked as such."""
    return Column(name, format="name" if name == "Name" else "")


def columns(text: str) -> tuple[Column, ...]:
    """Columns from a line such as ``Name | Data# | Default? | Created At@ | IP+`` (number, boolean, date, wide)."""
    made = []
    for word in (each.strip() for each in text.split("|")):
        name = word.rstrip("#+?@")
        kind = {"#": "integer", "?": "boolean", "@": "date"}.get(word[-1], "string")
        form = "name" if name == "Name" else ""
        made.append(Column(name, kind, form, 1 if word.endswith("+") else 0))
    return tuple(made)


def name_of(obj: Object) -> str:
    """The object's name."""
    return str(obj["metadata"].get("name", ""))


def age(obj: Object) -> str:
    """How old an object is."""
    return since(obj["metadata"].get("creationTimestamp"))


def since(text: str | None) -> str:
    """The time since a timestamp, in as few units as make sense."""
    moment = parse_timestamp(text)
    return UNKNOWN if moment is None else duration((utc_now() - moment).total_seconds())


def duration(seconds: float) -> str:
    """A span as Kubernetes writes it for people: ``45s``, ``5m30s``, ``3h``, ``2d4h``."""
    if seconds < -1:
        return "<invalid>"
    total = max(int(seconds), 0)
    minutes, hours, days = total // 60, total // 3600, total // 86400
    if total < 120:
        return f"{total}s"
    if minutes < 10:
        return f"{minutes}m{total % 60}s" if total % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if days < 365 * 2:
        return f"{days}d"
    years, rest = divmod(days, 365)
    return f"{years}y{rest}d" if years < 8 and rest else f"{years}y"


def joined(items: Any, empty: str = NONE) -> str:
    """A list in one cell."""
    return ",".join(str(item) for item in items or ()) or empty


def labels_text(labels: dict[str, str] | None) -> str:
    """Labels in one cell."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def selector_cell(selector: Object | None) -> str:
    """A label selector in one cell."""
    return selector_text(selector) or NONE


def container_cells(template: Object | None) -> list[str]:
    """The names and images of the containers of a pod template."""
    containers = ((template or {}).get("spec") or {}).get("containers") or []
    names = ",".join(container.get("name", "") for container in containers)
    return [names, ",".join(container.get("image", "") for container in containers)]


def part(obj: Object, *path: str) -> Any:
    """A nested value, None when any step is absent."""
    value: Any = obj
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def custom(resource: Resource) -> Layout:
    """The layout of a custom resource, from its definition's printer columns."""
    listed = [column for column in resource.columns if column.get("jsonPath") != ".metadata.creationTimestamp"]
    aged = len(listed) < len(resource.columns) or not resource.columns
    shown = [
        Column(column["name"], column.get("type", "string"), column.get("format", ""), column.get("priority", 0))
        for column in listed
    ]

    def cells(obj: Object) -> list[Any]:
        values = [_column_value(obj, column) for column in listed]
        return [name_of(obj), *values, *([age(obj)] if aged else [])]

    return Layout((plain("Name"), *shown, *((plain("Age"),) if aged else ())), cells)


def _column_value(obj: Object, column: Object) -> Any:
    value: Any = obj
    for key in re.findall(r"\.([^.\[\]]+)|\[(\d+)\]", column.get("jsonPath", "")):
        if key[1]:
            value = value[int(key[1])] if isinstance(value, list) and int(key[1]) < len(value) else None
        else:
            value = value.get(key[0]) if isinstance(value, dict) else None
    return since(value) if column.get("type") == "date" else value

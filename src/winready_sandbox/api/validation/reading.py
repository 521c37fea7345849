"""Reading objects that nobody has checked yet: what has the wrong shape reads as absent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from winready_sandbox.api.pod_resources import children

Object = dict[str, Any]

__all__ = ["Object", "children", "containers_of", "items", "section"]


def section(obj: Object, field: str) -> Object:
    """The map in a field, empty if there is none."""
    value = obj.get(field)
    return value if isinstance(value, dict) else {}


def items(obj: Object, field: str) -> list[Any]:
    """The list in a field, empty if there is none."""
    value = obj.get(field)
    return value if isinstance(value, list) else []


def containers_of(spec: Object, path: str) -> Iterator[tuple[Object, str]]:
    """All containers of a pod with their paths, init containers first."""
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for i, container in enumerate(children(spec, kind)):
            yield container, f"{path}.{kind}[{i}]"

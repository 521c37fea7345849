"""OpenAPI documents made from fields, in both forms that API servers serve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NUMBERS = {"int32": "int32", "int64": "int64"}
SCALARS = ("string", "boolean")


def document_v2(fields: Mapping[str, str], version: str = "v1.36.3") -> dict[str, Any]:
    """As ``/openapi/v2``."""
    definitions = _definitions(fields, "#/definitions/", wrapped=False)
    return {"swagger": "2.0", "info": {"title": "Kubernetes", "version": version}, "definitions": definitions}


def document_v3(fields: Mapping[str, str], version: str = "v1.36.3") -> dict[str, Any]:
    """As ``/openapi/v3/api/v1``, where a pointer stands in a list of its own."""
    schemas = _definitions(fields, "#/components/schemas/", wrapped=True)
    return {"openapi": "3.0.0", "info": {"version": version}, "paths": {}, "components": {"schemas": schemas}}


def _definitions(fields: Mapping[str, str], prefix: str, wrapped: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, kind in fields.items():
        owner, _, field = name.rpartition(".")
        own = found.setdefault(f"io.k8s.api.core.v1.{owner}", {"type": "object", "properties": {}})
        own["properties"][field] = _schema(kind, prefix, wrapped)
        leaf = kind.replace("map[string]", "").replace("[]", "")
        if leaf not in (*NUMBERS, *SCALARS):
            found.setdefault(f"io.k8s.api.core.v1.{leaf}", {"type": "object", "properties": {}})
    return found


def _schema(kind: str, prefix: str, wrapped: bool) -> dict[str, Any]:
    if kind.startswith("[]"):
        return {"type": "array", "items": _schema(kind[2:], prefix, wrapped)}
    if kind.startswith("map[string]"):
        below = _schema(kind.removeprefix("map[string]"), prefix, wrapped=False)
        return {"type": "object", "additionalProperties": below}
    if kind in NUMBERS:
        return {"type": "integer", "format": NUMBERS[kind]}
    if kind in SCALARS:
        return {"type": kind}
    pointer = {"$ref": f"{prefix}io.k8s.api.core.v1.{kind}"}
    return {"allOf": [pointer], "default": {}} if wrapped else pointer

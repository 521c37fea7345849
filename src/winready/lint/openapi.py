"""The fields of a pod template as an API server describes them: OpenAPI v2 or v3 in, ``Type.field`` and types out.

Fields are named by the type that has them, not by their path: ``Container.env`` is one field, wherever containers
stand. That is also what keeps types that contain themselves from having no end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from winready.spec.versions import Version

ROOT = "PodTemplateSpec"
MOST_FIELDS = 20_000
"""Forty times what Kubernetes has; a document that names more is not one of its."""
LONGEST_NAME = 200
MOST_VALUES = 1_000_000
"""Keys of a whole document; 1.36 has 41 thousand, a cluster with hundreds of custom resources some hundred thousand."""
LARGEST_TYPE = 1 << 20
_DEEPEST = 16


class OpenApiError(ValueError):
    """A document that cannot be used; the message begins with a verb, whoever shows it names the file."""


@dataclass(frozen=True, slots=True)
class Described:
    """What one document says about pods."""

    version: str
    """As the document gives it, such as ``1.36``; empty where it gives none."""
    fields: Mapping[str, str]
    """``PodSpec.containers`` -> ``[]Container``, sorted by name."""


class _Schema(msgspec.Struct, frozen=True):
    ref: str | None = msgspec.field(default=None, name="$ref")
    type: str | list[str] | None = None
    format: str | None = None
    items: _Schema | None = None
    properties: dict[str, _Schema] | None = None
    additional: _Schema | bool | None = msgspec.field(default=None, name="additionalProperties")
    all_of: list[_Schema] | None = msgspec.field(default=None, name="allOf")

    @property
    def named(self) -> str | None:
        """The name of the type that it points to; version 3 wraps the pointer to give it a default."""
        pointers = [self.ref, *(part.ref for part in self.all_of or [])]
        return next((ref.rpartition("/")[2] for ref in pointers if ref), None)


class _Info(msgspec.Struct, frozen=True):
    version: str = ""


class _Components(msgspec.Struct, frozen=True):
    schemas: dict[str, msgspec.Raw] = {}


class _Document(msgspec.Struct, frozen=True):
    info: _Info = _Info()
    definitions: dict[str, msgspec.Raw] = {}
    components: _Components = _Components()
    paths: msgspec.Raw = msgspec.Raw(b"{}")


def read(data: bytes) -> Described:
    """The pod-level fields of a document as served at ``/openapi/v2`` or ``/openapi/v3/api/v1``."""
    if max(data.count(b'":'), data.count(b"{")) > MOST_VALUES:
        raise OpenApiError(f"has more than {MOST_VALUES:,} values; no API server describes that much")
    try:
        document = msgspec.json.decode(data, type=_Document)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise OpenApiError(f"is no OpenAPI document: {_short(error)}") from None
    definitions = document.definitions or document.components.schemas
    # Type names end alike in several groups; the pod template that counts is the one of the core group.
    roots = [name for name in definitions if name.rpartition(".")[2] == ROOT]
    if not roots:
        raise OpenApiError(f"describes no {ROOT}{_hint(document)}")
    reader = _Reader(definitions)
    reader.follow(min(roots, key=lambda name: ".core." not in name))
    if not reader.fields:
        raise OpenApiError(f"describes a {ROOT} without fields")
    return Described(_version(document.info.version), dict(sorted(reader.fields.items())))


def places(fields: Mapping[str, str]) -> Mapping[str, str]:
    """Where each field stands in a pod, by the shortest path; a type that occurs in many places has many."""
    by_type: dict[str, list[str]] = {}
    for name in fields:
        by_type.setdefault(name.rpartition(".")[0], []).append(name)
    found: dict[str, str] = {}
    ways = deque([(ROOT, "")])
    seen = {ROOT}
    while ways:
        kind, way = ways.popleft()
        for name in by_type.get(kind, ()):
            step = name.rpartition(".")[2]
            found[name] = place = f"{way}.{step}" if way else step
            suffix = "[*]" if fields[name].startswith("[]") else ""
            # A type without a name of its own is named by its place.
            below = name if inner(fields[name]) == "object" else inner(fields[name])
            if below not in seen:
                seen.add(below)
                ways.append((below, place + suffix))
    return found


def inner(kind: str) -> str:
    """The type of the items of a list or a map, or the type itself."""
    while kind.startswith(("[]", "map[string]")):
        kind = kind.removeprefix("[]").removeprefix("map[string]")
    return kind


class _Reader:
    """Collects fields, type by type, each type once."""

    def __init__(self, definitions: Mapping[str, msgspec.Raw]) -> None:
        self.definitions = definitions
        self.fields: dict[str, str] = {}
        self._titles: dict[str, str] = {}
        self._used: set[str] = set()
        self._open: deque[tuple[str, _Schema | str]] = deque()
        """Types to read yet, by name: of a large document only one is held at a time."""

    def follow(self, root: str) -> None:
        """Read everything that is reachable from a definition."""
        self._title(root)
        while self._open:
            title, found = self._open.popleft()
            schema = self._decoded(found) if isinstance(found, str) else found
            for name, part in _properties(schema):
                if not 0 < len(name) <= LONGEST_NAME:
                    raise OpenApiError(f"has a field in {title} whose name has {len(name)} characters")
                self.fields[f"{title}.{name}"] = self._type(f"{title}.{name}", part, 0)
                if len(self.fields) > MOST_FIELDS:
                    raise OpenApiError(f"describes more than {MOST_FIELDS:,} fields of pods")

    def _type(self, place: str, schema: _Schema, depth: int) -> str:
        if depth > _DEEPEST:
            raise OpenApiError(f"nests lists deeper than {_DEEPEST} levels at {place}")
        if name := schema.named:
            return self._title(name, place)
        if schema.items is not None:
            return "[]" + self._type(place, schema.items, depth + 1)
        if isinstance(schema.additional, _Schema):
            return "map[string]" + self._type(place, schema.additional, depth + 1)
        if schema.properties:
            if place.count(".") > _DEEPEST:
                raise OpenApiError(f"nests types deeper than {_DEEPEST} levels at {place[:LONGEST_NAME]}")
            self._open.append((place, schema))
            return "object"
        kind = schema.type[0] if isinstance(schema.type, list) and schema.type else schema.type
        words = schema.format if kind in ("integer", "number") and schema.format else kind
        return str(words or "any")[:LONGEST_NAME]

    def _title(self, name: str, place: str = "") -> str:
        """The short name of a type, whose fields are read in their turn."""
        if name in self._titles:
            return self._titles[name]
        if name not in self.definitions:
            raise OpenApiError(f"lacks the type {name[:LONGEST_NAME]!r} that {place} has; is it whole?")
        if len(name) > LONGEST_NAME:
            raise OpenApiError(f"has a type at {place} whose name has {len(name)} characters")
        short = name.rpartition(".")[2]
        # Two groups may have types of one name; the second keeps its full one.
        title = name if not short or short in self._used else short
        self._titles[name] = title
        self._used.add(title)
        self._open.append((title, name))
        return title

    def _decoded(self, name: str) -> _Schema:
        if len(bytes(self.definitions[name])) > LARGEST_TYPE:
            raise OpenApiError(f"needs more than {LARGEST_TYPE >> 20} MiB for the type {name[:LONGEST_NAME]!r}")
        try:
            return msgspec.json.decode(self.definitions[name], type=_Schema)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise OpenApiError(f"describes {name[:LONGEST_NAME]!r} in a way that is none: {_short(error)}") from None


def _properties(schema: _Schema) -> Iterator[tuple[str, _Schema]]:
    yield from (schema.properties or {}).items()
    for part in schema.all_of or []:
        yield from (part.properties or {}).items()


def _hint(document: _Document) -> str:
    paths = bytes(document.paths)
    if b'"serverRelativeURL"' in paths:
        return ": it is the index; save /openapi/v3/api/v1 or /openapi/v2"
    if document.components.schemas or paths != b"{}":
        return ": it is that of another group; save /openapi/v3/api/v1 or /openapi/v2"
    return ": save what 'kubectl get --raw /openapi/v2' prints"


def _version(text: str) -> str:
    try:
        Version.parse(text)
    except ValueError:
        return ""
    return text.removeprefix("v")


def _short(error: Exception) -> str:
    return "it is nested too deep" if isinstance(error, RecursionError) else str(error)[:200]

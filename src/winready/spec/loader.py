"""Loading a specification: the one in the package, or files that somebody writes, with every mistake at its line."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from winready.spec import yamlfile
from winready.spec.mistakes import Finding, Mistake, check_shape, nearest
from winready.spec.model import Document, Specification
from winready.spec.versions import VersionRange

_ID = re.compile(r"[a-z]+(\.[a-z0-9]+(-[a-z0-9]+)*)+")


class SpecificationError(Exception):
    """A specification file with mistakes."""

    def __init__(self, mistakes: list[Mistake]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = mistakes


@functools.cache
def load_standard() -> Specification:
    """The standard that this version of winready implements."""
    data = resources.files("winready.spec").joinpath("standard.yaml").read_bytes()
    return parse(data, "standard.yaml")


def load_file(path: Path) -> Specification:
    """A specification from a file."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SpecificationError([Mistake(str(path), 1, 1, f"cannot be read: {error.strerror}")]) from None
    return parse(data, str(path))


def parse(data: bytes, name: str) -> Specification:
    """A specification from its text; raises `SpecificationError` with all mistakes."""
    try:
        documents = list(yamlfile.read(yamlfile.decode(data)))
    except yamlfile.YamlError as error:
        raise SpecificationError([Mistake(name, error.line, error.column, error.problem)]) from None
    broken = [item for item in documents if isinstance(item, yamlfile.YamlError)]
    if broken:
        raise SpecificationError([Mistake(name, item.line, item.column, item.problem) for item in broken])
    readable = [item for item in documents if isinstance(item, yamlfile.Document)]
    if len(readable) != 1:
        message = f"expected one document, found {len(readable)}"
        raise SpecificationError([Mistake(name, 1, 1, message)])
    source = readable[0]
    mistakes = [
        Mistake(name, *source.text.position(offset), f"the key {key!r} stands here a second time")
        for key, offset in source.duplicates
    ]
    for finding in [*check_shape(source.value, Document), *_cross_check(source.value)]:
        entry = source.nearest(finding.path)
        mistakes.append(Mistake(name, *source.text.position(entry.key), finding.message))
    if mistakes:
        raise SpecificationError(sorted(mistakes, key=lambda item: (item.line, item.column)))
    return Specification(msgspec.convert(source.value, Document), f"sha256:{hashlib.sha256(data).hexdigest()}")


def _cross_check(raw: Any) -> Iterator[Finding]:
    """What the shape alone cannot tell. Works on plain data, so that one wrong value hides no other mistake."""
    categories = [_text(item, "name") for item in _items(raw, "categories")]
    sources = list(raw["sources"]) if isinstance(raw, dict) and isinstance(raw.get("sources"), dict) else []
    seen: dict[str, str] = {}
    for index, item in enumerate(_items(raw, "requirements")):
        where: tuple[str | int, ...] = ("requirements", index)
        requirement_id = _text(item, "id")
        for field in ("id", "key"):
            value = _text(item, field)
            if value and value in seen:
                yield Finding((*where, field), f"{field} {value!r} is taken by {seen[value]}")
            seen.setdefault(value, requirement_id)
        if requirement_id and not _ID.fullmatch(requirement_id):
            hint = "write it like core.network.dns-internal"
            yield Finding((*where, "id"), f"{requirement_id!r} is no requirement id; {hint}")
        category = _text(item, "category")
        if category and category not in categories:
            hint = nearest(category, categories)
            yield Finding((*where, "category"), f"no category is called {category!r}{hint}")
        for number, source in enumerate(_items(item, "sources")):
            if isinstance(source, str) and source not in sources:
                yield Finding((*where, "sources", number), f"no source is called {source!r}{nearest(source, sources)}")
        try:
            VersionRange.parse(_text(item, "kubernetes") or ">=1.0")
        except ValueError as error:
            yield Finding((*where, "kubernetes"), str(error))
        if isinstance(item, dict) and "statement" in item and not _text(item, "statement").strip():
            yield Finding((*where, "statement"), "a requirement needs a statement")
    for section, field in (("categories", "name"), ("rules", "id")):
        names = [_text(item, field) for item in _items(raw, section)]
        for index, name in enumerate(names):
            if name and name in names[:index]:
                yield Finding((section, index, field), f"{field} {name!r} is there twice")


def _items(raw: Any, key: str) -> list[Any]:
    items = raw.get(key) if isinstance(raw, dict) else None
    return items if isinstance(items, list) else []


def _text(raw: Any, key: str) -> str:
    value = raw.get(key) if isinstance(raw, dict) else None
    return value if isinstance(value, str) else ""


def json_schema() -> dict[str, object]:
    """The published schema of specification files."""
    schema = msgspec.json.schema(Document)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "winready specification", **schema}

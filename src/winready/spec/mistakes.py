"""Every mistake in a file at once: where msgspec stops at the first wrong value, this goes on and suggests."""

from __future__ import annotations

import difflib
import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from msgspec import inspect

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Finding:
    """One mistake, at a path inside the document."""

    path: Path
    message: str


@dataclass(frozen=True)
class Mistake:
    """One mistake at a place in a file, ready to be shown."""

    file: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.message}"


def check_shape(value: Any, expected: type) -> list[Finding]:
    """Compare plain data with a Struct type."""
    return list(_compare(value, _type_info(expected), ()))


@functools.cache
def _type_info(expected: type) -> inspect.Type:
    return inspect.type_info(expected)


def nearest(word: str, known: list[str]) -> str:
    """``; did you mean 'x'?`` or nothing."""
    found = difflib.get_close_matches(word, known, n=1, cutoff=0.55)
    return f"; did you mean {found[0]!r}?" if found else ""


def _compare(value: Any, expected: inspect.Type, path: Path) -> Iterator[Finding]:
    match expected:
        case inspect.StructType():
            yield from _compare_struct(value, expected, path)
        case inspect.ListType(item_type=item_type):
            if not isinstance(value, list):
                yield Finding(path, f"expected a list, found {_name(value)}")
                return
            for index, item in enumerate(value):
                yield from _compare(item, item_type, (*path, index))
        case inspect.DictType(value_type=value_type):
            if not isinstance(value, dict):
                yield Finding(path, f"expected a map, found {_name(value)}")
                return
            for key, item in value.items():
                yield from _compare(item, value_type, (*path, key))
        case inspect.LiteralType(values=values):
            if value not in values:
                known = [str(item) for item in values]
                hint = nearest(str(value), known)
                yield Finding(path, f"{value!r} is not one of {', '.join(known)}{hint}")
        case inspect.NoneType():
            if value is not None:
                yield Finding(path, f"expected nothing, found {_name(value)}")
        case inspect.UnionType(types=types):
            if not any(not list(_compare(value, option, path)) for option in types):
                real = [option for option in types if not isinstance(option, inspect.NoneType)]
                yield from _compare(value, real[0], path)
        case _:
            yield from _compare_scalar(value, expected, path)


def _compare_struct(value: Any, expected: inspect.StructType, path: Path) -> Iterator[Finding]:
    if not isinstance(value, dict):
        yield Finding(path, f"expected a map, found {_name(value)}")
        return
    fields = {field.encode_name: field for field in expected.fields}
    for key, item in value.items():
        if key in fields:
            yield from _compare(item, fields[key].type, (*path, key))
        else:
            yield Finding((*path, key), f"unknown key {key!r}{nearest(str(key), list(fields))}")
    missing = [name for name, field in fields.items() if field.required and name not in value]
    if missing:
        yield Finding(path, f"missing {', '.join(repr(name) for name in missing)}")


def _compare_scalar(value: Any, expected: inspect.Type, path: Path) -> Iterator[Finding]:
    accepted: dict[type[inspect.Type], tuple[type, str]] = {
        inspect.StrType: (str, "text"),
        inspect.IntType: (int, "a whole number"),
        inspect.BoolType: (bool, "true or false"),
        inspect.FloatType: (float, "a number"),
    }
    wanted = accepted.get(type(expected))
    if wanted is None:
        return
    right_type, words = wanted
    if not isinstance(value, right_type) or (right_type is int and isinstance(value, bool)):
        quote = "; put it in quotes" if right_type is str and isinstance(value, (int, float, bool)) else ""
        yield Finding(path, f"expected {words}, found {_name(value)}{quote}")
        return
    least = expected.ge if isinstance(expected, inspect.IntType) else None
    if least is not None and isinstance(value, int) and value < least:
        yield Finding(path, f"{value} is too small; the least is {least}")


def _name(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list):
        return "a list"
    return json.dumps(value)

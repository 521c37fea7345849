"""Operators on values."""

from __future__ import annotations

import datetime
import fnmatch
import re
from collections.abc import Callable
from typing import Any

from winready_sandbox.programs.powershell.types import type_matches
from winready_sandbox.programs.powershell.values import (
    Hash,
    NetList,
    PowerShellError,
    as_list,
    to_number,
    to_text,
    truth,
)

Matches = Callable[[re.Match[str]], None]


def _order(left: Any, right: Any, case: bool) -> int:
    if isinstance(left, str):
        one, two = left, to_text(right)
        if not case:
            one, two = one.lower(), two.lower()
        return (one > two) - (one < two)
    if isinstance(left, datetime.datetime) and isinstance(right, datetime.datetime):
        return (left > right) - (left < right)
    if isinstance(left, datetime.timedelta) and isinstance(right, datetime.timedelta):
        return (left > right) - (left < right)
    if isinstance(left, int | float) or isinstance(right, int | float):
        one_number, two_number = to_number(left), to_number(right)
        return (one_number > two_number) - (one_number < two_number)
    one, two = to_text(left).lower(), to_text(right).lower()
    return 0 if left is right else (one > two) - (one < two)


def equal(left: Any, right: Any, *, case: bool = False) -> bool:
    """`-eq` on two single values."""
    if left is None or right is None:
        return left is None and right is None
    if isinstance(left, bool):
        return left == truth(right)
    try:
        return _order(left, right, case) == 0
    except PowerShellError:
        return False


def _single(name: str, left: Any, right: Any, case: bool, matched: Matches) -> bool:
    if name == "eq":
        return equal(left, right, case=case)
    if name == "ne":
        return not equal(left, right, case=case)
    if name in ("gt", "ge", "lt", "le"):
        order = _order(left, right, case)
        return {"gt": order > 0, "ge": order >= 0, "lt": order < 0, "le": order <= 0}[name]
    if name in ("like", "notlike"):
        one, two = to_text(left), to_text(right)
        if not case:
            one, two = one.lower(), two.lower()
        return fnmatch.fnmatchcase(one, two) == (name == "like")
    found = re.search(regex(to_text(right)), to_text(left), 0 if case else re.IGNORECASE)
    if found and name == "match":
        matched(found)
    return bool(found) == (name == "match")


def regex(pattern: str) -> str:
    """A .NET expression in Python's words."""
    return re.sub(r"\(\?<(\w+)>", r"(?P<\1>", pattern)


def compare(name: str, left: Any, right: Any, matched: Matches) -> Any:
    """Comparison operators; on a list they pick the items that fit."""
    case = name.startswith("c") and name not in ("contains",)
    plain = name[1:] if case else name
    if plain in ("contains", "notcontains"):
        return any(equal(item, right, case=case) for item in as_list(left)) == (plain == "contains")
    if plain in ("in", "notin"):
        return any(equal(item, left, case=case) for item in as_list(right)) == (plain == "in")
    if isinstance(left, list):
        return [item for item in left if _single(plain, item, right, case, matched)]
    return _single(plain, left, right, case, matched)


def arithmetic(operator: str, left: Any, right: Any) -> Any:
    """`+ - * / %`."""
    if operator == "+":
        if isinstance(left, list):
            return [*left, *as_list(right)] if not isinstance(right, Hash) else [*left, right]
        if isinstance(left, str):
            return left + to_text(right)
        if isinstance(left, Hash) and isinstance(right, Hash):
            return Hash(iter([*left.items(), *right.items()]))
        if isinstance(left, datetime.datetime | datetime.timedelta):
            return left + right
        if left is None:
            return right
    if operator == "*" and isinstance(left, str):
        return left * int(to_number(right))
    if operator == "*" and isinstance(left, list):
        return left * int(to_number(right))
    if operator == "-" and isinstance(left, datetime.datetime | datetime.timedelta):
        return left - right
    one, two = to_number(left), to_number(right)
    if operator in "/%" and two == 0:
        raise PowerShellError("Attempted to divide by zero.", "RuntimeException")
    if operator == "+":
        return one + two
    if operator == "-":
        return one - two
    if operator == "*":
        return one * two
    if operator == "/":
        result = one / two
        return int(result) if result == int(result) and isinstance(one, int) and isinstance(two, int) else result
    return one - two * int(one / two)


def _replace(left: Any, right: Any, case: bool) -> Any:
    old, *rest = as_list(right) or [""]
    new = to_text(rest[0]) if rest else ""
    new = re.sub(r"\$(\d+|\{\w+\})", lambda match: f"\\g<{match[1].strip('{}')}>", new.replace("\\", "\\\\"))
    flags = 0 if case else re.IGNORECASE

    def one(item: Any) -> str:
        return re.sub(regex(to_text(old)), new, to_text(item), flags=flags)

    return [one(item) for item in left] if isinstance(left, list) else one(left)


def _format(left: Any, right: Any) -> str:
    values = as_list(right)

    def one(match: re.Match[str]) -> str:
        value = values[int(match[1])] if int(match[1]) < len(values) else ""
        style = match[3] or ""
        if style[:1].lower() == "x":
            text = f"{int(value):0{style[1:] or 1}{'X' if style[0] == 'X' else 'x'}}"
        elif style[:1].lower() in ("n", "f"):
            digits = int(style[1:] or 2)
            text = f"{float(value):,.{digits}f}" if style[0].lower() == "n" else f"{float(value):.{digits}f}"
        elif style[:1].lower() == "d":
            text = f"{int(value):0{style[1:] or 1}d}"
        else:
            text = to_text(value)
        width = int(match[2] or 0)
        return text.ljust(-width) if width < 0 else text.rjust(width)

    return re.sub(r"\{(\d+)(?:,(-?\d+))?(?::([^}]+))?\}", one, to_text(left)).replace("{{", "{").replace("}}", "}")


def binary(operator: str, left: Any, right: Any, matched: Matches) -> Any:
    """Any operator but the logical ones, which do not always need both values."""
    if operator in "+-*/%":
        result = arithmetic(operator, left, right)
        return NetList(result) if isinstance(left, NetList) and isinstance(result, list) else result
    if operator == "..":
        first, last = int(to_number(left)), int(to_number(right))
        return range(first, last + 1) if last >= first else range(first, last - 1, -1)
    plain = operator[1:] if operator in ("creplace", "csplit") else operator
    if plain == "replace":
        return _replace(left, right, operator != plain)
    if plain == "split":
        pattern, *limit = as_list(right) or [""]
        count = int(to_number(limit[0])) - 1 if limit and limit[0] else 0
        return [
            part
            for item in as_list(left)
            for part in re.split(regex(to_text(pattern)), to_text(item), maxsplit=max(count, 0))
        ]
    if operator == "join":
        return to_text(right).join(to_text(item) for item in as_list(left))
    if operator == "f":
        return _format(left, right)
    if operator in ("is", "isnot"):
        return type_matches(left, to_text(right)) == (operator == "is")
    if operator in ("band", "bor", "bxor", "shl", "shr"):
        one, two = int(to_number(left)), int(to_number(right))
        results = {"band": one & two, "bor": one | two, "bxor": one ^ two}
        return results[operator] if operator in results else one << two if operator == "shl" else one >> two
    return compare(operator, left, right, matched)

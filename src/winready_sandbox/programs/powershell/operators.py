"""Operators on values."""

from __future__ import annotations

import datetime
import fnmatch
from typing import TYPE_CHECKING, Any

from winready_sandbox.programs.powershell.values import (
    ITEM,
    PowerShellError,
    as_list,
    fitting,
    to_number,
    to_text,
    truth,
    whole,
)

if TYPE_CHECKING:
    from winready_sandbox.programs.powershell.accounting import Account

FAMILIES = {
    "arithmetic": ("+", "-", "*", "/", "%"),
    "range": ("..",),
    "comparison": ("eq", "ne", "gt", "ge", "lt", "le"),
    "matching": ("like", "match", "contains"),
    "logic": ("and", "or", "not"),
}
"""All operators there are; those of a family are only of use together."""


def _order(left: Any, right: Any) -> int:
    if isinstance(left, str):
        one, two = left.lower(), to_text(right).lower()
        return (one > two) - (one < two)
    if isinstance(left, datetime.datetime) and isinstance(right, datetime.datetime):
        return (left > right) - (left < right)
    if isinstance(left, int | float) or isinstance(right, int | float):
        one_number, two_number = to_number(left), to_number(right)
        return (one_number > two_number) - (one_number < two_number)
    one, two = to_text(left).lower(), to_text(right).lower()
    return 0 if left is right else (one > two) - (one < two)


def equal(left: Any, right: Any) -> bool:
    """`-eq` on two single values."""
    if left is None or right is None:
        return left is None and right is None
    if isinstance(left, bool):
        return left == truth(right)
    try:
        return _order(left, right) == 0
    except PowerShellError:
        return False


def _single(name: str, left: Any, right: Any) -> bool:
    if name in ("eq", "ne"):
        return equal(left, right) == (name == "eq")
    if name in FAMILIES["comparison"]:
        order = _order(left, right)
        return {"gt": order > 0, "ge": order >= 0, "lt": order < 0, "le": order <= 0}[name]
    return fnmatch.fnmatchcase(to_text(left).lower(), to_text(right).lower())


def compare(name: str, left: Any, right: Any) -> Any:
    """Comparison operators but `-match`; on a list they pick the items that fit."""
    if name == "contains":
        return any(equal(item, right) for item in as_list(left))
    if isinstance(left, list):
        return [item for item in left if _single(name, item, right)]
    return _single(name, left, right)


def arithmetic(operator: str, left: Any, right: Any, account: Account) -> Any:
    """`+ - * / %`."""
    if operator == "+":
        if isinstance(left, list):
            return account.made([*left, *as_list(right)])
        if isinstance(left, str):
            return account.made(left + to_text(right))
        if left is None:
            return right
    if operator == "*" and isinstance(left, str | list):
        times = max(0, whole(right))
        account.check(len(left) * times * (1 if isinstance(left, str) else ITEM))
        return account.made(left * times)
    if operator == "-" and isinstance(left, datetime.datetime) and isinstance(right, datetime.datetime):
        return left - right
    try:
        return fitting(_computed(operator, left, right))
    except (OverflowError, ValueError):
        raise PowerShellError("Value was either too large or too small for a Double.", "RuntimeException") from None


def _computed(operator: str, left: Any, right: Any) -> int | float:
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


def binary(operator: str, left: Any, right: Any, account: Account) -> Any:
    """Any operator but `-match` and the logical ones, which do not always need both values."""
    if operator in FAMILIES["arithmetic"]:
        return arithmetic(operator, left, right, account)
    if operator == "..":
        first, last = whole(left), whole(right)
        return range(first, last + 1) if last >= first else range(first, last - 1, -1)
    return compare(operator, left, right)

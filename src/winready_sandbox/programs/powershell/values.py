"""Values that PowerShell has and Python has not, and how values turn into texts, numbers and truth."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from typing import Any

from winready_sandbox.machine.errors import OutOfMemory

ITEM = 64
"""Bytes that a value costs, whatever it is."""
LONGEST_VARIABLE = 32767
"""Characters of a variable of the environment."""
MOST_ITEMS = 2**17
"""Items that a list can have."""


class PowerShellError(Exception):
    """A terminating error; ``identifier`` is the FullyQualifiedErrorId."""

    def __init__(self, message: str, identifier: str = "", kind: str = "RuntimeException", value: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.identifier = identifier or message
        self.kind = kind
        self.value = value


class PSObject:
    """An object with named properties (names ignore case)."""

    def __init__(
        self,
        type_name: str,
        properties: dict[str, Any],
        *,
        shown: tuple[str, ...] = (),
        text: str | None = None,
    ) -> None:
        self.type_name = type_name
        self.properties = properties
        self.shown = shown
        """The properties of its default view."""
        self.text = text

    def get(self, name: str) -> Any:
        """A property, or None."""
        found = self.find(name)
        return self.properties[found] if found is not None else None

    def find(self, name: str) -> str | None:
        """The true name of a property."""
        return next((key for key in self.properties if key.lower() == name.lower()), None)

    def __str__(self) -> str:
        if self.text is not None:
            return self.text
        if self.type_name.endswith("PSCustomObject"):
            return "@{" + "; ".join(f"{name}={to_text(value)}" for name, value in self.properties.items()) + "}"
        return self.type_name


class Hash:
    """A hashtable: texts as keys ignore case."""

    def __init__(self, pairs: Iterator[tuple[Any, Any]] | None = None) -> None:
        self._items: dict[Any, tuple[Any, Any]] = {}
        for key, value in pairs or ():
            self[key] = value

    @staticmethod
    def _key(key: Any) -> Any:
        return key.lower() if isinstance(key, str) else key

    def __setitem__(self, key: Any, value: Any) -> None:
        self._items[self._key(key)] = (key, value)

    def get(self, key: Any) -> Any:
        """A value, or None."""
        return self._items.get(self._key(key), (None, None))[1]

    def remove(self, key: Any) -> None:
        """Forget a key."""
        self._items.pop(self._key(key), None)

    def __contains__(self, key: Any) -> bool:
        return self._key(key) in self._items

    def __len__(self) -> int:
        return len(self._items)

    def items(self) -> list[tuple[Any, Any]]:
        """Keys and values."""
        return list(self._items.values())


class NetArray:
    """A .NET array of bytes, which costs its size in simulated memory only."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.items: dict[int, Any] = {}

    def __len__(self) -> int:
        return self.length


def to_text(value: Any) -> str:
    """A value inside a text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "True" if value else "False"
    if isinstance(value, float):
        if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return f"{value:.15g}" if value != int(value) or abs(value) > 1e15 else str(int(value))
    if isinstance(value, list | range):
        return " ".join(to_text(item) for item in flat(value))
    if isinstance(value, NetArray):
        return " ".join(to_text(value.items.get(index, 0)) for index in range(min(value.length, 1000)))
    if isinstance(value, Hash):
        return "System.Collections.Hashtable"
    if isinstance(value, datetime.datetime):
        return value.strftime("%m/%d/%Y %H:%M:%S")
    if isinstance(value, datetime.timedelta):
        total = abs(value.total_seconds())
        text = f"{int(total // 3600 % 24):02d}:{int(total // 60 % 60):02d}:{total % 60:02.0f}"
        return ("-" if value.total_seconds() < 0 else "") + (
            f"{int(total // 86400)}.{text}" if total >= 86400 else text
        )
    return str(value)


def flat(values: list[Any] | range) -> Iterator[Any]:
    """The items of a list, and those of lists in it; raises `OutOfMemory` where they are too many."""
    left = MOST_ITEMS
    pending: list[Iterator[Any]] = [iter(values)]
    while pending:
        for item in pending[-1]:
            left -= 1
            if left < 0 or len(pending) > MOST_ITEMS:
                raise OutOfMemory
            if isinstance(item, list | range):
                pending.append(iter(item))
                break
            yield item
        else:
            pending.pop()


def fitting(value: int | float) -> int | float:
    """A number as there is one: what needs more than 64 bits becomes a fraction that is about as large."""
    if isinstance(value, float) or -(2**63) <= value < 2**63:
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def whole(value: Any) -> int:
    """A value where only an integer will do."""
    number = to_number(value)
    if not -(2**31) <= number < 2**31:
        message = f'Cannot convert value "{to_text(value)}" to type "System.Int32".'
        reason = "Value was either too large or too small for an Int32."
        raise PowerShellError(f'{message} Error: "{reason}"', "InvalidCastIConvertible")
    return int(number)


def to_number(value: Any) -> int | float:
    """A value in arithmetic; raises as PowerShell does."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float):
        return value
    if value is None:
        return 0
    if isinstance(value, str):
        text = value.strip()
        try:
            return fitting(int(text, 16) if text.lower().startswith("0x") else int(text))
        except ValueError:
            try:
                return float(text) if text else 0
            except ValueError:
                pass
    raise PowerShellError(
        f'Cannot convert value "{to_text(value)}" to type "System.Int32". '
        'Error: "Input string was not in a correct format."',
        "InvalidCastFromStringToInteger",
    )


def truth(value: Any) -> bool:
    """A value as a condition."""
    if isinstance(value, list):
        return truth(value[0]) if len(value) == 1 else bool(value)
    if isinstance(value, Hash | NetArray | PSObject):
        return True
    return bool(value)


def as_list(value: Any) -> list[Any]:
    """A value as the items that a pipeline or loop gets."""
    if value is None:
        return []
    if isinstance(value, list):
        return value
    if isinstance(value, range | NetArray) and len(value) > MOST_ITEMS:
        raise OutOfMemory
    if isinstance(value, range):
        return list(value)
    if isinstance(value, NetArray):
        return [value.items.get(index, 0) for index in range(value.length)]
    return [value]


def unrolled(items: list[Any]) -> Any:
    """What an assignment gets from a pipeline: nothing, the one item, or an array."""
    return None if not items else items[0] if len(items) == 1 else items

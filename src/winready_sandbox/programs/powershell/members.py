"""Properties and methods of values."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import Any

from winready_sandbox.programs.powershell.types import type_name, wmi_date
from winready_sandbox.programs.powershell.values import Hash, NetArray, PowerShellError, PSObject, to_text

_MISSING = object()


def _own(value: Any, name: str) -> Any:
    if isinstance(value, PSObject):
        found = value.find(name)
        return value.properties[found] if found is not None else _MISSING
    if isinstance(value, Hash):
        return value.get(name) if name in value else {"count": len(value)}.get(name, _MISSING)
    if isinstance(value, str):
        return len(value) if name == "length" else _MISSING
    if isinstance(value, datetime.timedelta):
        return value.total_seconds() if name == "totalseconds" else _MISSING
    return _MISSING


def get(value: Any, name: str) -> Any:
    """A property; on a list without such a property, that property of every item."""
    wanted = name.lower()
    if value is None:
        return 0 if wanted in ("count", "length") else None
    if isinstance(value, list | range | NetArray):
        if wanted in ("length", "count"):
            return len(value)
        if isinstance(value, NetArray):
            return None
        found = [_own(item, wanted) for item in value]
        present = [each for each in found if each is not _MISSING]
        return None if not present else present[0] if len(value) == 1 else present
    own = _own(value, wanted)
    if own is not _MISSING:
        return own
    return 1 if wanted in ("count", "length") else None


def set_member(value: Any, name: str, new: Any) -> None:
    """Assign a property."""
    if isinstance(value, Hash):
        value[name] = new
        return
    if isinstance(value, PSObject) and (found := value.find(name)) is not None:
        value.properties[found] = new
        return
    raise PowerShellError(
        f"The property '{name}' cannot be found on this object. Verify that the property exists and can be set.",
        "PropertyNotFound",
    )


_DATE_PARTS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "o": "%Y-%m-%dT%H:%M:%S"}


def _to_string(value: Any, style: str = "") -> str:
    if isinstance(value, datetime.datetime) and style:
        return value.strftime(re.sub("yyyy|MM|dd|HH|mm|ss|^o$", lambda match: _DATE_PARTS[match[0]], style))
    return to_text(value)


def _convert_to_datetime(value: Any, text: Any) -> datetime.datetime:
    """A method of WMI objects."""
    return wmi_date(text)


def _trim_end(value: Any, characters: Any = None) -> str:
    return to_text(value).rstrip(to_text(characters) if characters is not None else None)


METHODS: dict[str, Callable[..., Any]] = {
    "tostring": _to_string,
    "trimend": _trim_end,
    "converttodatetime": _convert_to_datetime,
}


def call(value: Any, name: str, arguments: list[Any]) -> Any:
    """Call a method of a value."""
    if value is None:
        raise PowerShellError("You cannot call a method on a null-valued expression.", "InvokeMethodOnNull")
    method = METHODS.get(name.lower())
    if method is None:
        raise PowerShellError(
            f"Method invocation failed because [{type_name(value)}] does not contain a method named '{name}'.",
            "MethodNotFound",
        )
    try:
        return method(value, *arguments)
    except TypeError:
        raise PowerShellError(
            f'Cannot find an overload for "{name}" and the argument count: "{len(arguments)}".',
            "MethodCountCouldNotFindBest",
        ) from None

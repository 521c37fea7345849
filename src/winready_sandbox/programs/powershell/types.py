"""Type names, casts, and objects made by New-Object."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import Any

from winready_sandbox.programs.powershell.values import Hash, NetArray, PowerShellError, PSObject, to_text, whole


def plain_name(name: str) -> str:
    """A type's name without `System.` and in lower case."""
    return name.lower().removeprefix("system.")


def type_name(value: Any) -> str:
    """The .NET name of a value's type."""
    if isinstance(value, PSObject):
        return value.type_name
    names = {
        bool: "System.Boolean",
        int: "System.Int32",
        float: "System.Double",
        str: "System.String",
        Hash: "System.Collections.Hashtable",
        NetArray: "System.Byte[]",
        datetime.datetime: "System.DateTime",
        datetime.timedelta: "System.TimeSpan",
    }
    return names.get(type(value), "System.Object[]")


def cast(name: str, value: Any) -> Any:
    """`[type]value`."""
    function = CASTS.get(plain_name(name))
    if function is None:
        raise PowerShellError(f"Unable to find type [{name}].", "TypeNotFound")
    return function(value)


def version(text: str) -> PSObject:
    """A version number with its parts."""
    parts = [int(part) for part in re.findall(r"\d+", text)] + [-1] * 4
    names = ("Major", "Minor", "Build", "Revision")
    return PSObject("System.Version", dict(zip(names, parts, strict=False)), shown=names, text=text)


def wmi_date(text: Any) -> datetime.datetime:
    """A date as WMI writes it: `20261115101500.000000+000`."""
    match = re.match(r"\d{14}", to_text(text))
    if match is None:
        raise PowerShellError(
            f'Exception calling "ConvertToDateTime": "{to_text(text)}"', "ArgumentOutOfRangeException"
        )
    try:
        return datetime.datetime.strptime(match[0], "%Y%m%d%H%M%S")
    except ValueError:
        raise PowerShellError("Specified argument was out of the range of valid values.", "OutOfRange") from None


def new_object(name: str, arguments: list[Any]) -> Any:
    """What New-Object makes."""
    function = OBJECTS.get(plain_name(name))
    if function is None:
        raise PowerShellError(
            f"Cannot find type [{name}]: verify that the assembly containing this type is loaded.",
            "TypeNotFound,Microsoft.PowerShell.Commands.NewObjectCommand",
        )
    return function(arguments)


CASTS: dict[str, Callable[[Any], Any]] = {"guid": to_text, "intptr": whole}
OBJECTS: dict[str, Callable[[list[Any]], Any]] = {
    "byte[]": lambda arguments: NetArray(max(0, whole(arguments[0])) if arguments else 0),
}

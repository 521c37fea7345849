"""Type names, casts, and objects made by New-Object."""

from __future__ import annotations

import datetime
import re
import uuid
from typing import Any

from winready_sandbox.programs.powershell.values import (
    Hash,
    NetArray,
    NetList,
    PowerShellError,
    PSObject,
    as_list,
    to_number,
    to_text,
    truth,
)

_SIZES = {
    "byte": 1,
    "sbyte": 1,
    "char": 2,
    "int16": 2,
    "int": 4,
    "int32": 4,
    "long": 8,
    "int64": 8,
    "double": 8,
    "bool": 1,
}
_LISTS = ("collections.arraylist", "collections.generic.list")


def plain_name(name: str) -> str:
    """A type's name without `System.` and in lower case."""
    return (
        name.strip("[]").lower().removeprefix("system.")
        if not name.endswith("[]")
        else name.lower().removeprefix("system.")
    )


def type_name(value: Any) -> str:
    """The .NET name of a value's type."""
    if isinstance(value, PSObject):
        return value.type_name
    if isinstance(value, NetArray):
        return f"System.{value.type_name.capitalize()}[]"
    if isinstance(value, NetList):
        return "System.Collections.ArrayList"
    names = {
        bool: "System.Boolean",
        int: "System.Int32",
        float: "System.Double",
        str: "System.String",
        list: "System.Object[]",
        range: "System.Object[]",
        Hash: "System.Collections.Hashtable",
        datetime.datetime: "System.DateTime",
        datetime.timedelta: "System.TimeSpan",
    }
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**31) <= value < 2**31:
        return "System.Int64"
    return names.get(type(value), "System.Object")


def type_matches(value: Any, name: str) -> bool:
    """`-is`."""
    wanted = plain_name(name)
    actual = plain_name(type_name(value))
    aliases = {
        "int": "int32",
        "long": "int64",
        "bool": "boolean",
        "hashtable": "collections.hashtable",
        "array": "object[]",
    }
    return aliases.get(wanted, wanted) in (actual, actual.rpartition(".")[2]) or (
        wanted == "valuetype" and isinstance(value, int)
    )


def cast(name: str, value: Any) -> Any:
    """`[type]value`."""
    wanted = plain_name(name)
    if wanted in ("int", "int32", "long", "int64", "uint32", "uint64", "byte", "int16"):
        return (
            ord(value)
            if wanted != "byte" and isinstance(value, str) and len(value) == 1 and not value.isdigit()
            else round(to_number(value))
        )
    if wanted in ("double", "float", "decimal", "single"):
        return float(to_number(value))
    if wanted == "string":
        return to_text(list(value) if isinstance(value, range) else value)
    if wanted in ("bool", "boolean", "switch"):
        return truth(value)
    if wanted == "char":
        return chr(int(to_number(value))) if not isinstance(value, str) else value[:1]
    if wanted in ("array", "object[]", "string[]", "int[]"):
        items = list(value) if isinstance(value, range) else as_list(value)
        return [to_text(item) for item in items] if wanted == "string[]" else items
    if wanted == "byte[]":
        return [int(to_number(item)) for item in as_list(value)]
    if wanted == "datetime":
        return parse_date(value)
    if wanted == "timespan":
        return (
            value
            if isinstance(value, datetime.timedelta)
            else datetime.timedelta(microseconds=int(to_number(value)) / 10)
        )
    if wanted == "pscustomobject" and isinstance(value, Hash):
        return PSObject("System.Management.Automation.PSCustomObject", dict(value.items()))
    if wanted in _LISTS or wanted.startswith("collections.generic.list"):
        return NetList(as_list(value))
    if wanted in ("void", "object", "psobject", "hashtable", "scriptblock", "ordered"):
        return None if wanted == "void" else value
    if wanted == "version":
        return version(to_text(value))
    if wanted == "ref":
        raise PowerShellError("[ref] can only be applied to a variable.", "RefArgumentIsNotVariable")
    if wanted in ("regex", "uri", "guid", "ipaddress", "net.ipaddress"):
        return to_text(value)
    if wanted == "xml":
        raise PowerShellError('Cannot convert value to type "System.Xml.XmlDocument".', "InvalidCastToXmlDocument")
    raise PowerShellError(f"Unable to find type [{name}].", "TypeNotFound")


def version(text: str) -> PSObject:
    """A version number with its parts."""
    parts = [int(part) for part in re.findall(r"\d+", text)] + [-1] * 4
    names = ("Major", "Minor", "Build", "Revision")
    return PSObject("System.Version", dict(zip(names, parts, strict=False)), shown=names, text=text)


def parse_date(value: Any) -> datetime.datetime:
    """A date from any of the usual texts, WMI's included."""
    if isinstance(value, datetime.datetime):
        return value
    text = to_text(value)
    match = re.match(r"(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})", text)
    if match:
        return datetime.datetime.strptime("".join(match.groups()), "%Y%m%d%H%M%S")
    for form in ("%m/%d/%Y %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%m/%d/%Y", "%Y-%m-%d"):
        try:
            return datetime.datetime.strptime(text.rstrip("Z"), form)
        except ValueError:
            continue
    raise PowerShellError(
        f'Cannot convert value "{text}" to type "System.DateTime".', "InvalidCastParseTargetInvocation"
    )


def new_object(name: str, arguments: list[Any]) -> Any:
    """New-Object and `[type]::new()`."""
    wanted = plain_name(name)
    if wanted.endswith("[]"):
        item = wanted[:-2]
        length = int(to_number(arguments[0])) if arguments else 0
        if item in _SIZES:
            return NetArray(item, length, _SIZES[item])
        return [None] * length
    if wanted in _LISTS or wanted.startswith(("collections.generic.list", "collections.generic.hashset")):
        return NetList(as_list(arguments[0]) if arguments and not isinstance(arguments[0], int) else [])
    if wanted in ("hashtable", "collections.hashtable"):
        return Hash()
    if wanted in ("psobject", "pscustomobject", "management.automation.psobject"):
        return PSObject("System.Management.Automation.PSCustomObject", {})
    if wanted == "datetime":
        numbers = [*(int(to_number(part)) for part in arguments), 0, 0, 0]
        return datetime.datetime(numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5])
    if wanted == "timespan":
        hours, minutes, seconds = (int(part) for part in arguments[:3])
        return datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if wanted == "version":
        return version(".".join(to_text(part) for part in arguments))
    if wanted == "object":
        return PSObject("System.Object", {})
    if wanted == "guid":
        return str(uuid.uuid4())
    if wanted == "text.stringbuilder":
        return _string_builder(to_text(arguments[0]) if arguments else "")
    raise PowerShellError(
        f"Cannot find type [{name}]: verify that the assembly containing this type is loaded.",
        "TypeNotFound,Microsoft.PowerShell.Commands.NewObjectCommand",
    )


def _string_builder(text: str) -> PSObject:
    parts = [text]
    builder = PSObject("System.Text.StringBuilder", {"Length": len(text)})

    def append(value: Any, end: str = "") -> PSObject:
        parts.append(to_text(value) + end)
        builder.properties["Length"] = sum(len(part) for part in parts)
        return builder

    builder.methods = {
        "append": append,
        "appendline": lambda value="": append(value, "\r\n"),
        "tostring": lambda: "".join(parts),
    }
    return builder

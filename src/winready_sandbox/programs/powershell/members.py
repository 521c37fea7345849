"""Properties and methods of values, and static members of types."""

from __future__ import annotations

import base64
import datetime
import math
import random
import re
import uuid
from collections.abc import Callable
from typing import Any

from winready_sandbox.clock import utc_now, wall_time
from winready_sandbox.programs.powershell.operators import binary, equal, regex
from winready_sandbox.programs.powershell.types import cast, new_object, parse_date, plain_name, type_name
from winready_sandbox.programs.powershell.values import (
    Hash,
    NetArray,
    NetList,
    PowerShellError,
    PSObject,
    as_list,
    to_number,
    to_text,
)

_MISSING = object()


def _span(value: datetime.timedelta) -> dict[str, Any]:
    seconds = value.total_seconds()
    return {
        "totalseconds": seconds,
        "totalmilliseconds": seconds * 1000,
        "totalminutes": seconds / 60,
        "totalhours": seconds / 3600,
        "totaldays": seconds / 86400,
        "days": value.days,
        "hours": int(seconds // 3600 % 24),
        "minutes": int(seconds // 60 % 60),
        "seconds": int(seconds % 60),
        "ticks": int(seconds * 1e7),
    }


def _date(value: datetime.datetime) -> dict[str, Any]:
    names = ("year", "month", "day", "hour", "minute", "second")
    return {name: getattr(value, name) for name in names} | {
        "ticks": int((value - datetime.datetime(1, 1, 1)).total_seconds() * 1e7),
        "date": value.replace(hour=0, minute=0, second=0, microsecond=0),
        "dayofweek": value.strftime("%A"),
    }


def _own(value: Any, name: str) -> Any:
    if isinstance(value, PSObject):
        found = value.find(name)
        return value.properties[found] if found is not None else _MISSING
    if isinstance(value, Hash):
        if name in value:
            return value.get(name)
        known: dict[str, Any] = {"count": len(value), "keys": [key for key, _ in value.items()]}
        return {**known, "values": [each for _, each in value.items()]}.get(name, _MISSING)
    if isinstance(value, str):
        return len(value) if name == "length" else _MISSING
    if isinstance(value, datetime.datetime):
        return _date(value).get(name, _MISSING)
    if isinstance(value, datetime.timedelta):
        return _span(value).get(name, _MISSING)
    return _MISSING


def get(value: Any, name: str) -> Any:
    """A property; on a list without such a property, that property of every item."""
    wanted = name.lower()
    if value is None:
        return 0 if wanted in ("count", "length") else None
    if isinstance(value, list | range | NetArray):
        if wanted in ("length", "count", "longlength"):
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


def _string_methods(value: str) -> dict[str, Callable[..., Any]]:
    def split(*separators: Any) -> list[str]:
        options = [
            each for each in separators if not isinstance(each, int) and each not in ("RemoveEmptyEntries", "None")
        ]
        chars = "".join(to_text(each) for item in options for each in as_list(item)) or " "
        parts = re.split(f"[{re.escape(chars)}]", value)
        return [part for part in parts if part] if "RemoveEmptyEntries" in separators else parts

    def substring(start: Any, length: Any = None) -> str:
        begin = int(to_number(start))
        if begin > len(value) or (length is not None and begin + int(length) > len(value)):
            raise PowerShellError(
                'Exception calling "Substring" with "2" argument(s): '
                '"Index and length must refer to a location within the string.\r\nParameter name: length"',
                "ArgumentOutOfRangeException",
            )
        return value[begin:] if length is None else value[begin : begin + int(length)]

    return {
        "split": split,
        "substring": substring,
        "trim": lambda chars=None: value.strip(to_text(chars) if chars is not None else None),
        "trimend": lambda chars=None: value.rstrip(to_text(chars) if chars is not None else None),
        "trimstart": lambda chars=None: value.lstrip(to_text(chars) if chars is not None else None),
        "toupper": value.upper,
        "tolower": value.lower,
        "toupperinvariant": value.upper,
        "tolowerinvariant": value.lower,
        "contains": lambda text, *_: to_text(text) in value,
        "startswith": lambda text, *_: value.startswith(to_text(text)),
        "endswith": lambda text, *_: value.endswith(to_text(text)),
        "replace": lambda old, new: value.replace(to_text(old), to_text(new)),
        "indexof": lambda text, start=0: value.find(to_text(text), int(start)),
        "lastindexof": lambda text: value.rfind(to_text(text)),
        "padleft": lambda width, char=" ": value.rjust(int(width), to_text(char)),
        "padright": lambda width, char=" ": value.ljust(int(width), to_text(char)),
        "insert": lambda at, text: value[: int(at)] + to_text(text) + value[int(at) :],
        "remove": lambda at, count=None: value[: int(at)] + ("" if count is None else value[int(at) + int(count) :]),
        "tochararray": lambda: list(value),
    }


def _list_methods(value: list[Any]) -> dict[str, Callable[..., Any]]:
    def add(item: Any) -> int:
        if not isinstance(value, NetList):
            raise PowerShellError(
                'Exception calling "Add" with "1" argument(s): "Collection was of a fixed size."',
                "NotSupportedException",
            )
        value.append(item)
        return len(value) - 1

    def remove(item: Any) -> None:
        if item in value:
            value.remove(item)

    return {
        "add": add,
        "addrange": lambda items: value.extend(as_list(items)),
        "clear": value.clear,
        "remove": remove,
        "removeat": lambda index: value.pop(int(index)) and None,
        "contains": lambda item: any(equal(each, item, case=True) for each in value),
        "indexof": lambda item: next((index for index, each in enumerate(value) if equal(each, item)), -1),
        "toarray": lambda: list(value),
        "getupperbound": lambda dimension: len(value) - 1,
    }


def _hash_methods(value: Hash) -> dict[str, Callable[..., Any]]:
    def add(key: Any, item: Any) -> None:
        if key in value:
            raise PowerShellError(
                f"Item has already been added. Key in dictionary: '{to_text(key)}'", "ArgumentException"
            )
        value[key] = item

    return {
        "add": add,
        "remove": value.remove,
        "containskey": lambda key: key in value,
        "contains": lambda key: key in value,
        "getenumerator": lambda: [
            PSObject(
                "System.Collections.DictionaryEntry", {"Name": key, "Value": item, "Key": key}, shown=("Name", "Value")
            )
            for key, item in value.items()
        ],
    }


def _date_methods(value: datetime.datetime) -> dict[str, Callable[..., Any]]:
    def form(style: str = "MM/dd/yyyy HH:mm:ss") -> str:
        table = {
            "yyyy": "%Y",
            "MM": "%m",
            "dd": "%d",
            "HH": "%H",
            "mm": "%M",
            "ss": "%S",
            "fff": "000",
            "o": "%Y-%m-%dT%H:%M:%S",
        }
        return value.strftime(re.sub("yyyy|MM|dd|HH|mm|ss|fff|^o$", lambda match: table[match[0]], style))

    units = {"addseconds": 1, "addminutes": 60, "addhours": 3600, "adddays": 86400, "addmilliseconds": 0.001}

    def adder(factor: float) -> Callable[[Any], datetime.datetime]:
        return lambda amount: value + datetime.timedelta(seconds=float(to_number(amount)) * factor)

    return {name: adder(factor) for name, factor in units.items()} | {
        "tostring": form,
        "touniversaltime": lambda: value,
        "tolocaltime": lambda: value,
        "subtract": lambda other: value - other,
    }


def call(value: Any, name: str, arguments: list[Any]) -> Any:
    """Call a method of a value."""
    wanted = name.lower()
    if value is None:
        raise PowerShellError("You cannot call a method on a null-valued expression.", "InvokeMethodOnNull")
    methods: dict[str, Callable[..., Any]] = {
        "tostring": lambda style=None: _number_text(value, style),
        "gettype": lambda: _type_object(type_name(value)),
        "equals": lambda other: equal(value, other, case=True),
        "gethashcode": lambda: 0,
        "compareto": lambda other: (value > other) - (value < other),
    }
    if isinstance(value, str):
        methods.update(_string_methods(value))
    elif isinstance(value, NetArray):
        methods.update({"clone": lambda: value, "getlength": lambda dimension: value.length})
    elif isinstance(value, list):
        methods.update(_list_methods(value))
    elif isinstance(value, Hash):
        methods.update(_hash_methods(value))
    elif isinstance(value, datetime.datetime):
        methods.update(_date_methods(value))
    elif isinstance(value, PSObject):
        methods.update({"converttodatetime": parse_date, **value.methods})
    method = methods.get(wanted)
    if method is None:
        raise PowerShellError(
            f"Method invocation failed because [{type_name(value)}] does not contain a method named '{name}'.",
            "MethodNotFound",
        )
    try:
        return method(*arguments)
    except TypeError:
        raise PowerShellError(
            f'Cannot find an overload for "{name}" and the argument count: "{len(arguments)}".',
            "MethodCountCouldNotFindBest",
        ) from None


def _number_text(value: Any, style: Any) -> str:
    if style and isinstance(value, int | float):
        return to_text(binary("f", f"{{0:{style}}}", [value], lambda match: None))
    return to_text(value)


def _type_object(name: str) -> PSObject:
    short = name.rpartition(".")[2]
    return PSObject("System.RuntimeType", {"Name": short, "FullName": name}, shown=("Name", "FullName"), text=name)


def static(type_text: str, name: str, arguments: list[Any] | None) -> Any:
    """`[type]::name` and, with arguments, `[type]::name(...)`."""
    wanted, member = plain_name(type_text), name.lower()
    if member == "new" and arguments is not None:
        return new_object(type_text, arguments)
    given = arguments or []
    table: dict[tuple[str, str], Callable[..., Any]] = {
        ("datetime", "now"): lambda: datetime.datetime.fromtimestamp(wall_time()).replace(microsecond=0),
        ("datetime", "utcnow"): lambda: utc_now().replace(tzinfo=None, microsecond=0),
        ("datetime", "parse"): lambda text, *_: parse_date(text),
        ("timespan", "fromseconds"): lambda seconds: datetime.timedelta(seconds=float(seconds)),
        ("guid", "newguid"): lambda: str(uuid.uuid4()),
        ("math", "round"): lambda value, digits=0: round(float(value), int(digits)) if digits else float(round(value)),
        ("math", "floor"): lambda value: float(math.floor(value)),
        ("math", "ceiling"): lambda value: float(math.ceil(value)),
        ("math", "max"): lambda one, two: max(one, two),
        ("math", "min"): lambda one, two: min(one, two),
        ("math", "abs"): abs,
        ("math", "pow"): lambda base, power: float(base**power),
        ("math", "sqrt"): math.sqrt,
        ("math", "pi"): lambda: math.pi,
        ("int", "maxvalue"): lambda: 2**31 - 1,
        ("int32", "maxvalue"): lambda: 2**31 - 1,
        ("long", "maxvalue"): lambda: 2**63 - 1,
        ("int", "parse"): lambda text: int(to_number(text)),
        ("string", "isnullorempty"): lambda text: not to_text(text),
        ("string", "isnullorwhitespace"): lambda text: not to_text(text).strip(),
        ("string", "join"): lambda separator, *items: to_text(separator).join(
            to_text(each) for item in items for each in as_list(item)
        ),
        ("string", "format"): lambda form, *items: cast("string", form),
        ("string", "empty"): lambda: "",
        ("char", "isdigit"): lambda char: to_text(char).isdigit(),
        ("regex", "match"): lambda text, pattern, *_: _match(re.search(regex(to_text(pattern)), to_text(text))),
        ("regex", "matches"): lambda text, pattern, *_: [
            _match(each) for each in re.finditer(regex(pattern), to_text(text))
        ],
        ("regex", "ismatch"): lambda text, pattern, *_: re.search(regex(to_text(pattern)), to_text(text)) is not None,
        ("regex", "replace"): lambda text, pattern, new, *_: re.sub(
            regex(to_text(pattern)), to_text(new), to_text(text)
        ),
        ("regex", "escape"): lambda text: re.escape(to_text(text)),
        ("convert", "tobase64string"): lambda data: base64.b64encode(bytes(as_list(data))).decode(),
        ("convert", "frombase64string"): lambda text: list(base64.b64decode(to_text(text))),
        ("convert", "toint32"): lambda text, base=10: int(to_text(text), int(base)),
        ("environment", "newline"): lambda: "\r\n",
        ("gc", "collect"): lambda: None,
        ("random", "shared"): lambda: random.randrange(2**31),
        ("security.accesscontrol.accesscontroltype", "allow"): lambda: "Allow",
        ("security.accesscontrol.accesscontroltype", "deny"): lambda: "Deny",
    }
    encodings = {"utf8": "utf-8", "ascii": "ascii", "unicode": "utf-16-le", "default": "utf-8"}
    if wanted == "text.encoding" and member in encodings:
        codec = encodings[member]
        return PSObject(
            "System.Text.Encoding",
            {},
            {
                "GetBytes": lambda text: list(to_text(text).encode(codec)),
                "GetString": lambda data, *_: bytes(as_list(data)).decode(codec, "replace"),
            },
        )
    function = table.get((wanted, member))
    if function is None:
        known = any(each == wanted for each, _ in table)
        if known and arguments is not None:
            raise PowerShellError(
                f"Method invocation failed because [{type_text}] does not contain a method named '{name}'.",
                "MethodNotFound",
            )
        if known:
            return None
        raise PowerShellError(f"Unable to find type [{type_text}].", "TypeNotFound")
    return function(*given)


def _match(found: re.Match[str] | None) -> PSObject:
    if found is None:
        return PSObject("System.Text.RegularExpressions.Match", {"Success": False, "Value": "", "Groups": []}, text="")
    groups = [
        PSObject(
            "System.Text.RegularExpressions.Group", {"Success": each is not None, "Value": each or ""}, text=each or ""
        )
        for each in (found[0], *found.groups())
    ]
    values = {"Success": True, "Value": found[0], "Groups": groups, "Index": found.start(), "Length": len(found[0])}
    return PSObject("System.Text.RegularExpressions.Match", values, text=found[0])

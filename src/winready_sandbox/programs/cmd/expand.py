"""`%VAR%` in all its forms; replaced before a line is parsed, so that what a variable holds is live."""

from __future__ import annotations

import re
from collections.abc import Callable

from winready_sandbox.programs.cmd.flow import number

Lookup = Callable[[str], str | None]

_SLICE = re.compile(r"~(-?\d*)(?:,(-?\d*))?$")


def modified(value: str, modifier: str) -> str:
    """`%VAR:~0,3%` and `%VAR:old=new%`."""
    match = _SLICE.match(modifier)
    if match:
        start = number(match[1])
        start = max(0, len(value) + start) if start < 0 else start
        if match[2] in (None, ""):
            return value[start:]
        size = number(match[2])
        return value[start:size] if size < 0 else value[start : start + size]
    old, _, new = modifier.partition("=")
    if old.startswith("*"):
        index = value.lower().find(old[1:].lower())
        return new + value[index + len(old) - 1 :] if index >= 0 else value
    return re.sub(re.escape(old), lambda found: new, value, flags=re.IGNORECASE) if old else value


def percent(line: str, lookup: Lookup) -> str:
    """Replace variables; unknown names stay as they are, as on any command line."""
    out: list[str] = []
    at = 0
    while at < len(line):
        end = line.find("%", at + 1) if line[at] == "%" else -1
        name, colon, modifier = line[at + 1 : end].partition(":") if end > 0 else ("", "", "")
        value = lookup(name) if name else None
        if value is None:
            out.append(line[at])
            at += 1
        else:
            out.append(modified(value, modifier) if colon and modifier else value + colon)
            at = end + 1
    return "".join(out)


def path_parts(value: str, wanted: str) -> str:
    """`%~dp0`, `%~nx1`: parts of a path."""
    if not wanted or wanted == "f":
        return value
    folder, slash, name = value.rpartition("\\")
    stem, dot, extension = name.rpartition(".")
    if not dot:
        stem, extension = name, ""
    text = ""
    if "d" in wanted:
        text += folder[:2]
    if "p" in wanted:
        text += folder[2:] + slash
    if "n" in wanted:
        text += stem
    if "x" in wanted and dot:
        text += f".{extension}"
    return text


def loop_variables(text: str, values: dict[str, str]) -> str:
    """`%i`, `%%i` and `%~nxi` inside the body of a `for`."""
    if "%" not in text or not values:
        return text

    def value(match: re.Match[str]) -> str:
        found = values.get(match[2])
        if found is None:
            return match[0]
        return path_parts(found.strip('"'), match[1][1:].lower()) if match[1] else found

    letters = "".join(re.escape(name) for name in values)
    return re.sub(rf"%%?(~[fdpnx]*)?([{letters}])", value, text)

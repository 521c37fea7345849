"""Flags and errors as agnhost's command line library gives them."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from winready_sandbox.machine.process import Process

Kind = Literal["string", "int", "bool", "duration"]
Value = str | int | bool | float
Known = Mapping[str, tuple[Kind, Value]]
COMMON: Known = {
    "v": ("string", "0"),
    "vmodule": ("string", ""),
    "log-flush-frequency": ("duration", 5.0),
    "logtostderr": ("bool", True),
    "alsologtostderr": ("bool", False),
    "help": ("bool", False),
}
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


Main = Callable[[Process, "Flags"], Awaitable[int]]


class UsageError(Exception):
    """What is printed after `Error: `; the exit code is 1."""


@dataclass(frozen=True)
class Flags:
    """Parsed flags and what is left of the arguments."""

    values: Mapping[str, Value]
    arguments: list[str]

    def text(self, name: str) -> str:
        """A string flag."""
        return str(self.values[name])

    def number(self, name: str) -> int:
        """An integer flag."""
        return int(self.values[name])

    def on(self, name: str) -> bool:
        """A boolean flag."""
        return bool(self.values[name])

    def seconds(self, name: str) -> float:
        """A duration flag."""
        return float(self.values[name])


def parse(arguments: Sequence[str], known: Known) -> Flags:
    """Read flags as pflag does: `--name=value`, `--name value`, `--switch`, anywhere."""
    flags = {**COMMON, **known}
    shorts = {"v": "v", "h": "help"}
    values: dict[str, Value] = {name: default for name, (_, default) in flags.items()}
    rest: list[str] = []
    queue = list(arguments)
    while queue:
        item = queue.pop(0)
        if item == "--":
            rest += queue
            break
        if not item.startswith("-") or item == "-":
            rest.append(item)
            continue
        if item.startswith("--"):
            name, equals, value = item[2:].partition("=")
            if name not in flags:
                raise UsageError(f"unknown flag: --{name}")
            shown = f'"--{name}"'
        else:
            letter = item[1]
            if letter not in shorts:
                raise UsageError(f"unknown shorthand flag: '{letter}' in {item}")
            name, shown = shorts[letter], f'"-{letter}, --{shorts[letter]}"'
            value = item[2:].removeprefix("=")
            equals = "=" if len(item) > 2 else ""
        kind = flags[name][0]
        if not equals:
            if kind == "bool":
                value = "true"
            elif queue:
                value = queue.pop(0)
            else:
                raise UsageError(f"flag needs an argument: {item}")
        try:
            values[name] = convert(kind, value)
        except ValueError as error:
            raise UsageError(f'invalid argument "{value}" for {shown} flag: {error}') from None
    return Flags(values, rest)


def convert(kind: Kind, text: str) -> Value:
    """A flag's value; the error texts are Go's."""
    match kind:
        case "int":
            if not re.fullmatch(r"[+-]?\d+", text):
                raise ValueError(f'strconv.ParseInt: parsing "{text}": invalid syntax')
            return int(text)
        case "bool":
            if text in ("1", "t", "T", "true", "TRUE", "True"):
                return True
            if text in ("0", "f", "F", "false", "FALSE", "False"):
                return False
            raise ValueError(f'strconv.ParseBool: parsing "{text}": invalid syntax')
        case "duration":
            return duration(text)
        case "string":
            return text


def duration(text: str) -> float:
    """Seconds of a Go duration such as `1m30s`."""
    if text == "0":
        return 0.0
    body = text.lstrip("+-")
    if not body or not re.fullmatch(r"(\d+(\.\d*)?(ns|us|µs|ms|s|m|h))+", body):
        unit = "missing unit in duration" if re.fullmatch(r"\d+(\.\d*)?", body) else "invalid duration"
        raise ValueError(f'time: {unit} "{text}"')
    total = sum(float(n) * _UNITS[unit] for n, _, unit in re.findall(r"(\d+(\.\d*)?)(ns|us|µs|ms|s|m|h)", body))
    return -total if text.startswith("-") else total


def check_arguments(flags: Flags, count: int, *, exact: bool) -> None:
    """Refuse surplus arguments, and missing ones."""
    given = len(flags.arguments)
    if given > count or (exact and given < count):
        raise UsageError(f"accepts {'' if exact else 'at most '}{count} arg(s), received {given}")

"""A stream editor: addresses, `s`, `d`, `p`, `q`, `y`, `=` and `!`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass


class SedError(Exception):
    """The script is wrong."""


@dataclass
class _Command:
    first: str
    last: str
    negated: bool
    name: str
    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    flags: str = ""
    active: bool = False


class Sed:
    """A script, ready to run."""

    def __init__(self, script: str, translate: Callable[[str], str], *, silent: bool) -> None:
        self._translate = translate
        self._silent = silent
        self._script = script
        self._at = 0
        self._commands: list[_Command] = []
        while True:
            self._skip(" \t\n;")
            if self._at >= len(script):
                break
            self._commands.append(self._command())

    def _skip(self, chars: str) -> None:
        while self._at < len(self._script) and self._script[self._at] in chars:
            self._at += 1

    def _address(self) -> str:
        match = re.compile(r"\d+|\$").match(self._script, self._at)
        if match:
            self._at = match.end()
            return match[0]
        if self._script[self._at : self._at + 1] == "/":
            self._at += 1
            return "/" + self._until("/")
        return ""

    def _until(self, delimiter: str) -> str:
        out: list[str] = []
        while self._at < len(self._script) and self._script[self._at] != delimiter:
            if self._script[self._at] == "\\" and self._script[self._at + 1 : self._at + 2] == delimiter:
                self._at += 1
                out.append(delimiter)
            elif self._script[self._at] == "\\":
                out.append(self._script[self._at : self._at + 2])
                self._at += 1
            else:
                out.append(self._script[self._at])
            self._at += 1
        if self._at >= len(self._script):
            raise SedError("unmatched '" + delimiter + "'")
        self._at += 1
        return "".join(out)

    def _command(self) -> _Command:
        first = self._address()
        last = ""
        if first and self._script[self._at : self._at + 1] == ",":
            self._at += 1
            last = self._address()
        self._skip(" \t")
        negated = self._script[self._at : self._at + 1] == "!"
        self._at += negated
        name = self._script[self._at : self._at + 1]
        self._at += 1
        command = _Command(first, last, negated, name)
        if name == "s":
            delimiter = self._script[self._at : self._at + 1]
            self._at += 1
            source = self._until(delimiter)
            command.replacement = self._until(delimiter)
            flags = re.compile(r"[gipI\d]*").match(self._script, self._at)
            command.flags = flags[0] if flags else ""
            self._at += len(command.flags)
            ignore = re.IGNORECASE if set("iI") & set(command.flags) else 0
            command.pattern = re.compile(self._translate(source), ignore)
        elif name == "y":
            delimiter = self._script[self._at : self._at + 1]
            self._at += 1
            command.flags, command.replacement = self._until(delimiter), self._until(delimiter)
        elif name not in "dpqDP=":
            raise SedError(f"unsupported command {name}")
        return command

    def run(self, text: str) -> str:
        """The text after the script."""
        lines = text.split("\n")
        ends_with_newline = lines[-1] == ""
        lines = lines[:-1] if ends_with_newline else lines
        out: list[str] = []
        for number, line in enumerate(lines, 1):
            deleted = stopped = False
            for command in self._commands:
                if self._applies(command, number, line, number == len(lines)) == command.negated:
                    continue
                if command.name == "d":
                    deleted = True
                    break
                line, printed = self._edit(command, line, number)
                out += printed
                stopped = stopped or command.name == "q"
            if not deleted and not self._silent:
                out.append(line)
            if stopped:
                break
        return "\n".join(out) + ("\n" if out and (ends_with_newline or len(out) < len(lines)) else "")

    @staticmethod
    def _edit(command: _Command, line: str, number: int) -> tuple[str, list[str]]:
        if command.name == "p":
            return line, [line]
        if command.name == "=":
            return line, [str(number)]
        if command.name == "y":
            return line.translate(str.maketrans(command.flags, command.replacement)), []
        if command.name == "s" and command.pattern is not None:
            replacement = command.replacement

            def insert(match: re.Match[str]) -> str:
                return re.sub(
                    r"\\(\d)|\\n|\\(.)|&",
                    lambda part: (
                        (match[int(part[1])] or "") if part[1] else "\n" if part[0] == "\\n" else part[2] or match[0]
                    ),
                    replacement,
                )

            changed, count = command.pattern.subn(insert, line, count=0 if "g" in command.flags else 1)
            return changed, [changed] if count and "p" in command.flags else []
        return line, []

    @staticmethod
    def _at_address(address: str, number: int, line: str, is_last: bool) -> bool:
        if address.startswith("/"):
            return re.search(address[1:], line) is not None
        return is_last if address == "$" else number == int(address)

    def _applies(self, command: _Command, number: int, line: str, is_last: bool) -> bool:
        if not command.first:
            return True
        if not command.last:
            return self._at_address(command.first, number, line, is_last)
        if command.active:
            if self._at_address(command.last, number, line, is_last):
                command.active = False
            return True
        if self._at_address(command.first, number, line, is_last):
            command.active = not (command.last.isdigit() and int(command.last) <= number)
            return True
        return False

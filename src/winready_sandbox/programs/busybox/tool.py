"""What every applet needs: options, input from files or standard input, messages in busybox's words."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import NoReturn

from winready_sandbox.machine.errors import FileError
from winready_sandbox.machine.process import Exit, Process
from winready_sandbox.programs import record
from winready_sandbox.programs.output import send
from winready_sandbox.programs.pacing import Pace

Applet = Callable[["Tool"], Awaitable[int]]


class Tool:
    """One call of an applet."""

    def __init__(self, process: Process, name: str, arguments: Sequence[str]) -> None:
        self.process = process
        self.name = name
        self.arguments = list(arguments)
        self.files = process.files
        self.who = process.identity
        self.cwd = process.cwd
        self.flags: dict[str, str] = {}
        self.failed = False
        self.pace = Pace(process)

    def options(self, letters: str) -> list[str]:
        """Take options off; letters followed by `:` have a value. Returns the operands."""
        operands: list[str] = []
        rest = list(self.arguments)
        while rest:
            word = rest.pop(0)
            if word == "--":
                operands += rest
                break
            if word.startswith("--"):
                self.usage(f"unrecognized option: {word[2:]}")
            elif word.startswith("-") and len(word) > 1:
                self._short(word[1:], letters, rest)
            else:
                operands.append(word)
        record.note(self.process, "applet", self.name, self.flags)
        return operands

    def _short(self, text: str, letters: str, rest: list[str]) -> None:
        while text:
            letter, text = text[0], text[1:]
            if letter not in letters.replace(":", ""):
                self.usage(
                    f"invalid option -- '{letter}'" if self.process.windows else f"unrecognized option: {letter}"
                )
            if f"{letter}:" in letters:
                if not text and not rest:
                    self.usage(f"option requires an argument: {letter}")
                self.flags[letter] = text or rest.pop(0)
                return
            self.flags[letter] = ""

    def usage(self, text: str) -> NoReturn:
        """A wrong call."""
        self.process.err(f"{self.name}: {text}\n")
        raise Exit(1)

    def out(self, text: str) -> None:
        """Write a text to standard output."""
        self.process.out(text)

    async def send(self, data: bytes) -> None:
        """Write much to standard output, as fast as it is read."""
        await send(self.process.stdout, data)

    def fail(self, text: str) -> None:
        """Report a problem and remember it for the exit code."""
        self.process.err(f"{self.name}: {text}\n")
        self.failed = True

    async def data(self, name: str) -> bytes | None:
        """A file's bytes (`-` is standard input), or None after a message."""
        if name == "-":
            return await self.process.stdin.read_all()
        try:
            return self.files.read(name, self.cwd, who=self.who)
        except FileError as error:
            self.fail(f"can't open '{name}': {error.linux}")
            return None

    @property
    def code(self) -> int:
        """The exit code so far."""
        return 1 if self.failed else 0


def duration(text: str) -> float:
    """`5`, `0.5`, `2m`."""
    match = re.fullmatch(r"(\d*\.?\d+)([smhd]?)", text)
    if not match:
        raise ValueError(text)
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]

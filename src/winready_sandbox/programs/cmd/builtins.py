"""Built-in commands of cmd that are about the interpreter itself; those about files are in `file_builtins`."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from winready_sandbox.machine.process import Exit
from winready_sandbox.programs.cmd.file_builtins import FILE_BUILTINS
from winready_sandbox.programs.cmd.flow import Streams, number

if TYPE_CHECKING:
    from winready_sandbox.programs.cmd.shell import Shell

Builtin = Callable[["Shell", str, "Streams"], Awaitable[int | None]]
"""Gets the rest of the command's text; returns the error level, or None to leave it as it is."""


async def echo(shell: Shell, rest: str, streams: Streams) -> int | None:
    """`echo text`, `echo.`."""
    text = rest[1:] if rest[:1] in tuple(" \t.:,;=/+[]()\\") else rest
    if not rest.strip() and rest[:1] not in (".", ":"):
        streams.out("ECHO is on.\n")
    else:
        streams.out(f"{text}\n")
    return None


async def ver(shell: Shell, rest: str, streams: Streams) -> int | None:
    """Which Windows this is."""
    streams.out(f"\n{shell.process.container.build.banner}\n")
    return 0


async def exit_(shell: Shell, rest: str, streams: Streams) -> int | None:
    """`exit [/b] [code]`."""
    words = [word for word in rest.split() if word.lower() != "/b"][:1]
    raise Exit(number(words[0]) if words and re.fullmatch(r"-?\d+", words[0]) else shell.errorlevel)


async def pause(shell: Shell, rest: str, streams: Streams) -> int | None:
    """Wait for a key."""
    streams.out("Press any key to continue . . . ")
    await streams.stdin.read(1)
    streams.out("\n")
    return None


BUILTINS: dict[str, Builtin] = {"echo": echo, "ver": ver, "exit": exit_, "pause": pause, **FILE_BUILTINS}


def find(text: str) -> tuple[str, Builtin, str] | None:
    """The built-in at the start of a text: its name, itself, and what follows."""
    match = re.match(r"[A-Za-z]+", text)
    if not match:
        return None
    name = match[0].lower()
    rest = text[len(name) :]
    function = BUILTINS.get(name)
    if function is None or (rest and rest[0] not in ' \t,;=./\\:+[]()"<>&|'):
        return None
    if rest[:1] in (".", "\\", ":", '"') and name not in ("echo", "dir", "type", "mkdir"):
        return None
    return name, function, rest

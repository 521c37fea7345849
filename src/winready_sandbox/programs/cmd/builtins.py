"""Built-in commands of cmd that are about the interpreter itself; those about files are in `file_builtins`."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from winready_sandbox.machine import commandline
from winready_sandbox.machine.process import Exit
from winready_sandbox.programs.arithmetic import ArithmeticFailure, evaluate
from winready_sandbox.programs.cmd.file_builtins import FILE_BUILTINS
from winready_sandbox.programs.cmd.flow import Goto, LeaveBatch, Streams

if TYPE_CHECKING:
    from winready_sandbox.programs.cmd.shell import Shell

Builtin = Callable[["Shell", str, "Streams"], Awaitable[int | None]]
"""Gets the rest of the command's text; returns the error level, or None to leave it as it is."""


async def echo(shell: Shell, rest: str, streams: Streams) -> int | None:
    """`echo text`, `echo.`, `echo on|off`."""
    text = rest[1:] if rest[:1] in tuple(" \t.:,;=/+[]()\\") else rest
    word = text.strip().lower()
    if not rest.strip() and rest[:1] not in (".", ":"):
        streams.out(f"ECHO is {'on' if shell.echo else 'off'}.\n")
    elif word in ("on", "off") and rest[:1] not in (".", ":"):
        shell.echo = word == "on"
    else:
        streams.out(f"{text}\n")
    return None


async def ver(shell: Shell, rest: str, streams: Streams) -> int | None:
    """Which Windows this is."""
    streams.out(f"\n{shell.process.container.build.banner}\n")
    return 0


async def exit_(shell: Shell, rest: str, streams: Streams) -> int | None:
    """`exit [/b] [code]`."""
    words = rest.split()
    batch_only = bool(words) and words[0].lower() == "/b"
    number = words[1 if batch_only else 0 :][:1]
    code = int(number[0]) if number and re.fullmatch(r"-?\d+", number[0]) else shell.errorlevel
    shell.errorlevel = code
    if batch_only and shell.batch is not None:
        raise LeaveBatch(code)
    raise Exit(code)


async def set_(shell: Shell, rest: str, streams: Streams) -> int | None:
    """`set`, `set prefix`, `set name=value`, `set /a expression`, `set /p name=prompt`."""
    text = rest.lstrip()
    if text[:2].lower() == "/a":
        return _set_number(shell, text[2:].strip(), streams)
    if text[:2].lower() == "/p":
        name, _, prompt = text[2:].strip().strip('"').partition("=")
        streams.out(prompt)
        line = (await streams.stdin.readline()).decode(errors="replace").rstrip("\r\n")
        if line:
            shell.env[name] = line
        return 0 if line else 1
    if text.startswith('"'):
        text = text[1:].rpartition('"')[0] or text[1:]
    name, equals, value = text.partition("=")
    if equals:
        if value:
            shell.env[name] = value
        elif name in shell.env:
            del shell.env[name]
        else:
            return 1
        return 0
    prefix = name.strip().upper()
    found = sorted((key, shell.env[key]) for key in shell.env if key.upper().startswith(prefix))
    if not found:
        streams.err(f"Environment variable {name.strip()} not defined\n")
        return 1
    streams.out("".join(f"{key}={value}\n" for key, value in found))
    return 0


def _set_number(shell: Shell, text: str, streams: Streams) -> int:
    value = 0
    for expression in text.strip('"').split(","):
        match = re.match(r"\s*(\w+)\s*([-+*/%&|^]|<<|>>)?=(?!=)(.*)", expression)
        try:
            value = evaluate(match[3] if match else expression, lambda name: shell.variable(name) or "0")
            if match:
                if match[2]:
                    value = evaluate(f"({shell.variable(match[1]) or 0}) {match[2]} ({value})", lambda name: "0")
                shell.env[match[1]] = str(value)
        except ArithmeticFailure as error:
            streams.err(f"{error}\n")
            return 1073750993 if "zero" in str(error) else 1073750988
    if shell.batch is None:
        streams.out(str(value))
    return 0


async def call(shell: Shell, rest: str, streams: Streams) -> int | None:
    """`call command`: variables are replaced once more."""
    text = rest.strip()
    if text.startswith(":"):
        return await _subroutine(shell, text, streams)
    return await shell.line(text, streams)


async def _subroutine(shell: Shell, text: str, streams: Streams) -> int:
    if shell.batch is None:
        streams.err("Invalid attempt to call batch label outside of batch script.\n")
        return 1
    words = commandline.split(text)
    path = shell.batch[0]
    source = shell.process.files.read(path).decode(errors="replace").replace("\r\n", "\n").split("\n")
    label = next((i for i, line in enumerate(source) if line.strip().lower() == words[0].lower()), None)
    if label is None:
        streams.err(f"The system cannot find the batch label specified - {words[0][1:]}\n")
        return 1
    outer, shell.batch = shell.batch, [path, *words[1:]]
    try:
        for line in source[label + 1 :]:
            await shell.line(line, streams)
    except LeaveBatch as left:
        return left.code
    except Goto as jump:
        if jump.label.lstrip(":").lower() != "eof":
            raise
    finally:
        shell.batch = outer
    return shell.errorlevel


async def goto(shell: Shell, rest: str, streams: Streams) -> int | None:
    """Jump inside a batch file."""
    if shell.batch is None:
        return None
    raise Goto(rest.strip())


async def shift(shell: Shell, rest: str, streams: Streams) -> int | None:
    """Move the arguments of a batch file down by one."""
    if shell.batch is not None and len(shell.batch) > 1:
        del shell.batch[1]
    return None


async def setlocal(shell: Shell, rest: str, streams: Streams) -> int | None:
    """Keep the variables for `endlocal`."""
    shell.saved.append((shell.env.copy(), shell.delayed))
    if "enabledelayedexpansion" in rest.lower():
        shell.delayed = True
    return None


async def endlocal(shell: Shell, rest: str, streams: Streams) -> int | None:
    """Bring the variables back."""
    if shell.saved:
        shell.env, shell.delayed = shell.saved.pop()
    return None


async def date(shell: Shell, rest: str, streams: Streams) -> int | None:
    """`date /t`."""
    streams.out(time.strftime("%a %m/%d/%Y \n"))
    return 0


async def clock_time(shell: Shell, rest: str, streams: Streams) -> int | None:
    """`time /t`."""
    streams.out(time.strftime("%I:%M %p\n"))
    return 0


async def vol(shell: Shell, rest: str, streams: Streams) -> int | None:
    """The label of the drive."""
    streams.out(" Volume in drive C has no label.\n Volume Serial Number is 5E7C-91F0\n")
    return 0


async def path(shell: Shell, rest: str, streams: Streams) -> int | None:
    """Show or set the search path."""
    if rest.strip():
        shell.env["PATH"] = rest.strip().lstrip("=")
    else:
        streams.out(f"PATH={shell.env.get('PATH', '')}\n")
    return 0


async def start(shell: Shell, rest: str, streams: Streams) -> int | None:
    """Run a program; with `/b` in the background."""
    text = re.sub(r'^\s*("[^"]*"\s+)?((/\w+)\s+)*', "", rest)
    name = text.split(" ")[0]
    found = shell._program(name.strip('"'))
    if found is None:
        streams.err(f"The system cannot find the file {name}.\n")
        return NOT_FOUND
    arguments = commandline.split(text)
    waits = "/wait" in rest.lower()
    child = shell.process.spawn(arguments, env=shell.env, cwd=shell.cwd, command_line=text, path=found)
    return await child.wait() if waits else 0


async def nothing(shell: Shell, rest: str, streams: Streams) -> int | None:
    """Commands that change only a screen: `rem`, `cls`, `title`, `color`, `prompt`."""
    return None


async def pause(shell: Shell, rest: str, streams: Streams) -> int | None:
    """Wait for a key."""
    streams.out("Press any key to continue . . . ")
    await streams.stdin.read(1)
    streams.out("\n")
    return None


NOT_FOUND = 9059

_OWN: dict[str, Builtin] = {
    "echo": echo,
    "ver": ver,
    "exit": exit_,
    "set": set_,
    "call": call,
    "goto": goto,
    "shift": shift,
    "setlocal": setlocal,
    "endlocal": endlocal,
    "date": date,
    "time": clock_time,
    "vol": vol,
    "path": path,
    "start": start,
    "pause": pause,
    **dict.fromkeys(("rem", "cls", "title", "color", "prompt", "verify", "break"), nothing),
}


def find(text: str) -> tuple[Builtin, str] | None:
    """The built-in at the start of a text and what follows its name."""
    match = re.match(r"[A-Za-z]+", text)
    if not match:
        return None
    name = match[0].lower()
    rest = text[len(name) :]
    function = _OWN.get(name) or FILE_BUILTINS.get(name)
    if function is None or (rest and rest[0] not in ' \t,;=./\\:+[]()"<>&|'):
        return None
    if rest[:1] in (".", "\\", ":", '"') and name not in ("echo", "cd", "chdir", "dir", "type", "md", "mkdir"):
        return None
    return function, rest

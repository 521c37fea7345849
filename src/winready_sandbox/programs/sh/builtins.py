"""Commands that the shell runs by itself."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from winready_sandbox.machine.errors import ExecError
from winready_sandbox.machine.process import BROKEN_PIPE, Exit
from winready_sandbox.programs.sh.conditions import Condition, TestFailure
from winready_sandbox.streams import Pipe, encoded

if TYPE_CHECKING:
    from winready_sandbox.programs.sh.shell import Shell

_OCTAL = re.compile(r"\\([0-7]{1,3})")
Builtin = Callable[["Shell", list[str], dict[int, Pipe]], Awaitable[int]]


async def _true(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    return 0


def _print(handles: dict[int, Pipe], text: str) -> int:
    if handles[1].closed:
        raise Exit(BROKEN_PIPE)
    handles[1].write(encoded(text))
    return 0


async def _echo(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    ends = argv[1:2] != ["-n"]
    return _print(handles, " ".join(argv[1 if ends else 2 :]) + ("\n" if ends else ""))


async def _printf(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    if len(argv) != 2 or "%" in argv[1]:
        shell.complain(handles, "printf: only a text without conversions is known here")
        return 1
    return _print(handles, _OCTAL.sub(_byte, argv[1]).replace("\\n", "\n"))


def _byte(match: re.Match[str]) -> str:
    number = int(match[1], 8) & 0xFF
    return chr(number) if number < 0x80 else chr(0xDC00 + number)


async def _test(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    words = argv[1:]
    if closing := {"[": "]", "[[": "]]"}.get(argv[0]):
        if words[-1:] != [closing]:
            shell.complain(handles, f"{argv[0]}: missing {closing}")
            return 2
        words = words[:-1]
    process = shell.process
    try:
        return 0 if Condition(words, process.files, shell.cwd, process.identity).evaluate() else 1
    except TestFailure as error:
        shell.complain(handles, str(error))
        return 2


async def _exit(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    raise Exit(int(argv[1]) if len(argv) > 1 and re.fullmatch(r"-?\d{1,9}", argv[1], re.ASCII) else shell.status)


async def _exec(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    if len(argv) < 2:
        return 0
    try:
        found = shell.find(argv[1], shell.env)
    except ExecError as error:
        shell.complain(handles, f"exec: {argv[1]}: {'Permission denied' if error.permission else 'not found'}")
        raise Exit(126 if error.permission else 127) from None
    shell.process.stdin = handles[0]
    raise Exit(await shell.process.container.replace(shell.process, found, argv[1:], shell.env, shell.cwd))


async def _trap(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    if len(argv) < 3:
        return 0
    for name in argv[2:]:
        signal = {"0": "EXIT", "15": "TERM", "2": "INT"}.get(name, name.upper().removeprefix("SIG"))
        if argv[1] == "-":
            shell.traps.pop(signal, None)
        else:
            shell.traps[signal] = argv[1]
        if signal == "TERM":
            shell.process.stop_requested.handled = argv[1] != "-"
    return 0


async def _cd(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    target = argv[1] if len(argv) > 1 else shell.env.get("HOME", "/")
    files = shell.process.files
    if not files.is_dir(target, shell.cwd):
        shell.complain(handles, f"cd: can't cd to {target}: No such file or directory")
        return 2
    shell.cwd = files.absolute(target, shell.cwd)
    return 0


BUILTINS: dict[str, Builtin] = {
    "cd": _cd,
    "true": _true,
    "echo": _echo,
    "printf": _printf,
    "test": _test,
    "[": _test,
    "[[": _test,
    "exit": _exit,
    "exec": _exec,
    "trap": _trap,
}

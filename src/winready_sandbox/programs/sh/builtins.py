"""Commands that the shell runs by itself."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from winready_sandbox.machine.errors import ExecError, FileError
from winready_sandbox.machine.process import BROKEN_PIPE, Exit
from winready_sandbox.machine.tree import Directory
from winready_sandbox.programs.busybox import printing
from winready_sandbox.programs.sh.conditions import Condition, TestFailure
from winready_sandbox.programs.sh.flow import LoopControl, Return
from winready_sandbox.streams import Pipe

if TYPE_CHECKING:
    from winready_sandbox.programs.sh.shell import Shell

Builtin = Callable[["Shell", list[str], dict[int, Pipe]], Awaitable[int]]


async def _true(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    return 0


async def _false(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    return 1


def _print(handles: dict[int, Pipe], text: str) -> int:
    if handles[1].closed:
        raise Exit(BROKEN_PIPE)
    handles[1].write(text.encode("utf-8", "surrogateescape"))
    return 0


async def _echo(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    return _print(handles, printing.echo(argv[1:]))


async def _printf(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    return _print(handles, printing.printf(argv[1:]))


async def _test(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    words = argv[1:]
    closing = {"[": "]", "[[": "]]"}.get(argv[0])
    if closing:
        if not words or words[-1] != closing:
            shell.complain(handles, f"{argv[0]}: missing {closing}")
            return 2
        words = words[:-1]
    process = shell.process
    condition = Condition(words, process.files, shell.cwd, process.identity, double=argv[0] == "[[")
    try:
        return 0 if condition.evaluate() else 1
    except TestFailure as error:
        shell.complain(handles, str(error))
        return 2


async def _cd(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    target = argv[1] if len(argv) > 1 else shell.get("HOME") or "/"
    target = shell.get("OLDPWD") or "/" if target == "-" else target
    try:
        node = shell.process.files.node(target, shell.cwd, who=shell.process.identity)
        reason = "" if isinstance(node, Directory) else "Not a directory"
    except FileError as error:
        reason = error.linux
    if reason:
        shell.complain(handles, f"cd: can't cd to {target}: {reason}")
        return 2
    shell.set("OLDPWD", shell.cwd)
    shell.cwd = shell.process.files.absolute(target, shell.cwd)
    return 0


async def _pwd(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    shown = shell.cwd.replace("\\", "/") if shell.process.windows else shell.cwd
    handles[1].write(f"{shown}\n".encode())
    return 0


async def _exit(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    raise Exit(int(argv[1]) if len(argv) > 1 and re.fullmatch(r"-?\d+", argv[1]) else shell.status)


async def _return(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    raise Return(int(argv[1]) if len(argv) > 1 else shell.status)


async def _break(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    raise LoopControl(int(argv[1]) if len(argv) > 1 else 1, ends=argv[0] == "break")


async def _export(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    for word in argv[1:]:
        name, equals, value = word.partition("=")
        if word == "-p":
            continue
        current = shell.variables.pop(name, shell.env.get(name))
        if equals or current is not None:
            shell.env[name] = value if equals else current or ""
    if argv[1:] in ([], ["-p"]):
        handles[1].write("".join(f"export {name}='{value}'\n" for name, value in sorted(shell.env.items())).encode())
    return 0


async def _local(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    for word in argv[1:]:
        name, equals, value = word.partition("=")
        if shell.locals and name not in shell.locals[-1]:
            shell.locals[-1][name] = shell.get(name)
        if equals:
            shell.set(name, value)
    return 0


async def _unset(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    for name in argv[1:]:
        shell.variables.pop(name, None)
        shell.env.pop(name, None)
        shell.functions.pop(name, None)
    return 0


async def _set(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    words = argv[1:]
    if not words:
        known = {**dict(shell.env), **shell.variables}
        handles[1].write("".join(f"{name}='{value}'\n" for name, value in sorted(known.items())).encode())
        return 0
    while words and re.fullmatch(r"[-+][a-zA-Z]+", words[0]):
        flags = words.pop(0)
        if flags[1:] == "o" and words:
            shell.options["e" if words[0] == "errexit" else words[0]] = flags[0] == "-"
            words.pop(0)
            continue
        for letter in flags[1:]:
            shell.options[letter] = flags[0] == "-"
    if words:
        shell.arguments = [shell.arguments[0], *(words[1:] if words[0] == "--" else words)]
    return 0


async def _shift(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    count = int(argv[1]) if len(argv) > 1 else 1
    if count > len(shell.arguments) - 1:
        return 1
    del shell.arguments[1 : count + 1]
    return 0


async def _read(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    names = [word for word in argv[1:] if not word.startswith("-")] or ["REPLY"]
    data = await handles[0].readline()
    line = data.decode("utf-8", "surrogateescape").rstrip("\r\n")
    values = line.split(None, len(names) - 1) if len(names) > 1 else [line.strip(" \t")]
    for index, name in enumerate(names):
        shell.set(name, values[index] if index < len(values) else "")
    return 0 if data.endswith(b"\n") or line else 1


async def _eval(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    return await shell.script(" ".join(argv[1:]), handles)


async def _source(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    try:
        text = shell.process.files.read(argv[1], shell.cwd, who=shell.process.identity).decode()
    except (FileError, IndexError):
        shell.complain(handles, f".: can't open '{' '.join(argv[1:])}': No such file or directory")
        raise Exit(2) from None
    try:
        return await shell.script(text, handles)
    except Return as returned:
        return returned.code


async def _exec(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    if len(argv) < 2:
        shell.process.stdin, shell.process.stdout, shell.process.stderr = handles[0], handles[1], handles[2]
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


async def _wait(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    jobs = [job for job in shell.jobs if not job.done()]
    if len(argv) > 1 and argv[1].isdigit():
        index = int(argv[1]) - shell.process.pid - 1
        if not 0 <= index < len(shell.jobs):
            return 127
        jobs = [shell.jobs[index]]
    if jobs:
        stopping = asyncio.create_task(asyncio.Event.wait(shell.process.stop_requested))
        waiting = asyncio.gather(*jobs)
        watched: list[asyncio.Future[Any]] = [waiting, stopping] if "TERM" in shell.traps else [waiting]
        try:
            await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
        if not waiting.done():
            return 143
        return waiting.result()[-1] if len(argv) > 1 else 0
    return shell.jobs[int(argv[1]) - shell.process.pid - 1].result() if len(argv) > 1 else 0


async def _command(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    if len(argv) > 2 and argv[1] in ("-v", "-V"):
        return await _type(shell, argv, handles)
    return await shell.execute(argv[1:], {}, handles) if len(argv) > 1 else 0


async def _type(shell: Shell, argv: list[str], handles: dict[int, Pipe]) -> int:
    name = argv[-1]
    short = argv[0] == "command"
    if name in shell.functions or name in BUILTINS:
        text = name if short else f"{name} is a shell builtin"
    else:
        try:
            path = shell.find(name, shell.env)
        except ExecError:
            if not short:
                handles[2].write(f"{name}: not found\n".encode())
            return 127
        text = path if short else f"{name} is {path}"
    handles[1].write(f"{text}\n".encode())
    return 0


BUILTINS: dict[str, Builtin] = {
    ":": _true,
    "true": _true,
    "false": _false,
    "echo": _echo,
    "printf": _printf,
    "test": _test,
    "[": _test,
    "[[": _test,
    "cd": _cd,
    "pwd": _pwd,
    "exit": _exit,
    "return": _return,
    "break": _break,
    "continue": _break,
    "export": _export,
    "readonly": _export,
    "local": _local,
    "unset": _unset,
    "set": _set,
    "shift": _shift,
    "read": _read,
    "eval": _eval,
    ".": _source,
    "source": _source,
    "exec": _exec,
    "trap": _trap,
    "wait": _wait,
    "command": _command,
    "type": _type,
    "umask": _true,
    "ulimit": _true,
    "jobs": _true,
}

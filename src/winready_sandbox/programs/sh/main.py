"""How sh reads its own arguments."""

from __future__ import annotations

import asyncio

from winready_sandbox.machine.environment import Environment
from winready_sandbox.machine.errors import FileError
from winready_sandbox.machine.process import Exit, Process
from winready_sandbox.programs.sh.parser import Parser
from winready_sandbox.programs.sh.shell import Handles, Shell
from winready_sandbox.programs.sh.words import ShellSyntaxError


async def sh(process: Process) -> int:
    """`sh -c script [name [arguments]]`, `sh file`, or a script from standard input."""
    words = process.argv[1:]
    handles: Handles = {0: process.stdin, 1: process.stdout, 2: process.stderr}
    shell = Shell(process, Environment(process.container.os, process.env), process.cwd, [process.argv[0]])
    script: str | None = None
    wants_script = False
    while words and words[0].startswith(("-", "+")) and len(words[0]) > 1:
        flags = words.pop(0)
        if flags == "--":
            break
        wants_script = wants_script or "c" in flags
        shell.traces = shell.traces or "x" in flags
    if wants_script:
        if not words:
            process.err(f"{process.argv[0]}: -c requires an argument\n")
            return 2
        script = words.pop(0)
        shell.arguments = words or [process.argv[0]]
    elif words:
        try:
            script = process.files.read(words[0], process.cwd, who=process.identity).decode(errors="replace")
        except FileError as error:
            process.err(f"{process.argv[0]}: can't open '{words[0]}': {error.linux}\n")
            return 2 if "No such" in error.linux else 126
        shell.arguments = words
    try:
        code = await (
            _interactive(shell, handles) if script is None else shell.script(script, handles, last=wants_script)
        )
    except Exit as ended:
        code = ended.code
    return await _leave(shell, code, handles)


async def _leave(shell: Shell, code: int, handles: Handles) -> int:
    action = shell.traps.pop("EXIT", "")
    if action:
        shell.status = code
        try:
            await shell.script(action, handles)
        except Exit as ended:
            code = ended.code
    for job in shell.jobs:
        if job.done() and not job.cancelled():
            job.exception()
    if shell.process.pid == 1 or shell.process.parent is None:
        for job in shell.jobs:
            job.cancel()
        if shell.jobs:
            await asyncio.wait(shell.jobs)
    return code


async def _interactive(shell: Shell, handles: Handles) -> int:
    pending = ""
    while True:
        if shell.process.tty:
            handles[1].write(f"{shell.cwd} # ".encode())
        data = await handles[0].readline()
        if not data:
            return await shell.script(pending, handles) if pending else shell.status
        pending += data.decode(errors="replace")
        if _is_complete(pending):
            text, pending = pending, ""
            await shell.script(text, handles)


def _is_complete(text: str) -> bool:
    try:
        Parser(text).parse()
    except ShellSyntaxError as error:
        return "end of file" not in str(error) and "unterminated" not in str(error)
    return True

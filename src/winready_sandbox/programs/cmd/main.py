"""How cmd.exe reads its own command line."""

from __future__ import annotations

import re

from winready_sandbox.machine import executables
from winready_sandbox.machine.environment import Environment
from winready_sandbox.machine.process import Exit, Process
from winready_sandbox.programs.cmd.flow import Streams, split_name
from winready_sandbox.programs.cmd.shell import Shell

_SPECIAL = set("&<>()@^|")
LONGEST = 8191
"""Characters of a command that cmd.exe takes."""


def command_text(process: Process) -> tuple[str | None, bool, dict[str, bool]]:
    """The command after `/c` or `/k` (None without one), whether to stay afterwards, and the other switches."""
    line = process.command_line
    rest = split_name(line)[1] if line else ""
    options = {"s": False, "q": False}
    while True:
        match = re.match(r"\s*/([a-zA-Z?])(:on|:off)?", rest)
        if not match:
            return None, True, options
        letter = match[1].lower()
        rest = rest[match.end() :]
        if letter in "ckr":
            return _unquoted(process, rest.lstrip(), keep=not options["s"]), letter == "k", options
        if letter in "sq":
            options[letter] = True
        elif letter not in "adefutv?":
            return None, True, options


def _unquoted(process: Process, text: str, *, keep: bool) -> str:
    """Quotes around the command: kept only if it is exactly one quoted name of an executable file."""
    if not text.startswith('"'):
        return text
    if keep and text.count('"') == 2 and not _SPECIAL & set(text):
        inner = text[1:].partition('"')[0]
        if " " in inner and executables.find_for_shell(process.files, inner, process.cwd, process.env):
            return text
    head, quote, tail = text[1:].rpartition('"')
    return head + tail if quote else text[1:]


async def cmd(process: Process) -> int:
    """The program."""
    shell = Shell(process, Environment("windows", process.env), process.cwd)
    streams = Streams(process.stdin, process.stdout, process.stderr)
    text, stays, options = command_text(process)
    shell.echo = not options["q"]
    if text is not None and len(text) > LONGEST:
        streams.err("The command line is too long.\n")
        return 1
    try:
        if text is not None:
            code = await shell.line(text, streams)
            if not stays:
                return code
        else:
            build = process.container.build
            streams.out(f"{build.banner}\n{build.copyright}\n")
        return await _interactive(shell, streams)
    except Exit as ended:
        return ended.code


async def _interactive(shell: Shell, streams: Streams) -> int:
    while True:
        if shell.echo:
            streams.out(f"\n{shell.cwd}>")
        data = await streams.stdin.readline()
        if not data:
            return shell.errorlevel
        line = data.decode(errors="replace").rstrip("\r\n")
        if shell.echo and not shell.process.tty:
            streams.out(f"{line}\n")
        await shell.line(line, streams)

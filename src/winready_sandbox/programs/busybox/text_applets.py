"""Applets that read text."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

from winready_sandbox.machine.errors import FileError
from winready_sandbox.pattern_search import PatternError, TooMuch, search
from winready_sandbox.programs.busybox.tool import Applet, Tool

_FOLLOW_SECONDS = 1.0
_DIGITS = 9
"""Of numbers that anybody means."""


async def tail(tool: Tool) -> int:
    """The last ten lines, and with `-f` whatever comes after them."""
    names, seen = tool.options("f"), 0
    for name in names or ["-"]:
        data = await tool.data(name)
        if data is None:
            continue
        seen = len(data)
        await tool.send(b"".join(data.splitlines(keepends=True)[-10:]))
    while "f" in tool.flags and names:
        await tool.process.container.clock.sleep(_FOLLOW_SECONDS)
        try:
            data = tool.files.read(names[-1], tool.cwd, who=tool.who)
        except FileError:
            continue
        await tool.send(data[seen:])
        seen = len(data)
    return tool.code


async def head(tool: Tool) -> int:
    """The first lines."""
    names = tool.options("n:")
    if "n" in tool.flags and not tool.flags["n"].isdigit():
        tool.usage(f"invalid number '{tool.flags['n']}'")
    for name in names or ["-"]:
        if (data := await tool.data(name)) is not None:
            await tool.send(b"".join(data.splitlines(keepends=True)[: int(tool.flags.get("n", "10"))]))
    return tool.code


async def wc(tool: Tool) -> int:
    """Count lines: `wc -l`."""
    names = tool.options("l")
    if "l" not in tool.flags:
        tool.usage("only -l is known here")
    for name in names or ["-"]:
        if (data := await tool.data(name)) is not None:
            tool.out(f"{data.count(chr(10).encode())}{f' {name}' if name != '-' else ''}\n")
    return tool.code


async def awk(tool: Tool) -> int:
    """Print one field of each line: `awk '{print $1}'`."""
    program, *names = tool.options("") or [""]
    match = re.fullmatch(r"\s*\{\s*print\s+\$(\d+)\s*\}\s*", program)
    if match is None:
        tool.usage("only '{print $N}' is known here")
        return 1
    async for line in _lines(tool, names):
        fields = [line, *line.split()]
        chosen = fields[int(match[1])] if len(match[1]) < _DIGITS and int(match[1]) < len(fields) else ""
        await tool.send(f"{chosen}\n".encode())
    return tool.code


async def cut(tool: Tool) -> int:
    """One field of each line: `cut -f2`."""
    names = tool.options("f:")
    if not tool.flags.get("f", "").isdigit():
        tool.usage("only -f N is known here")
    number = int(tool.flags["f"][:_DIGITS])
    async for line in _lines(tool, names):
        fields = line.split("\t")
        chosen = line if len(fields) == 1 else fields[number - 1] if number <= len(fields) else ""
        await tool.send(f"{chosen}\n".encode())
    return tool.code


async def hexdump(tool: Tool) -> int:
    """Bytes in columns of sixteen: `hexdump -C`."""
    names = tool.options("C")
    if "C" not in tool.flags:
        tool.usage("only -C is known here")
    for name in names or ["-"]:
        data = await tool.data(name)
        if not data:
            continue
        for at in range(0, len(data), 16):
            row = data[at : at + 16]
            halves = [" ".join(f"{byte:02x}" for byte in half) for half in (row[:8], row[8:])]
            text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
            await tool.send(f"{at:08x}  {halves[0]:<23}  {halves[1]:<23}  |{text}|\n".encode())
            await tool.pace.step()
        tool.out(f"{len(data):08x}\n")
    return tool.code


async def grep(tool: Tool) -> int:
    """Lines that match a basic regular expression, or with `-v` those that do not."""
    pattern, *names = tool.options("v") or [""]
    # Groups and alternatives have backslashes there, and are not known here.
    literal = re.sub(r"[()|+?{}]", lambda found: chr(92) + found[0], pattern)
    wanted = re.sub(r"^(\^?)\*", r"\1\\*", literal)
    matched = False
    try:
        async for line in _lines(tool, names):
            if await _matches(tool, wanted, line) != ("v" in tool.flags):
                matched = True
                await tool.send(f"{line}\n".encode())
    except PatternError:
        tool.fail(f"bad regex '{pattern}'")
    except TooMuch:
        tool.fail("out of memory")
    return 2 if tool.failed else int(not matched)


async def _lines(tool: Tool, names: list[str]) -> AsyncIterator[str]:
    """The lines of these files, or of standard input, each of them a step."""
    for name in names or ["-"]:
        data = await tool.data(name) or b""
        tool.pace.work(len(data))
        for line in data.decode("utf-8", "replace").splitlines():
            yield line
            await tool.pace.step()


async def _matches(tool: Tool, pattern: str, line: str) -> bool:
    """Whether a line holds a pattern; everybody else goes on meanwhile."""
    turns = search(pattern, line)
    while True:
        try:
            next(turns)
        except StopIteration as end:
            return end.value is not None
        await tool.pace.step()


APPLETS: dict[str, Applet] = {
    "tail": tail,
    "wc": wc,
    "awk": awk,
    "grep": grep,
    "head": head,
    "cut": cut,
    "hexdump": hexdump,
}

"""Applets that ask the system, wait, or run something else."""

from __future__ import annotations

import re

from winready_sandbox.programs.busybox.tool import Applet, Tool, duration
from winready_sandbox.programs.sh.conditions import Condition, TestFailure


async def echo(tool: Tool) -> int:
    """Print arguments."""
    tool.out(f"{' '.join(tool.arguments)}\n")
    return 0


async def true(tool: Tool) -> int:
    """Succeed."""
    return 0


async def test(tool: Tool) -> int:
    """Evaluate a condition."""
    try:
        return 0 if Condition(tool.arguments, tool.files, tool.cwd, tool.who).evaluate() else 1
    except TestFailure as error:
        tool.fail(str(error))
        return 2


async def sleep(tool: Tool) -> int:
    """Wait for some cluster seconds."""
    try:
        total = sum(duration(word) for word in tool.arguments) if tool.arguments[:1] != ["infinity"] else 10**9
    except ValueError as error:
        tool.usage(f"invalid number '{error}'")
        return 1
    if not tool.arguments:
        tool.usage("missing operand")
    await tool.process.container.clock.sleep(total)
    return 0


async def printenv(tool: Tool) -> int:
    """Show variables."""
    missing = False
    for name in tool.arguments:
        value = tool.process.env.get(name)
        missing = missing or value is None
        tool.out("" if value is None else f"{value}\n")
    return int(missing)


async def whoami(tool: Tool) -> int:
    """The user's name."""
    name = tool.who.name if tool.who else "root"
    if not name and tool.who:
        tool.fail(f"unknown uid {tool.who.uid}")
        return 1
    tool.out(f"{name}\n")
    return 0


async def id_(tool: Tool) -> int:
    """The user's name, or numbers."""
    tool.options("un")
    uid, gid = (tool.who.uid, tool.who.gid) if tool.who else (0, 0)
    name = tool.who.name if tool.who else "root"
    if "u" in tool.flags:
        if "n" in tool.flags and not name:
            tool.fail(f"unknown ID {uid}")
            return 1
        tool.out(f"{name if 'n' in tool.flags else uid}\n")
    else:
        group = "(root)" if gid == 0 else ""
        tool.out(f"uid={uid}{f'({name})' if name else ''} gid={gid}{group}\n")
    return 0


async def hostname(tool: Tool) -> int:
    """The computer's name."""
    tool.options("")
    tool.out(f"{tool.process.container.hostname}\n")
    return 0


async def uname(tool: Tool) -> int:
    """Which system this is."""
    tool.options("so")
    windows = tool.process.windows
    values = {"s": "Windows_NT" if windows else "Linux", "o": "MS/Windows" if windows else "Linux"}
    tool.out(" ".join(values[letter] for letter in sorted(tool.flags, reverse=True) or ["s"]) + "\n")
    return 0


async def seq(tool: Tool) -> int:
    """Count."""
    operands = [word for word in tool.arguments if not re.fullmatch(r"-[ws].*", word)]
    try:
        numbers = [int(word) for word in operands]
    except ValueError:
        tool.usage("invalid number")
        return 1
    first, step, last = {1: (1, 1, *numbers), 2: (numbers[0], 1, *numbers[1:])}.get(len(numbers), tuple(numbers))[:3]
    tool.out("".join(f"{number}\n" for number in range(first, last + (1 if step > 0 else -1), step)))
    return 0


APPLETS: dict[str, Applet] = {
    "echo": echo,
    "true": true,
    "test": test,
    "sleep": sleep,
    "seq": seq,
    "printenv": printenv,
    "whoami": whoami,
    "id": id_,
    "hostname": hostname,
    "uname": uname,
}

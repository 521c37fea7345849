"""Applets that ask the system, wait, or run something else."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

from winready_sandbox.programs.busybox.tool import Applet, Tool, duration
from winready_sandbox.programs.sh.conditions import Condition, TestFailure

_AT_ONCE = 1000
"""Numbers that `seq` writes before anybody else gets a turn."""


async def echo(tool: Tool) -> int:
    """Print arguments."""
    ends = tool.arguments[:1] != ["-n"]
    tool.out(" ".join(tool.arguments[0 if ends else 1 :]) + ("\n" if ends else ""))
    return 0


async def true(tool: Tool) -> int:
    """Succeed."""
    return 0


async def false(tool: Tool) -> int:
    """Fail."""
    return 1


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
    await tool.process.container.clock.sleep(min(total, 10**9))
    return 0


async def printenv(tool: Tool) -> int:
    """Show variables."""
    missing = False
    for name in tool.arguments:
        value = tool.process.env.get(name)
        missing = missing or value is None
        tool.out("" if value is None else f"{value}\n")
    return int(missing)


async def env(tool: Tool) -> int:
    """Show all variables."""
    tool.out("".join(f"{name}={value}\n" for name, value in tool.process.env.items()))
    return 0


async def ip(tool: Tool) -> int:
    """Make a network device, where the container may: `ip link add NAME type dummy`."""
    if tool.arguments[:2] != ["link", "add"]:
        tool.usage("only 'link add' is known here")
    if not tool.process.container.privileged:
        tool.process.err("ip: RTNETLINK answers: Operation not permitted\n")
        return 2
    return 0


async def mount(tool: Tool) -> int:
    """Show what is mounted, of all types or of one."""
    tool.options("t:")
    for line in ((await tool.data("/proc/mounts")) or b"").decode().splitlines():
        source, place, kind, options = line.split()[:4]
        if tool.flags.get("t", kind) == kind:
            tool.out(f"{source} on {place} type {kind} ({options})\n")
    return tool.code


async def sysctl(tool: Tool) -> int:
    """Show settings of the kernel."""
    for name in tool.options(""):
        data = await tool.data(f"/proc/sys/{name.replace('.', '/')}")
        if data is not None:
            tool.out(f"{name} = {data.decode().strip()}\n")
    return tool.code


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
    if not 1 <= len(numbers) <= 3:
        tool.usage("wrong number of operands")
    first, last = numbers[0] if len(numbers) > 1 else 1, numbers[-1]
    step = numbers[1] if len(numbers) == 3 else 1
    if step == 0:
        tool.usage("increment is zero")
    wanted = iter(range(first, last + (1 if step > 0 else -1), step))
    while piece := "".join(f"{number}\n" for number in itertools.islice(wanted, _AT_ONCE)):
        await tool.send(piece.encode())
        await tool.pace.step()
    return 0


_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": int.__add__,
    "-": int.__sub__,
    "*": int.__mul__,
    "/": lambda left, right: int(left / right),
    "%": lambda left, right: left - right * int(left / right),
}


async def expr(tool: Tool) -> int:
    """Two numbers and what to do with them."""
    if len(tool.arguments) != 3 or tool.arguments[1] not in _OPERATORS:
        tool.usage("syntax error")
    left, operator, right = tool.arguments
    try:
        value = _OPERATORS[operator](int(left), int(right))
    except ValueError:
        tool.fail("non-numeric argument")
        return 2
    except ZeroDivisionError:
        tool.fail("division by zero")
        return 2
    tool.out(f"{value}\n")
    return int(value == 0)


APPLETS: dict[str, Applet] = {
    "echo": echo,
    "true": true,
    "false": false,
    "test": test,
    "sleep": sleep,
    "seq": seq,
    "printenv": printenv,
    "env": env,
    "expr": expr,
    "ip": ip,
    "mount": mount,
    "sysctl": sysctl,
    "whoami": whoami,
    "id": id_,
    "hostname": hostname,
    "uname": uname,
}

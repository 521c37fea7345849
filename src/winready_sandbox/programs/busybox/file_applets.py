"""Applets that work on files."""

from __future__ import annotations

import re
import time

from winready_sandbox.clock import wall_time
from winready_sandbox.machine.errors import AlreadyExists, FileError
from winready_sandbox.machine.tree import Device, Directory, File, Node, Symlink
from winready_sandbox.programs.busybox.tool import Applet, Tool
from winready_sandbox.programs.holding import LARGEST
from winready_sandbox.programs.output import FileWriter, send
from winready_sandbox.streams import Pipe

_ZERO = "/dev/zero"
_ENTRY = 64
"""What an entry of a listing costs, in bytes of work."""


async def cat(tool: Tool) -> int:
    """Copy files, or standard input as it comes."""
    for name in tool.options("") or ["-"]:
        if name == "-":
            while chunk := await tool.process.stdin.read():
                await tool.send(chunk)
        elif (data := await tool.data(name)) is not None:
            await tool.send(data)
    return tool.code


def _mode_text(node: Node) -> str:
    kind = (
        "d"
        if isinstance(node, Directory)
        else "l"
        if isinstance(node, Symlink)
        else "c"
        if isinstance(node, Device)
        else "-"
    )
    bits = "".join(letter if node.mode >> (8 - index) & 1 else "-" for index, letter in enumerate("rwxrwxrwx"))
    if node.mode & 0o1000:
        bits = bits[:-1] + "t"
    return kind + bits


def size_of(node: Node) -> int:
    """The length that listings show."""
    if isinstance(node, File):
        return node.size
    return len(node.target) if isinstance(node, Symlink) else 4096 if isinstance(node, Directory) else 0


async def ls(tool: Tool) -> int:
    """List directories."""
    names = tool.options("dhil") or ["."]
    for name in names:
        try:
            node = tool.files.node(name, tool.cwd, who=tool.who, follow="l" not in tool.flags)
            inside = isinstance(node, Directory) and "d" not in tool.flags
            entries = tool.files.list(name, tool.cwd, who=tool.who) if inside else [(name, node)]
        except FileError as error:
            tool.fail(f"{name}: {error.linux}")
            continue
        if inside and len(names) > 1:
            tool.out(f"{name}:\n")
        for entry, below in entries:
            tool.out(f"{_long(below)} {entry}\n" if "l" in tool.flags else f"{entry}\n")
    return tool.code


def _long(node: Node) -> str:
    owner, group = ("root" if number == 0 else str(number) for number in (node.uid, node.gid))
    stamp = time.strftime("%b %e %H:%M", time.localtime(node.mtime))
    return f"{_mode_text(node)} {1:4d} {owner:<8} {group:<8} {size_of(node):9d} {stamp}"


async def mkdir(tool: Tool) -> int:
    """Make directories."""
    for name in tool.options(""):
        try:
            tool.files.mkdir(name, tool.cwd, who=tool.who)
        except FileError as error:
            tool.fail(f"can't create directory '{name}': {error.linux}")
    return tool.code


async def touch(tool: Tool) -> int:
    """Make files, or renew their time."""
    for name in tool.options(""):
        try:
            if tool.files.exists(name, tool.cwd):
                tool.files.change(name, tool.cwd, who=tool.who).mtime = wall_time()
            else:
                tool.files.write(name, b"", tool.cwd, who=tool.who)
        except FileError as error:
            tool.fail(f"{name}: {error.linux}")
    return tool.code


def _goal(tool: Tool, source: str, target: str) -> str:
    if not tool.files.is_dir(target, tool.cwd):
        return target
    return f"{target.rstrip('/')}/{source.rstrip('/').replace(chr(92), '/').rpartition('/')[2]}"


async def mv(tool: Tool) -> int:
    """Move files and trees."""
    operands = tool.options("v")
    if len(operands) < 2:
        tool.usage("missing file operand")
    *sources, target = operands
    for source in sources:
        goal = _goal(tool, source, target)
        try:
            tool.files.rename(source, goal, tool.cwd, who=tool.who)
        except FileError as error:
            tool.fail(f"can't rename '{source}': {error.linux}")
        else:
            if "v" in tool.flags:
                tool.out(f"'{source}' -> '{goal}'\n")
    return tool.code


async def ln(tool: Tool) -> int:
    """Make links."""
    operands = tool.options("s")
    if len(operands) < 2:
        tool.usage("missing file operand")
    target, name = operands[0], _goal(tool, operands[0], operands[1])
    try:
        if "s" in tool.flags:
            tool.files.symlink(name, target, tool.cwd, who=tool.who)
        else:
            tool.files.write(name, tool.files.read(target, tool.cwd, who=tool.who), tool.cwd, who=tool.who)
    except AlreadyExists:
        tool.fail(f"{name}: File exists")
    except FileError as error:
        tool.fail(f"{name}: {error.linux}")
    return tool.code


async def chmod(tool: Tool) -> int:
    """Change modes."""
    if len(tool.arguments) < 2:
        tool.usage("missing operand")
    mode, *names = tool.arguments
    if not re.fullmatch(r"[0-7]+", mode):
        tool.usage(f"invalid mode '{mode}'")
    for name in names:
        try:
            tool.files.change(name, tool.cwd, who=tool.who).mode = int(mode, 8)
        except FileError as error:
            tool.fail(f"{name}: {error.linux}")
    return tool.code


async def stat(tool: Tool) -> int:
    """Show a file's mode: `stat -c %a`."""
    names = tool.options("c:")
    if tool.flags.get("c") != "%a":
        tool.usage("only -c %a is known here")
    for name in names:
        try:
            tool.out(f"{tool.files.node(name, tool.cwd, who=tool.who, follow=False).mode & 0o7777:o}\n")
        except FileError as error:
            tool.fail(f"can't stat '{name}': {error.linux}")
    return tool.code


async def dd(tool: Tool) -> int:
    """Copy blocks."""
    settings = dict(word.partition("=")[::2] for word in tool.arguments if "=" in word)
    units = {"": 1, "c": 1, "k": 1024, "K": 1024, "M": 2**20, "G": 2**30}

    def number(name: str, default: str) -> int:
        match = re.fullmatch(r"(\d{1,15})([ckKMG]?)B?", settings.get(name, default), re.ASCII)
        if not match:
            tool.usage(f"invalid number '{settings[name]}'")
        return int(match[1]) * units[match[2]]

    block, count = number("bs", "512"), number("count", "0") if "count" in settings else None
    if block == 0:
        tool.usage(f"invalid number '{settings['bs']}'")
    if block > LARGEST:
        tool.fail("out of memory")
        return 1
    source, data = settings.get("if"), b""
    if source != _ZERO:
        found = await tool.data(source or "-")
        if found is None:
            return 1
        data = found
    wanted = None if count is None else block * count
    size = wanted if source == _ZERO else min(len(data), len(data) if wanted is None else wanted)
    target: Pipe = tool.process.stdout
    if "of" in settings:
        try:
            opened = tool.files.open(settings["of"], tool.cwd, who=tool.who, access="w", share="rw")
        except FileError as error:
            tool.fail(f"can't open '{settings['of']}': {error.linux}")
            return 1
        target = FileWriter(opened, tool.files.owner)
    done = 0
    try:
        while size is None or done < size:
            piece = min(LARGEST, LARGEST if size is None else size - done)
            await send(target, bytes(piece) if source == _ZERO else data[done : done + piece])
            done += piece
            tool.pace.work(piece)
            await tool.pace.step()
    except FileError as error:
        tool.fail(f"error writing '{settings['of']}': {error.linux}")
    finally:
        if target is not tool.process.stdout:
            target.close()
    blocks = f"{done // block}+{1 if done % block else 0}"
    tool.process.err(f"{blocks} records in\n{blocks} records out\n{done} bytes copied\n")
    return tool.code


async def find(tool: Tool) -> int:
    """Everything in a tree."""
    for root in tool.options("") or ["."]:
        try:
            for path, _ in tool.files.walk(root, tool.cwd, who=tool.who):
                tool.out(path.replace("\\", "/") + "\n")
                tool.pace.work(_ENTRY)
                await tool.pace.step()
                await tool.process.stdout.room()
        except FileError as error:
            tool.fail(f"{root}: {error.linux}")
    return tool.code


APPLETS: dict[str, Applet] = {
    "cat": cat,
    "ls": ls,
    "mkdir": mkdir,
    "touch": touch,
    "mv": mv,
    "ln": ln,
    "chmod": chmod,
    "stat": stat,
    "dd": dd,
    "find": find,
}

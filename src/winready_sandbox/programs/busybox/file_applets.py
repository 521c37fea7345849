"""Applets that work on files."""

from __future__ import annotations

import fnmatch
import re
import time

from winready_sandbox.clock import wall_time
from winready_sandbox.machine.errors import AlreadyExists, FileError, NotFound
from winready_sandbox.machine.tree import Device, Directory, File, Node, Symlink
from winready_sandbox.programs.busybox.tool import Applet, Tool


async def cat(tool: Tool) -> int:
    """Copy files, or standard input as it comes."""
    for name in tool.options("uAbnv") or ["-"]:
        if name == "-":
            while chunk := await tool.process.stdin.read():
                tool.process.stdout.write(chunk)
        elif (data := await tool.data(name)) is not None:
            tool.process.stdout.write(data)
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
        return len(node.data)
    return len(node.target) if isinstance(node, Symlink) else 4096 if isinstance(node, Directory) else 0


async def ls(tool: Tool) -> int:
    """List directories."""
    names = tool.options("laA1dhinrRtSFpgoLHq", {"all": "a", "color": "q"}) or ["."]
    files: list[tuple[str, Node]] = []
    folders: list[str] = []
    for name in names:
        try:
            node = tool.files.node(name, tool.cwd, who=tool.who, follow="l" not in tool.flags)
        except FileError as error:
            tool.fail(f"{name}: {error.linux}")
            continue
        if isinstance(node, Directory) and "d" not in tool.flags:
            folders.append(name)
        else:
            files.append((name, node))
    _show(tool, files)
    for index, folder in enumerate(folders):
        if len(names) > 1:
            tool.out(("\n" if files or index else "") + f"{folder}:\n")
        try:
            entries = tool.files.list(folder, tool.cwd, who=tool.who)
        except FileError as error:
            tool.fail(f"can't open '{folder}': {error.linux}")
            continue
        hidden = "a" in tool.flags or "A" in tool.flags
        shown = [entry for entry in entries if hidden or not entry[0].startswith(".")]
        if "a" in tool.flags:
            shown = [(".", Directory()), ("..", Directory()), *shown]
        if "l" in tool.flags:
            tool.out(f"total {sum((size_of(node) + 1023) // 1024 for _, node in shown)}\n")
        _show(tool, shown)
    return tool.code


def _show(tool: Tool, entries: list[tuple[str, Node]]) -> None:
    if "t" in tool.flags:
        entries = sorted(entries, key=lambda entry: -entry[1].mtime)
    if "r" in tool.flags:
        entries = entries[::-1]
    for name, node in entries:
        if "l" not in tool.flags:
            tool.out(f"{name}\n")
            continue
        owner = {0: "root"}.get(node.uid, str(node.uid)) if "n" not in tool.flags else str(node.uid)
        group = {0: "root"}.get(node.gid, str(node.gid)) if "n" not in tool.flags else str(node.gid)
        stamp = time.strftime("%b %e %H:%M", time.localtime(node.mtime))
        target = f" -> {node.target}" if isinstance(node, Symlink) else ""
        tool.out(f"{_mode_text(node)} {1:4d} {owner:<8} {group:<8} {size_of(node):9d} {stamp} {name}{target}\n")


async def mkdir(tool: Tool) -> int:
    """Make directories."""
    for name in tool.options("pm:v", {"parents": "p"}):
        mode = int(tool.flags.get("m", "755"), 8)
        try:
            tool.files.mkdir(name, tool.cwd, who=tool.who, parents="p" in tool.flags, mode=mode)
        except FileError as error:
            tool.fail(f"can't create directory '{name}': {error.linux}")
    return tool.code


async def rm(tool: Tool) -> int:
    """Remove files and trees."""
    for name in tool.options("rRfiv", {"recursive": "r", "force": "f"}):
        try:
            node = tool.files.node(name, tool.cwd, who=tool.who, follow=False)
            recursive = "r" in tool.flags or "R" in tool.flags
            if isinstance(node, Directory) and not recursive:
                tool.fail(f"'{name}' is a directory")
                continue
            tool.files.remove(name, tool.cwd, who=tool.who, recursive=recursive)
        except NotFound as error:
            if "f" not in tool.flags:
                tool.fail(f"can't remove '{name}': {error.linux}")
        except FileError as error:
            tool.fail(f"can't remove '{name}': {error.linux}")
    return tool.code


async def rmdir(tool: Tool) -> int:
    """Remove empty directories."""
    for name in tool.options("p"):
        try:
            tool.files.remove(name, tool.cwd, who=tool.who)
        except FileError as error:
            tool.fail(f"'{name}': {error.linux}")
    return tool.code


async def touch(tool: Tool) -> int:
    """Make files, or renew their time."""
    for name in tool.options("cahmr:d:t:"):
        try:
            if tool.files.exists(name, tool.cwd):
                tool.files.change(name, tool.cwd, who=tool.who).mtime = wall_time()
            elif "c" not in tool.flags:
                tool.files.write(name, b"", tool.cwd, who=tool.who)
        except FileError as error:
            tool.fail(f"{name}: {error.linux}")
    return tool.code


def _goal(tool: Tool, source: str, target: str) -> str:
    if not tool.files.is_dir(target, tool.cwd):
        return target
    return f"{target.rstrip('/')}/{source.rstrip('/').replace(chr(92), '/').rpartition('/')[2]}"


async def cp(tool: Tool) -> int:
    """Copy files and trees."""
    operands = tool.options("rRapfdLPviu", {"recursive": "r"})
    if len(operands) < 2:
        tool.usage("missing file operand")
    *sources, target = operands
    if len(sources) > 1 and not tool.files.is_dir(target, tool.cwd):
        tool.usage(f"target '{target}' is not a directory")
    for source in sources:
        try:
            _copy(tool, source, _goal(tool, source, target))
        except FileError as error:
            there = error.path == source
            tool.fail(f"can't stat '{source}': {error.linux}" if there else f"can't create '{target}': {error.linux}")
    return tool.code


def _copy(tool: Tool, source: str, target: str) -> None:
    node = tool.files.node(source, tool.cwd, who=tool.who)
    if not isinstance(node, Directory):
        tool.files.write(target, tool.files.read(source, tool.cwd, who=tool.who), tool.cwd, who=tool.who)
        tool.files.change(target, tool.cwd, who=tool.who).mode = node.mode
        return
    if not {"r", "R", "a"} & set(tool.flags):
        tool.fail(f"omitting directory '{source}'")
        return
    tool.files.mkdir(target, tool.cwd, who=tool.who, parents=True)
    for name, _ in tool.files.list(source, tool.cwd, who=tool.who):
        _copy(tool, f"{source.rstrip('/')}/{name}", f"{target}/{name}")


async def mv(tool: Tool) -> int:
    """Move files and trees."""
    operands = tool.options("finv")
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
    operands = tool.options("sfnv")
    if len(operands) < 2:
        tool.usage("missing file operand")
    target, name = operands[0], _goal(tool, operands[0], operands[1])
    try:
        if "f" in tool.flags and tool.files.exists(name, tool.cwd):
            tool.files.remove(name, tool.cwd, who=tool.who)
        if "s" in tool.flags:
            tool.files.symlink(name, target, tool.cwd, who=tool.who)
        else:
            tool.files.write(name, tool.files.read(target, tool.cwd, who=tool.who), tool.cwd, who=tool.who)
    except AlreadyExists:
        tool.fail(f"{name}: File exists")
    except FileError as error:
        tool.fail(f"{name}: {error.linux}")
    return tool.code


def changed_mode(mode: int, text: str) -> int:
    """A mode after `755` or `u+x,go-w`."""
    if re.fullmatch(r"[0-7]+", text):
        return int(text, 8)
    for clause in text.split(","):
        match = re.fullmatch(r"([ugoa]*)([-+=])([rwxXst]*)", clause)
        if not match:
            raise ValueError(text)
        who = match[1].replace("a", "ugo") or "ugo"
        bits = sum({"r": 4, "w": 2, "x": 1}.get(letter.lower(), 0) for letter in set(match[3]))
        for each in set(who):
            shifted = bits << {"u": 6, "g": 3, "o": 0}[each]
            whole = 7 << {"u": 6, "g": 3, "o": 0}[each]
            mode = (
                mode | shifted if match[2] == "+" else mode & ~shifted if match[2] == "-" else mode & ~whole | shifted
            )
    return mode


async def chmod(tool: Tool) -> int:
    """Change modes."""
    arguments = [word for word in tool.arguments if word not in ("-R", "-v", "-f")]
    if len(arguments) < 2:
        tool.usage("missing operand")
    for name in arguments[1:]:
        try:
            node = tool.files.change(name, tool.cwd, who=tool.who)
            node.mode = changed_mode(node.mode, arguments[0])
        except FileError as error:
            tool.fail(f"{name}: {error.linux}")
        except ValueError:
            tool.usage(f"invalid mode '{arguments[0]}'")
    return tool.code


async def chown(tool: Tool) -> int:
    """Change owners."""
    operands = tool.options("Rvfh")
    user, _, group = operands[0].partition(":") if operands else ("", "", "")
    for name in operands[1:]:
        try:
            node = tool.files.change(name, tool.cwd, who=tool.who)
        except FileError as error:
            tool.fail(f"{name}: {error.linux}")
            continue
        node.uid = int(user) if user.isdigit() else 0
        if group:
            node.gid = int(group) if group.isdigit() else 0
    return tool.code


async def stat(tool: Tool) -> int:
    """Show a file's attributes."""
    for name in tool.options("c:Lft", {"format": "c"}):
        try:
            node = tool.files.node(name, tool.cwd, who=tool.who, follow="L" in tool.flags)
        except FileError as error:
            tool.fail(f"can't stat '{name}': {error.linux}")
            continue
        kind = (
            "directory"
            if isinstance(node, Directory)
            else "symbolic link"
            if isinstance(node, Symlink)
            else "regular file"
        )
        values = {
            "a": f"{node.mode & 0o7777:o}",
            "A": _mode_text(node),
            "f": f"{node.mode:x}",
            "F": kind,
            "g": str(node.gid),
            "u": str(node.uid),
            "G": "root" if node.gid == 0 else "UNKNOWN",
            "U": "root" if node.uid == 0 else "UNKNOWN",
            "n": name,
            "N": f"'{name}'",
            "s": str(size_of(node)),
            "Y": str(int(node.mtime)),
            "y": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(node.mtime)),
        }
        form = tool.flags.get("c")
        if form is None:
            tool.out(f"  File: {name}\n  Size: {size_of(node)}\t{kind}\n")
            tool.out(f"Access: ({node.mode & 0o7777:04o}/{_mode_text(node)})  Uid: ({node.uid})   Gid: ({node.gid})\n")
        else:
            tool.out(
                "".join(
                    values.get(part[1:], part) if part[:1] == "%" else part for part in re.split(r"(%[a-zA-Z])", form)
                )
            )
            tool.out("\n")
    return tool.code


async def dd(tool: Tool) -> int:
    """Copy blocks."""
    settings = dict(word.partition("=")[::2] for word in tool.arguments if "=" in word)
    units = {"": 1, "c": 1, "k": 1024, "K": 1024, "M": 2**20, "G": 2**30}
    match = re.fullmatch(r"(\d+)([ckKMG]?)B?", settings.get("bs", "512"))
    if not match:
        tool.usage(f"invalid number '{settings.get('bs')}'")
        return 1
    block = int(match[1]) * units[match[2]]
    count = int(settings["count"]) if "count" in settings else None
    source = settings.get("if")
    if source == "/dev/zero" and count is not None:
        data: bytes | None = bytes(block * count)
    else:
        data = await tool.data(source or "-")
    if data is None:
        return 1
    data = data if count is None else data[: block * count]
    try:
        if "of" in settings:
            tool.files.write(settings["of"], data, tool.cwd, who=tool.who)
        else:
            tool.process.stdout.write(data)
    except FileError as error:
        tool.fail(f"can't open '{settings['of']}': {error.linux}")
        return 1
    blocks = f"{len(data) // block}+{1 if len(data) % block else 0}"
    tool.process.err(f"{blocks} records in\n{blocks} records out\n{len(data)} bytes copied\n")
    return 0


async def find(tool: Tool) -> int:
    """Search a tree: -name, -iname, -type, -maxdepth, -mindepth, -print, -delete."""
    arguments = list(tool.arguments)
    roots: list[str] = []
    while arguments and not arguments[0].startswith(("-", "!", "(")):
        roots.append(arguments.pop(0))
    tests = dict(zip(arguments, [*arguments, ""][1:], strict=True))
    least, most = int(tests.get("-mindepth", "0")), int(tests.get("-maxdepth", "99"))
    for root in roots or ["."]:
        try:
            found = list(tool.files.walk(root, tool.cwd, who=tool.who))
        except FileError as error:
            tool.fail(f"{root}: {error.linux}")
            continue
        base = root.rstrip("/\\")
        for path, node in found:
            shown = path.replace("\\", "/")
            depth = shown[len(base) :].count("/") if path != root else 0
            if not least <= depth <= most or not _matches(tests, shown, node):
                continue
            if "-delete" in arguments:
                tool.files.remove(path, tool.cwd, who=tool.who, recursive=True)
            else:
                tool.out(f"{shown}\n")
    return tool.code


def _matches(tests: dict[str, str], path: str, node: Node) -> bool:
    name = path.rstrip("/").rpartition("/")[2]
    if "-name" in tests and not fnmatch.fnmatchcase(name, tests["-name"]):
        return False
    if "-iname" in tests and not fnmatch.fnmatchcase(name.lower(), tests["-iname"].lower()):
        return False
    kinds = {"f": File, "d": Directory, "l": Symlink}
    return "-type" not in tests or isinstance(node, kinds.get(tests["-type"], Node))


async def mktemp(tool: Tool) -> int:
    """Make a file or directory with a new name."""
    operands = tool.options("dp:uqt")
    template = operands[0] if operands else f"{tool.flags.get('p') or '/tmp'}/tmp.XXXXXX"  # noqa: S108
    name = re.sub("X{3,}", f"{time.monotonic_ns() % 2**24:06x}", template)
    try:
        if "d" in tool.flags:
            tool.files.mkdir(name, tool.cwd, who=tool.who, mode=0o700)
        else:
            tool.files.write(name, b"", tool.cwd, who=tool.who)
    except FileError as error:
        tool.fail(f"(null): {error.linux}")
        return 1
    tool.out(f"{name}\n")
    return 0


async def truncate(tool: Tool) -> int:
    """Set the length of files."""
    for name in tool.options("cs:"):
        size = int(re.sub(r"\D", "", tool.flags.get("s", "0")) or 0)
        try:
            data = tool.files.read(name, tool.cwd, who=tool.who) if tool.files.exists(name, tool.cwd) else b""
            tool.files.write(name, data[:size].ljust(size, b"\0"), tool.cwd, who=tool.who)
        except FileError as error:
            tool.fail(f"{name}: {error.linux}")
    return tool.code


async def du(tool: Tool) -> int:
    """How much a tree holds, in KiB."""
    for name in tool.options("shkma") or ["."]:
        try:
            total = sum(size_of(node) for _, node in tool.files.walk(name, tool.cwd, who=tool.who))
        except FileError as error:
            tool.fail(f"{name}: {error.linux}")
            continue
        tool.out(f"{(total + 1023) // 1024}\t{name}\n")
    return tool.code


APPLETS: dict[str, Applet] = {
    "cat": cat,
    "ls": ls,
    "mkdir": mkdir,
    "rm": rm,
    "rmdir": rmdir,
    "touch": touch,
    "cp": cp,
    "mv": mv,
    "ln": ln,
    "chmod": chmod,
    "chown": chown,
    "stat": stat,
    "dd": dd,
    "find": find,
    "mktemp": mktemp,
    "truncate": truncate,
    "du": du,
}

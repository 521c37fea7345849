"""Built-in commands of cmd that work on files."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from winready_sandbox.machine import commandline, paths
from winready_sandbox.machine.errors import AlreadyExists, FileError, NotFound
from winready_sandbox.machine.tree import Directory, File, Node, Symlink
from winready_sandbox.programs.cmd.flow import Streams
from winready_sandbox.programs.output import send

if TYPE_CHECKING:
    from winready_sandbox.programs.cmd.shell import Shell

_FREE_BYTES = 104_857_600_000


def _arguments(rest: str) -> tuple[list[str], set[str]]:
    """Names and lower-case switches of a file command."""
    names: list[str] = []
    switches: set[str] = set()
    for word in commandline.split(rest.replace(",", " ").replace('\\"', '"')):
        if word.startswith("/") and len(word) > 1:
            switches.update(f"/{part.lower()}" for part in word[1:].split("/") if part)
        elif "/" in word and word.rpartition("/")[2].lower() in ("s", "q", "b", "y"):
            head, _, switch = word.rpartition("/")
            names.append(head)
            switches.add(f"/{switch.lower()}")
        else:
            names.append(word)
    return names, switches


def _expand(shell: Shell, name: str) -> list[str]:
    return shell.matching(name) if any(char in name for char in "*?") else [name]


async def type_(shell: Shell, rest: str, streams: Streams) -> int | None:
    """Show files."""
    names, _ = _arguments(rest)
    if not names:
        streams.err("The syntax of the command is incorrect.\n")
        return 1
    code = 0
    wanted = [found for name in names for found in _expand(shell, name) or [name]]
    for name in wanted:
        try:
            data = b"" if paths.is_null("windows", name) else _read(shell, name)
        except FileError as error:
            streams.err(f"{error.windows}\n")
            if len(wanted) > 1:
                streams.err(f"Error occurred while processing: {name}.\n")
            code = 1
            continue
        if len(wanted) > 1:
            streams.err(f"\n{name}\n\n\n")
        await send(streams.stdout, data)
    return code


def _read(shell: Shell, name: str) -> bytes:
    return shell.process.files.read(name, shell.cwd, who=shell.process.identity)


async def mkdir(shell: Shell, rest: str, streams: Streams) -> int | None:
    """Make directories, with those above them."""
    names, _ = _arguments(rest)
    if not names:
        streams.err("The syntax of the command is incorrect.\n")
        return 1
    code = 0
    for name in names:
        try:
            if shell.process.files.exists(name, shell.cwd):
                raise AlreadyExists(name)
            shell.process.files.mkdir(name, shell.cwd, who=shell.process.identity, parents=True)
        except AlreadyExists:
            streams.err(f"A subdirectory or file {name} already exists.\n")
            code = 1
        except FileError as error:
            streams.err(f"{error.windows}\n")
            code = 1
    return code


async def rmdir(shell: Shell, rest: str, streams: Streams) -> int | None:
    """Remove directories."""
    names, switches = _arguments(rest)
    code = 0
    for name in names:
        try:
            if not isinstance(shell.process.files.node(name, shell.cwd, follow=False), Directory | Symlink):
                streams.err("The directory name is invalid.\n")
                code = 267
                continue
            shell.process.files.remove(name, shell.cwd, who=shell.process.identity, recursive="/s" in switches)
        except FileError as error:
            streams.err(f"{error.windows}\n")
            code = error.code
    return code


async def del_(shell: Shell, rest: str, streams: Streams) -> int | None:
    """Delete files; a directory means everything in it."""
    names, _ = _arguments(rest)
    if not names:
        streams.err("The syntax of the command is incorrect.\n")
        return 1
    files = shell.process.files
    for name in names:
        targets = _expand(shell, name)
        if files.is_dir(name, shell.cwd):
            targets = shell.matching(f"{name.rstrip(chr(92))}\\*")
        if not targets or (targets == [name] and not files.exists(name, shell.cwd)):
            streams.err(f"Could Not Find {shell.path(name)}\n")
            continue
        for target in targets:
            if files.is_dir(target, shell.cwd):
                continue
            try:
                files.remove(target, shell.cwd, who=shell.process.identity)
            except FileError as error:
                streams.out(f"{shell.path(target)}\n")
                streams.err(f"{error.windows}\n")
    return 0


async def copy(shell: Shell, rest: str, streams: Streams) -> int | None:
    """Copy files."""
    names, _ = _arguments(rest)
    if not names:
        streams.err("The syntax of the command is incorrect.\n")
        return 1
    source, target = names[0], names[1] if len(names) > 1 else "."
    files, who = shell.process.files, shell.process.identity
    sources = [""] if paths.is_null("windows", source) else _expand(shell, source)
    if files.is_dir(source, shell.cwd):
        sources = list(shell.matching(f"{source.rstrip(chr(92))}\\*"))
    if not sources:
        streams.err("The system cannot find the file specified.\n")
        return 1
    copied = 0
    for name in sources:
        goal = target
        if files.is_dir(target, shell.cwd):
            goal = f"{target.rstrip(chr(92) + '/')}\\{name.replace('/', chr(92)).rpartition(chr(92))[2]}"
        try:
            if files.is_dir(name, shell.cwd) and name:
                continue
            parts = [_read(shell, part) for part in name.split("+")] if name else []
            if name and files.absolute(name, shell.cwd).lower() == files.absolute(goal, shell.cwd).lower():
                streams.err("The file cannot be copied onto itself.\n")
                continue
            files.write(goal, b"", shell.cwd, who=who, share="")
            for part in parts:
                files.write(goal, part, shell.cwd, who=who, append=True, share="")
        except FileError as error:
            streams.err(f"{error.windows}\n")
            if isinstance(error, NotFound):
                return 1
            continue
        if len(sources) > 1:
            streams.out(f"{name}\n")
        copied += 1
    streams.out(f"{copied:9d} file(s) copied.\n")
    return 0 if copied else 1


async def dir_(shell: Shell, rest: str, streams: Streams) -> int | None:
    """List a directory."""
    names, switches = _arguments(rest)
    code = 0
    for name in names or ["."]:
        listed = _listing(shell, name, switches)
        if isinstance(listed, str):
            if "/b" not in switches and listed == "File Not Found":
                streams.out(_volume(shell.path(name).rpartition("\\")[0] + "\\"))
            streams.err(f"{listed}\n")
            code = 1
        else:
            streams.out("".join(listed))
    return code


def _volume(folder: str) -> str:
    head = " Volume in drive C has no label.\n Volume Serial Number is 5E7C-91F0\n\n"
    return f"{head} Directory of {folder if folder == 'C:' + chr(92) else folder.rstrip(chr(92))}\n\n"


def _listing(shell: Shell, name: str, switches: set[str]) -> list[str] | str:
    files, who = shell.process.files, shell.process.identity
    try:
        if not any(char in name for char in "*?"):
            files.find(name, shell.cwd, who=who)
        if files.is_dir(name, shell.cwd):
            folder = shell.path(name)
            entries = files.list(name, shell.cwd, who=who)
        else:
            folder = shell.path(name.replace("*", "_").replace("?", "_")).rpartition("\\")[0] + "\\"
            entries = [
                (found.rpartition("\\")[2], files.node(found, shell.cwd, follow=False))
                for found in _matches(shell, name)
            ]
            if not entries:
                parent = name.replace("/", "\\").rpartition("\\")[0]
                missing = parent and not files.is_dir(parent + "\\", shell.cwd)
                return "The system cannot find the path specified." if missing else "File Not Found"
    except FileError as error:
        return error.windows
    if "/b" in switches:
        return [f"{entry}\n" for entry, _ in entries]
    return _long_listing(folder, entries, is_root=len(paths.split("windows", folder, "C:\\")) == 1)


def _matches(shell: Shell, name: str) -> list[str]:
    if any(char in name for char in "*?"):
        return shell.matching(name)
    return [name.replace("/", "\\")] if shell.process.files.exists(name, shell.cwd) else []


def _long_listing(folder: str, entries: list[tuple[str, Node]], *, is_root: bool) -> list[str]:
    lines = [_volume(folder)]
    shown: list[tuple[str, Node]] = [] if is_root else [(".", Directory()), ("..", Directory())]
    count = size = folders = 0
    for name, node in [*shown, *entries]:
        stamp = time.strftime("%m/%d/%Y  %I:%M %p", time.localtime(node.mtime))
        if isinstance(node, Directory):
            folders += 1
            lines.append(f"{stamp}    <DIR>          {name}\n")
        elif isinstance(node, Symlink):
            lines.append(f"{stamp}    <SYMLINK>      {name} [{node.target}]\n")
        else:
            length = node.size if isinstance(node, File) else 0
            count, size = count + 1, size + length
            lines.append(f"{stamp}    {length:14,d} {name}\n")
    lines.append(f"{count:16d} File(s) {size:14,d} bytes\n{folders:16d} Dir(s)  {_FREE_BYTES:,d} bytes free\n")
    return lines


FILE_BUILTINS: dict[str, Callable[[Shell, str, Streams], Awaitable[int | None]]] = {
    "type": type_,
    "mkdir": mkdir,
    "rmdir": rmdir,
    "del": del_,
    "copy": copy,
    "dir": dir_,
}

"""findstr, find, more, sort, where, fc, xcopy, attrib."""

from __future__ import annotations

import fnmatch
import re

from winready_sandbox.machine.errors import FileError
from winready_sandbox.machine.process import Process, Program
from winready_sandbox.machine.tree import Directory, File


async def _inputs(process: Process, names: list[str]) -> list[tuple[str, list[str]]] | None:
    """Lines per file (or of standard input); None after a message about a missing file."""
    if not names:
        data = (await process.stdin.read_all()).decode(errors="replace")
        return [("", data.replace("\r\n", "\n").removesuffix("\n").split("\n") if data else [])]
    found: list[tuple[str, list[str]]] = []
    for name in names:
        try:
            data = process.files.read(name, process.cwd, who=process.identity).decode(errors="replace")
        except FileError:
            process.err(
                f"FINDSTR: Cannot open {name}\r\n"
                if "findstr" in process.argv[0].lower()
                else f"File not found - {name}\r\n"
            )
            return None
        found.append((name, data.replace("\r\n", "\n").removesuffix("\n").split("\n")))
    return found


async def findstr(process: Process) -> int:
    """Lines that contain texts or match expressions."""
    flags: set[str] = set()
    patterns: list[str] = []
    names: list[str] = []
    for word in process.argv[1:]:
        if word.lower().startswith("/c:"):
            patterns.append(word[3:])
            flags.add("literal")
        elif word.startswith("/"):
            flags.update(letter for letter in word[1:].lower() if letter.isalpha())
        elif not patterns:
            patterns = word.split(" ")
        else:
            names.append(word)
    if not patterns:
        process.err("FINDSTR: Bad command line\r\n")
        return 2
    plain = "l" in flags or ("literal" in flags and "r" not in flags)
    source = "|".join(re.escape(each) if plain else _expression(each) for each in patterns)
    source = (
        f"^(?:{source})$"
        if "x" in flags
        else f"^(?:{source})"
        if "b" in flags
        else f"(?:{source})$"
        if "e" in flags
        else source
    )
    wanted = re.compile(source, re.IGNORECASE if "i" in flags else 0)
    inputs = await _inputs(process, names)
    hits = 0
    for name, lines in inputs or []:
        for number, line in enumerate(lines, 1):
            if (wanted.search(line) is not None) != ("v" in flags):
                hits += 1
                prefix = f"{name}:" if len(names) > 1 else ""
                process.out(f"{prefix}{f'{number}:' if 'n' in flags else ''}{line}\r\n")
    return 0 if hits else 1


def _expression(pattern: str) -> str:
    """findstr knows only `. * ^ $ [class] \\< \\>`."""
    escaped = re.sub(r"([+?(){}|])", r"\\\1", pattern)
    return escaped.replace("\\<", r"\b").replace("\\>", r"\b")


async def find(process: Process) -> int:
    """Lines that contain a text."""
    switches = {word.lower() for word in process.argv[1:] if word.startswith("/")}
    words = [word for word in process.argv[1:] if not word.startswith("/")]
    if not words or f'"{words[0]}"' not in process.command_line:
        process.err("FIND: Parameter format not correct\r\n")
        return 2
    wanted = words[0].lower() if "/i" in switches else words[0]
    inputs = await _inputs(process, words[1:])
    if inputs is None:
        return 1
    hits = 0
    for name, lines in inputs:
        fits = [
            line for line in lines if (wanted in (line.lower() if "/i" in switches else line)) != ("/v" in switches)
        ]
        hits += len(fits)
        if name:
            process.out(f"\r\n---------- {name.upper()}" + (f": {len(fits)}\r\n" if "/c" in switches else "\r\n"))
        elif "/c" in switches:
            process.out(f"{len(fits)}\r\n")
        if "/c" not in switches:
            process.out("".join(f"{line}\r\n" for line in fits))
    return 0 if hits else 1


async def more(process: Process) -> int:
    """Show files."""
    inputs = await _inputs(process, [word for word in process.argv[1:] if not word.startswith("/")])
    for _, lines in inputs or []:
        process.out("".join(f"{line}\r\n" for line in lines))
    return 0 if inputs is not None else 1


async def sort(process: Process) -> int:
    """Sort lines."""
    words = [word for word in process.argv[1:] if not word.startswith("/")]
    inputs = await _inputs(process, words)
    lines = [line for _, each in inputs or [] for line in each]
    reverse = any(word.lower().startswith("/r") for word in process.argv[1:])
    process.out("".join(f"{line}\r\n" for line in sorted(lines, key=str.lower, reverse=reverse)))
    return 0 if inputs is not None else 1


async def where(process: Process) -> int:
    """Where programs are."""
    extensions = ["", *process.env.get("PATHEXT", ".EXE").lower().split(";")]
    found: list[str] = []
    for name in [word for word in process.argv[1:] if not word.startswith("/")]:
        for folder in [process.cwd, *process.env.get("PATH", "").split(";")]:
            if not folder or not process.files.is_dir(folder):
                continue
            for entry, node in process.files.list(folder):
                if isinstance(node, File) and any(
                    fnmatch.fnmatchcase(entry.lower(), name.lower() + each) for each in extensions
                ):
                    found.append(f"{folder.rstrip(chr(92))}\\{entry}")
    if not found:
        process.err("INFO: Could not find files for the given pattern(s).\r\n")
        return 1
    process.out("".join(f"{path}\r\n" for path in dict.fromkeys(found)))
    return 0


async def fc(process: Process) -> int:
    """Compare two files."""
    names = [word for word in process.argv[1:] if not word.startswith("/")]
    inputs = await _inputs(process, names[:2])
    if inputs is None or len(inputs) < 2:
        return 2
    process.out(f"Comparing files {names[0]} and {names[1].upper()}\r\n")
    if inputs[0][1] == inputs[1][1]:
        process.out("FC: no differences encountered\r\n\r\n\r\n")
        return 0
    for name, lines in inputs:
        process.out(f"***** {name}\r\n" + "".join(f"{line}\r\n" for line in lines))
    process.out("*****\r\n\r\n")
    return 1


async def xcopy(process: Process) -> int:
    """Copy trees."""
    names = [word for word in process.argv[1:] if not word.startswith("/")]
    switches = {word.lower() for word in process.argv[1:] if word.startswith("/")}
    if len(names) < 2 or not process.files.exists(names[0], process.cwd):
        process.err(f"File not found - {names[0] if names else ''}\r\n0 File(s) copied\r\n")
        return 4
    copied = 0
    base = process.files.absolute(names[0], process.cwd)
    target = process.files.absolute(names[1], process.cwd)
    try:
        for path, node in list(process.files.walk(base, who=process.identity)):
            below = path[len(base) :].lstrip("\\")
            goal = f"{target}\\{below}" if below else target
            if isinstance(node, Directory):
                if not below or switches & {"/s", "/e"}:
                    process.files.mkdir(goal, who=process.identity, parents=True)
            elif "\\" not in below or switches & {"/s", "/e"}:
                process.files.write(goal, process.files.read(path), who=process.identity)
                process.out(f"{path}\r\n")
                copied += 1
    except FileError as error:
        process.err(f"{error.windows}\r\n")
        return 4
    process.out(f"{copied} File(s) copied\r\n")
    return 0


async def attrib(process: Process) -> int:
    """Show or change the read-only attribute."""
    changes = [word.lower() for word in process.argv[1:] if re.fullmatch(r"[-+][rashi]", word.lower())]
    for name in [word for word in process.argv[1:] if not re.fullmatch(r"[-+/]\w", word)]:
        try:
            node = (
                process.files.change(name, process.cwd, who=process.identity)
                if changes
                else process.files.node(name, process.cwd)
            )
        except FileError:
            process.out(f"File not found - {name}\r\n")
            return 1
        if isinstance(node, File):
            if changes:
                node.read_only = "+r" in changes or (node.read_only and "-r" not in changes)
            else:
                mark = "R" if node.read_only else " "
                process.out(f"A    {mark}               {process.files.absolute(name, process.cwd)}\r\n")
    return 0


PROGRAMS: dict[str, Program] = {
    "findstr.exe": findstr,
    "find.exe": find,
    "more.exe": more,
    "sort.exe": sort,
    "where.exe": where,
    "fc.exe": fc,
    "xcopy.exe": xcopy,
    "attrib.exe": attrib,
}

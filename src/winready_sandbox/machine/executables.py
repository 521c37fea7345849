"""Executable files: what marks a file as a program, and how each OS finds it.

A program file's bytes name the program behind it, so a copy under any name, made by any means, still runs.
"""

from __future__ import annotations

from collections.abc import Mapping

from winready_sandbox.machine import errors
from winready_sandbox.machine.errors import OS, ExecError
from winready_sandbox.machine.files import FileSystem
from winready_sandbox.machine.tree import File
from winready_sandbox.machine.users import Identity

_MAGIC: dict[OS, bytes] = {"windows": b"MZ\x90\x00simulated:", "linux": b"\x7fELF\x02simulated:"}
PATHEXT = ".COM;.EXE;.BAT;.CMD"
_SYSTEM_DIRECTORIES = ("C:\\Windows\\System32", "C:\\Windows")


def program_file(os: OS, program: str, mode: int = 0o755) -> File:
    """An executable file that runs a program of the catalogue."""
    return File(_MAGIC[os] + program.encode() + b"\n", mode)


def program_of(os: OS, data: bytes) -> str | None:
    """The program behind a file's bytes, if this OS can run them."""
    magic = _MAGIC[os]
    return data[len(magic) :].partition(b"\n")[0].decode(errors="replace") if data.startswith(magic) else None


def _is_file(files: FileSystem, path: str, cwd: str) -> bool:
    try:
        return isinstance(files.find(path, cwd).node, File)
    except errors.FileError:
        return False


def find_for_create_process(files: FileSystem, name: str, cwd: str, env: Mapping[str, str]) -> str:
    """Where CreateProcess finds a program: the exact path, else with `.exe`; bare names through the search order."""
    wanted = [name] if "." in name.replace("/", "\\").rpartition("\\")[2] else [name, f"{name}.exe"]
    if any(char in name for char in "\\/:"):
        candidates = wanted
    else:
        folders = [cwd, *(part for part in env.get("PATH", "").split(";") if part), *_SYSTEM_DIRECTORIES]
        names = wanted[-1:]
        candidates = [f"{folder.rstrip(chr(92))}\\{each}" for folder in folders for each in names]
    for candidate in candidates:
        if _is_file(files, candidate, cwd):
            return files.absolute(candidate, cwd)
    raise ExecError("windows", "The system cannot find the file specified.")


def find_for_shell(
    files: FileSystem, name: str, cwd: str, env: Mapping[str, str], *, current_first: bool = True
) -> str | None:
    """Where cmd (current directory first) and PowerShell (not) find a program: files with an extension of PATHEXT."""
    extensions = [part.lower() for part in env.get("PATHEXT", PATHEXT).split(";") if part.strip()]
    base = name.replace("/", "\\")
    has_extension = any(base.lower().endswith(extension) for extension in extensions)
    searched = [*([cwd] if current_first else []), *(part for part in env.get("PATH", "").split(";") if part)]
    folders = [""] if "\\" in base or ":" in base else searched
    for folder in folders:
        stem = f"{folder.rstrip(chr(92))}\\{base}" if folder else base
        if has_extension and _is_file(files, stem, cwd):
            return files.absolute(stem, cwd)
        for extension in extensions:
            if _is_file(files, stem + extension, cwd):
                return files.absolute(stem + extension, cwd)
    return None


def find_for_posix(files: FileSystem, name: str, cwd: str, env: Mapping[str, str], who: Identity | None) -> str:
    """Where execvp finds a program on Linux, with runc's words when it does not."""
    if "/" in name:
        try:
            place = files.find(name, cwd, who=who)
        except errors.FileError as error:
            raise ExecError("linux", f'exec: "{name}": stat {name}: {error.linux.lower()}') from None
        if place.node is None:
            raise ExecError("linux", f'exec: "{name}": stat {name}: no such file or directory')
        if not isinstance(place.node, File):
            raise ExecError("linux", f'exec: "{name}": is a directory', permission=True)
        if not place.node.mode & 0o111:
            raise ExecError("linux", f'exec: "{name}": permission denied', permission=True)
        return files.absolute(name, cwd)
    for folder in env.get("PATH", "").split(":"):
        candidate = f"{folder or '.'}/{name}"
        try:
            node = files.find(candidate, cwd).node
        except errors.FileError:
            continue
        if isinstance(node, File) and node.mode & 0o111:
            return files.absolute(candidate, cwd)
    raise ExecError("linux", f'exec: "{name}": executable file not found in $PATH')

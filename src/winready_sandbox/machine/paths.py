"""Path texts of each operating system, taken apart and put together."""

from __future__ import annotations

from winready_sandbox.machine.errors import OS, InvalidName

Parts = tuple[str, ...]
"""A path from the root: on Windows the first part is a drive (`C:`) or a server (`\\\\server`)."""

_FORBIDDEN = set('<>"|?*')
_NULL = {"nul", "\\\\.\\nul"}


def is_null(os: OS, path: str) -> bool:
    """Does the path name the null device?"""
    if os == "linux":
        return path == "/dev/null"
    name = path.rstrip(":").lower()
    return name in _NULL or name.rpartition("\\")[2] == "nul"


def split(os: OS, path: str, cwd: str) -> Parts:
    """The parts of a path; `.` and (on Windows, where links do not matter) `..` are resolved."""
    return _split_windows(path, cwd) if os == "windows" else _split_linux(path, cwd)


def _split_linux(path: str, cwd: str) -> Parts:
    text = path if path.startswith("/") else f"{cwd}/{path}"
    return tuple(part for part in text.split("/") if part not in ("", "."))


def _split_windows(path: str, cwd: str) -> Parts:
    text = path.replace("/", "\\")
    if text.startswith(("\\\\?\\", "\\??\\")):
        text = text[4:]
    if text.startswith("\\\\"):
        server, _, rest = text[2:].partition("\\")
        head: Parts = (f"\\\\{server}",)
    elif len(text) >= 2 and text[1] == ":":
        drive, rest = text[:2].upper(), text[2:]
        if not rest.startswith("\\") and cwd[:2].upper() == drive:
            rest = f"{cwd[2:]}\\{rest}"
        head = (drive,)
    else:
        head = (cwd[:2].upper(),)
        rest = text if text.startswith("\\") else f"{cwd[2:]}\\{text}"
    parts: list[str] = []
    for part in rest.split("\\"):
        if part in ("", "."):
            continue
        if part == "..":
            if parts:
                parts.pop()
            continue
        if _FORBIDDEN & set(part) or ":" in part:
            raise InvalidName(path)
        parts.append(part.rstrip(". ") or part)
    return (*head, *parts)


def join(os: OS, parts: Parts) -> str:
    """The text of a path."""
    if os == "linux":
        return "/" + "/".join(parts)
    return "\\".join(parts) if len(parts) > 1 else "".join(parts) + "\\"


def fold(os: OS, parts: Parts) -> Parts:
    """The parts as a key: two spellings of one path are equal."""
    return tuple(part.lower() for part in parts) if os == "windows" else parts

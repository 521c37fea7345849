"""The inputs of a run: files, folders and standard input, folder by folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

MAX_BYTES = 256 * 1024 * 1024
STDIN = "stdin"

_SUFFIXES = (".yaml", ".yml", ".json")
_SKIPPED = frozenset({"node_modules", "__pycache__", "vendor"})


class InputError(Exception):
    """An input that is not there or cannot be opened."""


@dataclass(frozen=True, slots=True)
class Input:
    """A file as the user named it; ``found`` when a folder led to it."""

    path: str
    found: bool = False
    content: bytes | None = None

    def read(self) -> bytes:
        """The bytes of the file, or an InputError."""
        if self.content is not None:
            return self.content
        try:
            with open(self.path, "rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                if size > MAX_BYTES:
                    raise InputError(f"the file has {size >> 20:,} MiB; lint reads at most {MAX_BYTES >> 20:,} MiB")
                return stream.read()
        except OSError as error:
            raise InputError(error.strerror or str(error)) from error


def folders(paths: Sequence[str], exclude: Sequence[str], notices: list[str]) -> Iterator[list[Input]]:
    """The inputs in batches: each batch is one folder, whose objects may refer to each other."""
    batches: dict[str, list[Input]] = {}
    seen: set[str] = set()
    for path in paths:
        if path == "-":
            batches.setdefault("-", []).append(Input(STDIN, content=sys.stdin.buffer.read()))
        elif os.path.isdir(path):
            if batches:
                yield from batches.values()
                batches = {}
            yield from _walk(path, exclude, seen, notices)
        elif _first_time(path, seen):
            batches.setdefault(os.path.dirname(path), []).append(Input(path))
    yield from batches.values()


def _walk(root: str, exclude: Sequence[str], seen: set[str], notices: list[str]) -> Iterator[list[Input]]:
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if not name.startswith(".") and name not in _SKIPPED)
        if "Chart.yaml" in files and "templates" in names:
            names.remove("templates")
            notices.append(
                f"{os.path.join(folder, 'templates')} holds Helm templates: helm template {folder} | winready lint -"
            )
        paths = [os.path.join(folder, name) for name in sorted(files) if name.lower().endswith(_SUFFIXES)]
        batch = [Input(path, found=True) for path in paths if not excluded(path, exclude) and _first_time(path, seen)]
        if batch:
            yield batch


def _first_time(path: str, seen: set[str]) -> bool:
    real = os.path.realpath(path)
    if real in seen:
        return False
    seen.add(real)
    return True


def excluded(path: str, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns takes this path (``**`` is as good as ``*``)."""
    posix = Path(path).as_posix().removeprefix("./")
    return any(fnmatch(posix, pattern.replace("**", "*")) or fnmatch(posix, f"*/{pattern}") for pattern in patterns)

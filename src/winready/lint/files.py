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
            with open(self.path, "rb", buffering=0) as stream:
                size = os.fstat(stream.fileno()).st_size
                if size > MAX_BYTES:
                    raise InputError(f"the file has {size >> 20:,} MiB; lint reads at most {MAX_BYTES >> 20:,} MiB")
                return stream.readall()
        except OSError as error:
            raise InputError(error.strerror or str(error)) from error


class Inputs:
    """The inputs in batches: each batch is one folder, whose objects may refer to each other.

    Folders are walked anew each time instead of being remembered, so that their size does not matter.
    """

    def __init__(self, paths: Sequence[str], exclude: Sequence[str], extra: Sequence[Input] = ()) -> None:
        self.paths, self.exclude, self.extra = list(dict.fromkeys(paths)), exclude, list(extra)
        self.notices: list[str] = []
        self._stdin: bytes | None = None

    def __iter__(self) -> Iterator[list[Input]]:
        batches: dict[str, list[Input]] = {}
        named = {os.path.realpath(path) for path in self.paths if path != "-"}
        self.notices.clear()
        for path in self.paths:
            if path == "-":
                batches.setdefault("-", []).append(Input(STDIN, content=self._read_stdin()))
            elif os.path.isdir(path):
                yield from self._walk(path, named - {os.path.realpath(path)})
            else:
                batches.setdefault(os.path.dirname(path), []).append(Input(path))
        yield from batches.values()
        if self.extra:
            yield self.extra

    def _read_stdin(self) -> bytes:
        if self._stdin is None:
            self._stdin = sys.stdin.buffer.read()
        return self._stdin

    def _walk(self, root: str, elsewhere: set[str]) -> Iterator[list[Input]]:
        """The folders below ``root``, without what is named on its own."""
        for folder, names, files in os.walk(root):
            names[:] = sorted(name for name in names if self._wanted(folder, name, elsewhere))
            if "Chart.yaml" in files and "templates" in names:
                names.remove("templates")
                templates = os.path.join(folder, "templates")
                self.notices.append(f"{templates} holds Helm templates: helm template {folder} | winready lint -")
            paths = [os.path.join(folder, name) for name in sorted(files) if name.lower().endswith(_SUFFIXES)]
            batch = [
                Input(path, found=True)
                for path in paths
                if not excluded(path, self.exclude) and not (elsewhere and os.path.realpath(path) in elsewhere)
            ]
            if batch:
                yield batch

    def _wanted(self, folder: str, name: str, elsewhere: set[str]) -> bool:
        if name.startswith(".") or name in _SKIPPED or excluded(os.path.join(folder, name), self.exclude):
            return False
        return not elsewhere or os.path.realpath(os.path.join(folder, name)) not in elsewhere


def excluded(path: str, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns takes this path (``**`` is as good as ``*``)."""
    if not patterns:
        return False
    posix = Path(path).as_posix().removeprefix("./")
    return any(fnmatch(posix, pattern.replace("**", "*")) or fnmatch(posix, f"*/{pattern}") for pattern in patterns)

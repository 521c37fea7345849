"""Paths below a root folder, as a process sees them whose root that folder is: no link leads out of it."""

from __future__ import annotations

import os
from pathlib import Path

_MOST_LINKS = 40


class OutOfRoot(Exception):
    """A path that goes in circles."""


def resolve(root: Path, path: str) -> str:
    """The absolute path, inside, that a path leads to; parts that do not exist stay as they are."""
    waiting, done, links = [part for part in reversed(path.split("/")) if part], list[str](), 0
    while waiting:
        part = waiting.pop()
        if part == ".":
            continue
        if part == "..":
            if done:
                done.pop()
            continue
        here = root.joinpath(*done, part)
        if not here.is_symlink():
            done.append(part)
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OutOfRoot(f"{path}: too many links")
        target = os.readlink(here)
        if target.startswith("/"):
            done.clear()
        waiting += [part for part in reversed(target.split("/")) if part]
    return "/" + "/".join(done)


def outside(root: Path, path: str) -> Path:
    """Where a path that `resolve` gave is for whoever has another root."""
    return root / path.lstrip("/")

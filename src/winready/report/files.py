"""Files that a run leaves: written in one step, so that nobody ever reads half of one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from winready.engine import events


class Rendered:
    """A page that shows a whole run, such as ``junit.xml``, rendered when the run has its verdict."""

    def __init__(self, path: Path, render: Callable[[], str]) -> None:
        self.name = path.name
        self._path = path
        self._render = render

    def start(self) -> None:
        """Nothing is written before the end."""

    def handle(self, event: events.AnyEvent) -> None:
        """The record has every event; only the last one leads to a page."""
        if isinstance(event, events.RunFinished):
            write_whole(self._path, self._render().encode())

    def close(self) -> None:
        """Nothing is open."""


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, or leave none behind; raises ``OSError``."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    except OSError:
        part.unlink(missing_ok=True)
        raise

"""Pages that a run leaves beside its record: rendered once, when it has its verdict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from winready.engine import events
from winready.report.record import Record, RecordFile


class Rendered:
    """A file that shows a whole run, such as ``junit.xml``."""

    def __init__(self, kept: RecordFile, path: Path, render: Callable[[Record], str]) -> None:
        self.name = path.name
        self._kept = kept
        self._path = path
        self._render = render

    def start(self) -> None:
        """Nothing is written before the end."""

    def handle(self, event: events.AnyEvent) -> None:
        """The record already has it."""

    def close(self) -> None:
        """Write the file, if the run has a verdict."""
        if self._kept.finished:
            self._path.write_text(self._render(self._kept.record), encoding="utf-8")

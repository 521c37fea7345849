"""What a person sees while a run goes on: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TextIO

from winready.engine import events
from winready.report import words
from winready.report.printable import printable
from winready.report.record import Record

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

FRAMES_PER_SECOND = 4
TERMINAL = "the terminal"


class Plain:
    """One line per event that matters; for pipes, logs and CI."""

    def __init__(self, stream: TextIO, record: Record) -> None:
        self.name = stream_name(stream)
        self.stream = stream
        self.record = record

    def start(self) -> None:
        """Lines need no preparation."""

    def close(self) -> None:
        """Everything was flushed."""

    def handle(self, event: events.AnyEvent) -> None:
        """Say what matters of an event; the record already has it."""
        match event:
            case events.InventoryTaken():
                for line in words.cluster_lines(self.record):
                    self.note(line)
            case events.PlanMade():
                running = [item for item in event.plan.requirements if item.action == "run"]
                self.note(f"{len(running)} of {len(event.plan.requirements)} selected requirements will be verified")
            case events.FixtureFailed():
                self.note(f"fixture {event.name}: {event.reason}")
            case events.UpstreamProgress() if event.state != "started":
                self.note(words.upstream_line(event))
            case events.CheckFinished():
                self.note(words.check_line(event.result))
            case events.RequirementFinished():
                self.note(words.result_line(event.result))
            case events.RunFinished():
                for _, line in words.summary_lines(self.record):
                    self.note(line)
            case _:
                pass

    def note(self, text: str) -> None:
        """One line."""
        print(printable(text), file=self.stream, flush=True)


class Live:
    """Finished requirements scroll by; below them stands what runs now, how far it is and what is expected."""

    def __init__(self, console: Console, record: Record, scale: float) -> None:
        from rich.live import Live as Display

        self.name = TERMINAL
        self.console = console
        self.record = record
        self.scale = scale
        self._began = time.monotonic()
        self._running: dict[str, float] = {}
        self._fixtures: set[str] = set()
        self._total = 0
        self._done = 0
        self._expected = 0.0
        self._display = Display(
            get_renderable=self._view, console=console, refresh_per_second=FRAMES_PER_SECOND, transient=True
        )

    def start(self) -> None:
        """Take a part of the screen."""
        self._display.start()

    def close(self) -> None:
        """Give it back."""
        self._display.stop()

    def handle(self, event: events.AnyEvent) -> None:
        """Show an event; the record already has it."""
        match event:
            case events.InventoryTaken():
                for line in words.cluster_lines(self.record):
                    self.note(line)
                self.note("")
            case events.PlanMade():
                self._total = len(event.plan.requirements)
                self._expected = event.plan.expected_s / self.scale
                self._fixtures = set(event.plan.fixtures)
            case events.FixtureReady() | events.FixtureFailed():
                self._fixtures.discard(event.name)
            case events.RequirementStarted():
                self._running[event.id] = time.monotonic()
            case events.UpstreamProgress(state="started"):
                self._running[event.text] = time.monotonic()
            case events.UpstreamProgress():
                self._running.pop(event.text, None)
                self._print(words.upstream_line(event), "dim")
            case events.CheckFinished():
                self._running.pop(event.result.id, None)
                self._print(words.check_line(event.result), "dim")
            case events.RequirementFinished():
                self._running.pop(event.result.id, None)
                self._done += 1
                self._print(words.result_line(event.result), words.STYLES[event.result.outcome])
            case events.RunFinished():
                self._display.stop()
                self.note("")
                for style, line in words.summary_lines(self.record):
                    self._print(line, style)
            case _:
                pass

    def note(self, text: str) -> None:
        """One line above the live part."""
        self._print(text, "")

    def _print(self, text: str, style: str) -> None:
        from rich.text import Text

        self.console.print(Text(printable(text), style=style))

    def _view(self) -> RenderableType:
        from rich.text import Text

        now = time.monotonic()
        view = Text()
        head = f"{self._done} of {self._total} judged, {words.duration(now - self._began)} gone"
        if self._expected:
            head += f", about {words.duration(self._expected)} expected"
        view.append(head + "\n", style="bold")
        if self._fixtures:
            view.append(f"  starting pods and services: {', '.join(sorted(self._fixtures))}\n", style="cyan")
        for name, since in list(self._running.items())[:12]:
            view.append(f"  … {name:<48} {words.duration(now - since):>8}\n", style="cyan")
        return view


def make_terminal(stream: TextIO, record: Record, scale: float, *, colour: bool) -> Plain | Live:
    """The live view where somebody watches, plain lines everywhere else."""
    if not stream.isatty() or not colour:
        return Plain(stream, record)
    from rich.console import Console

    return Live(Console(file=stream, highlight=False, soft_wrap=True), record, scale)


def stream_name(stream: TextIO) -> str:
    """What people call it."""
    return {sys.stdout: "standard output", sys.stderr: "standard error"}.get(stream, "the output")

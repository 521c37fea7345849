"""What a person sees while a run goes on: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TextIO

from winready.engine import events
from winready.report import words
from winready.report.printable import printable
from winready.report.record import Record

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

FRAMES_PER_SECOND = 4


class Reporter(Protocol):
    """Follows a run."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def handle(self, event: events.AnyEvent, record: Record) -> None:
        """Take in an event; ``record`` already has it."""

    def note(self, text: str) -> None:
        """Say something that is not part of the run's story."""


class Plain:
    """One line per event that matters; for pipes, logs and CI."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def handle(self, event: events.AnyEvent, record: Record) -> None:
        match event:
            case events.InventoryTaken():
                for line in words.cluster_lines(record):
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
                for _, line in words.summary_lines(record):
                    self.note(line)
            case _:
                pass

    def note(self, text: str) -> None:
        print(printable(text), file=self.stream, flush=True)


class Live:
    """Finished requirements scroll by; below them stands what runs now, how far it is and what is expected."""

    def __init__(self, console: Console, scale: float) -> None:
        from rich.live import Live as Display

        self.console = console
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

    def __enter__(self) -> Self:
        self._display.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._display.stop()

    def handle(self, event: events.AnyEvent, record: Record) -> None:
        match event:
            case events.InventoryTaken():
                for line in words.cluster_lines(record):
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
                for style, line in words.summary_lines(record):
                    self._print(line, style)
            case _:
                pass

    def note(self, text: str) -> None:
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


def make_reporter(stream: TextIO, scale: float, *, colour: bool) -> Reporter:
    """The live view where somebody watches, plain lines everywhere else."""
    if not stream.isatty() or not colour:
        return Plain(stream)
    from rich.console import Console

    return Live(Console(file=stream, highlight=False, soft_wrap=True), scale)

"""What a person sees while a run goes on: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from winready.engine import events
from winready.engine.outcomes import RequirementResult
from winready.report import words
from winready.report.pace import Pace
from winready.report.printable import printable
from winready.report.record import Record

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

FRAMES_PER_SECOND = 4
WIDE = 110
"""Columns from which on whole ids and steps stand beside each other."""
MOST_SHOWN = 16
"""Running checks that are shown where there is room for them; the others are counted."""
ECHO = len("^C")
TERMINAL = "the terminal"
TEN_PODS = "ten pods"
"""What the fixture ``ten`` is."""


class Plain:
    """One line per event that matters; for pipes, logs and CI."""

    def __init__(self, stream: TextIO, record: Record, details: bool = False) -> None:
        self.name = stream_name(stream)
        self.stream = stream
        self.record = record
        self.details = details

    def start(self) -> None:
        """Lines need no preparation."""

    def close(self) -> None:
        """Everything was flushed."""

    def stopping(self) -> None:
        """Somebody interrupts the run."""
        self.note(words.STOPPING)

    def handle(self, event: events.AnyEvent) -> None:
        """Say what matters of an event; the record already has it."""
        match event:
            case events.InventoryTaken():
                for line in words.cluster_lines(self.record):
                    self.note(line)
            case events.PlanMade():
                running = [item for item in event.plan.requirements if item.action == "run"]
                if event.plan.requirements or not event.plan.features:
                    total = len(event.plan.requirements)
                    self.note(f"{len(running)} of {total} selected requirements will be verified")
                if event.plan.features:
                    self.note(words.planned_features(event.plan))
            case events.FixtureFailed():
                self.note(f"fixture {event.name}: {event.reason}")
            case events.UpstreamProgress() if event.state != "started":
                self.note(words.upstream_line(event))
            case events.CheckFinished():
                self.note(words.check_line(event.result))
            case events.RequirementFinished() if words.told_at_once(event.result):
                self.note(words.result_line(event.result))
                for line in words.evidence_lines(event.result) if self.details else ():
                    self.note(line)
            case events.FeatureFinished() if event.result.way != "data":
                self.note(words.feature_line(event.result))
            case events.WorkloadTried():
                self.note(f"{event.name}: {words.step_line(event.step)}")
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

    def __init__(
        self,
        console: Console,
        record: Record,
        scale: float,
        clock: Callable[[], float],
        doing: Mapping[str, str],
        details: bool,
    ) -> None:
        from rich.live import Live as Display

        self.name = TERMINAL
        self.console = console
        self.record = record
        self.scale = scale
        self.doing = doing
        self.details = details
        self._clock = clock
        self._began = clock()
        self._running: dict[str, float] = {}
        self._fixtures: set[str] = set()
        self._stopping = False
        self._total = 0
        self._done = 0
        self._pace: Pace | None = None
        self._display = Display(
            get_renderable=self._view, console=console, refresh_per_second=FRAMES_PER_SECOND, transient=True
        )

    def start(self) -> None:
        """Take a part of the screen."""
        self._display.start()

    def close(self) -> None:
        """Give it back."""
        self._display.stop()

    def stopping(self) -> None:
        """Somebody interrupts the run; seen at once, since cleaning up takes its time."""
        self._stopping = True
        self._print(words.STOPPING, "yellow")
        self._display.refresh()

    def handle(self, event: events.AnyEvent) -> None:
        """Show an event; the record already has it."""
        from rich.text import Text

        now = self._began + event.at_s
        match event:
            case events.InventoryTaken():
                # Lines that are too long all the same are broken between words.
                for line in words.cluster_lines(self.record, self.console.width):
                    self.console.print(Text(printable(line)), soft_wrap=False)
                self.note("")
            case events.PlanMade():
                self._total = len(event.plan.requirements)
                self._pace = Pace(event.plan, self.scale)
                self._fixtures = set(event.plan.fixtures)
            case events.FixtureReady() | events.FixtureFailed():
                self._fixtures.discard(event.name)
            case events.RequirementStarted():
                self._running[event.id] = now
                if self._pace:
                    self._pace.started(event.id, now)
            case events.UpstreamProgress(state="started"):
                self._running[event.text] = now
            case events.UpstreamProgress():
                self._running.pop(event.text, None)
                self._print(words.upstream_line(event), "dim")
            case events.CheckFinished():
                self._running.pop(event.result.id, None)
                self._print(words.check_line(event.result), "dim")
            case events.RequirementFinished():
                self._running.pop(event.result.id, None)
                # What an interruption kept from being judged was not.
                self._done += not (self._stopping and event.result.outcome in ("blocked", "error"))
                if self._pace:
                    self._pace.finished(event.result)
                if words.told_at_once(event.result):
                    self._result(event.result)
            case events.FeatureFinished() if event.result.way != "data":
                self._print(words.feature_line(event.result), words.STYLES[event.result.outcome])
            case events.WorkloadTried():
                self._print(f"{event.name}: {words.step_line(event.step)}", words.STYLES[event.step.outcome])
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

    def _result(self, result: RequirementResult) -> None:
        for line in words.result_lines(result, self.console.width):
            self._print(line, words.STYLES[result.outcome])
        if self.details:
            for line in words.evidence_lines(result):
                self._print(line, "dim")

    def _print(self, text: str, style: str) -> None:
        from rich.text import Text

        self.console.print(Text(printable(text), style=style))

    def _view(self) -> RenderableType:
        from rich.console import Group
        from rich.constrain import Constrain
        from rich.table import Table
        from rich.text import Text

        now = self._clock()
        if self._stopping:
            return Text(f"cleaning up; {self._so_far(now)}", style="bold yellow", no_wrap=True, overflow="ellipsis")
        lines: list[RenderableType] = [Text(self._head(now), style="bold", no_wrap=True, overflow="ellipsis")]
        if self._fixtures:
            names = sorted(TEN_PODS if name == "ten" else name for name in self._fixtures)
            starting = f"  starting pods and services: {', '.join(names)}"
            lines.append(Text(starting, style="cyan", no_wrap=True, overflow="ellipsis"))
        table = Table.grid(padding=(0, 1), expand=True)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1, style="dim")
        table.add_column(no_wrap=True, justify="right")
        running = list(self._running.items())
        room = max(3, min(MOST_SHOWN, self.console.height - len(lines) - 3))
        for name, since in running[:room]:
            step = printable(self.doing.get(name, ""))
            # The end of an id tells more than its category, where there is no room for both.
            short = name if self.console.width >= WIDE or " " in name else name.rpartition(".")[2]
            table.add_row(Text(f"  … {printable(short)}", style="cyan"), Text(step), words.duration(now - since))
        if running:
            lines.append(table)
        if len(running) > room:
            lines.append(Text(f"  +{len(running) - room} more", style="cyan"))
        # A terminal writes "^C" behind the last line; a line break there would leave a part of the view behind.
        return Constrain(Group(*lines), self.console.width - ECHO)

    def _so_far(self, now: float) -> str:
        simulated = " of simulated time" if self.record.settings.get("virtual_time") else ""
        return f"{self._done} of {self._total} judged, {words.duration(now - self._began)}{simulated} gone"

    def _head(self, now: float) -> str:
        so_far = self._so_far(now)
        if self._pace is None:
            return f"looking at the cluster{so_far[so_far.index(',') :]}"
        if self._total and self._done == self._total:
            return f"{so_far}, cleaning up"
        left = self._pace.left(now - self._began, now)
        return f"{so_far}, about {words.duration(left)} left" if left else f"{so_far}, longer than expected"


class Quiet:
    """Nothing but the end."""

    def __init__(self, stream: TextIO, record: Record) -> None:
        self.name = stream_name(stream)
        self.stream = stream
        self.record = record

    def start(self) -> None:
        """Silence needs no preparation."""

    def close(self) -> None:
        """Everything was flushed."""

    def stopping(self) -> None:
        """Whoever wants to hear nothing waits."""

    def handle(self, event: events.AnyEvent) -> None:
        """Say the verdict."""
        if isinstance(event, events.RunFinished):
            print(printable(words.summary_lines(self.record)[-1][1]), file=self.stream, flush=True)


def make_terminal(
    stream: TextIO,
    record: Record,
    scale: float,
    *,
    colour: bool,
    clock: Callable[[], float] = time.monotonic,
    doing: Mapping[str, str] | None = None,
    loudness: int = 0,
) -> Plain | Live | Quiet:
    """The live view where somebody watches, plain lines everywhere else.

    ``doing`` says what each running check is at; ``loudness`` is -1 for the verdict alone, 1 for the evidence, too.
    """
    if loudness < 0:
        return Quiet(stream, record)
    if not stream.isatty() or not colour:
        return Plain(stream, record, loudness > 0)
    from rich.console import Console

    console = Console(file=stream, highlight=False, soft_wrap=True)
    return Live(console, record, scale, clock, {} if doing is None else doing, loudness > 0)


@contextmanager
def waiting(what: str, *, colour: bool) -> Iterator[None]:
    """Something that takes a while: said where somebody watches, until it is over."""
    if not sys.stderr.isatty() or not colour:
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what, spinner="dots"):
        yield


def stream_name(stream: TextIO) -> str:
    """What people call it."""
    return {sys.stdout: "standard output", sys.stderr: "standard error"}.get(stream, "the output")

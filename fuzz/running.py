"""Gives targets their inputs and judges: no traceback, no hang, no memory, nothing written outside of the folder of the
input, and on the command line an exit code that is documented.

Limits are in processor time, so that a busy machine makes no findings; who waits for ever is noticed by `workers`.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from fuzz import commands
from fuzz.targets import TARGETS

LONGEST = 10
"""Seconds of the processor for one input."""
MOST_MEGABYTES = 300
SHOWN = 5
MEMORY = Path("/dev/shm")  # noqa: S108
"""Where folders cost nothing, if there is such a place."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Hang(BaseException):
    """An input took too long."""


@dataclass
class Outcome:
    """What a number of inputs did to a target."""

    inputs: int = 0
    findings: int = 0
    accepted: int = 0
    """Inputs that were read without complaint: the others end early, and a target should have both."""
    commands: int = 0
    """Inputs that the command line was given, too."""
    slowest_s: float = 0.0
    peak_mb: float = 0.0
    cpu_s: float = 0.0
    told: list[str] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        """For other tools."""
        found = asdict(self)
        del found["told"]
        return found

    def add(self, other: Outcome) -> None:
        """What some more inputs did."""
        self.inputs += other.inputs
        self.findings += other.findings
        self.accepted += other.accepted
        self.commands += other.commands
        self.slowest_s = max(self.slowest_s, other.slowest_s)
        self.peak_mb = max(self.peak_mb, other.peak_mb)
        self.cpu_s = round(self.cpu_s + other.cpu_s, 1)
        self.told = (self.told + other.told)[:SHOWN]


class Guard:
    """Notices files that are written where none should be."""

    def __init__(self) -> None:
        self.place: Path | None = None
        self.outside: list[str] = []
        sys.addaudithook(self._heard)

    def _heard(self, event: str, args: tuple[Any, ...]) -> None:
        if self.place is None or event not in ("open", "os.remove", "os.rename", "os.mkdir", "os.symlink", "os.link"):
            return
        if event == "open" and not (isinstance(args[2], int) and args[2] & _WRITING):
            return
        # What is changed by renaming and linking is the second of the two.
        path = args[1] if event in ("os.rename", "os.symlink", "os.link") else args[0]
        if isinstance(path, int) or os.fspath(path) in ("/dev/null", b"/dev/null"):
            return
        with contextlib.suppress(OSError, ValueError):
            found = os.path.normpath(os.path.join(os.getcwd(), os.fsdecode(path)))
            if not Path(found).is_relative_to(self.place):
                self.outside.append(f"{event} {found}")


GUARD: list[Guard] = []
LATE: list[int] = []
"""What an event loop swallows is known all the same."""


def _too_long(number: int, frame: FrameType | None) -> None:
    LATE.append(number)
    raise Hang


@contextlib.contextmanager
def _place() -> Iterator[Path]:
    before = Path.cwd()
    folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir=MEMORY if MEMORY.is_dir() else None)).resolve()
    os.chdir(folder)
    # Temporary files may be; so they are here.
    tempfile.tempdir = str(folder)
    try:
        yield folder
    finally:
        os.chdir(before)
        tempfile.tempdir = None
        shutil.rmtree(folder, ignore_errors=True)


def _megabytes() -> float:
    """The most memory that this process has ever had."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def made(name: str, number: int) -> bytes:
    """Input number so-and-so of a target."""
    return TARGETS[name].make(Random(f"{name}:{number}"))


def fuzz(name: str, numbers: range, tell: Callable[[int], None] = lambda number: None) -> Outcome:
    """Give a target these inputs; ``tell`` hears of each before its turn."""
    outcome = Outcome()
    if not GUARD:
        GUARD.append(Guard())
    before, began = signal.signal(signal.SIGPROF, _too_long), time.process_time()
    # A process that was large before it read anything is not blamed for that.
    most = MOST_MEGABYTES + (size if (size := _megabytes()) > MOST_MEGABYTES else 0)
    with _place() as folder:
        try:
            for number in numbers:
                tell(number)
                trouble = _one(name, number, folder, outcome)
                outcome.inputs += 1
                memory = _megabytes()
                if memory > most >= outcome.peak_mb:
                    trouble = trouble or f"took memory of {memory:.0f} MB"
                outcome.peak_mb = max(outcome.peak_mb, memory)
                if trouble:
                    outcome.findings += 1
                    if len(outcome.told) < SHOWN:
                        outcome.told.append(f"{name} input {number}: {trouble}")
        finally:
            signal.signal(signal.SIGPROF, before)
    outcome.cpu_s = round(time.process_time() - began, 1)
    return outcome


def _one(name: str, number: int, folder: Path, outcome: Outcome) -> str:
    """What is wrong with how a target took an input."""
    target, guard, data = TARGETS[name], GUARD[0], made(name, number)
    place = folder / "input"
    place.mkdir()
    guard.place, guard.outside = folder, []
    began = time.process_time()
    trouble = ""
    try:
        signal.setitimer(signal.ITIMER_PROF, LONGEST, 1)
        with contextlib.suppress(*target.errors):
            target.read(data, place)
            outcome.accepted += 1
        if commands.due(name, number):
            outcome.commands += 1
            trouble = commands.command(name, number, data, place)
    except Hang:
        pass
    except Exception:
        trouble = "".join(traceback.format_exc().splitlines(keepends=True)[-7:])
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        guard.place = None
        shutil.rmtree(place, ignore_errors=True)
    if LATE:
        LATE.clear()
        trouble = f"took more than {LONGEST} s"
    outcome.slowest_s = max(outcome.slowest_s, round(time.process_time() - began, 3))
    return f"wrote outside: {guard.outside[0]}" if guard.outside else trouble

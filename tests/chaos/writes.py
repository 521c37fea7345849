"""Runs whose disk is full, or whose reader is gone, from a chosen event on: what they leave, and what they say."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.stage import Played, Stage
from winready.engine import events
from winready.engine.journal import NAME, Journal, read
from winready.engine.run import Run
from winready.report import junit
from winready.report.files import Rendered
from winready.report.following import Handler
from winready.report.html import page
from winready.report.record import RecordFile
from winready.report.terminal import Plain

TORN = 7
"""Bytes of the line that still find room."""


def handlers(folder: Path) -> list[Handler]:
    """Whoever writes files of a run beside its journal."""
    kept = RecordFile(folder)
    return [
        kept,
        Rendered(folder / junit.NAME, lambda: junit.render(kept.record)),
        Rendered(folder / page.NAME, lambda: page.render(kept.record)),
    ]


def full_disk(stage: Stage, folder: Path, number: int, *requirements: str) -> tuple[bool, list[str]]:
    """No file grows after the event of that number; whether there was one, and what is wrong after it."""
    count = 0

    def on(event: events.AnyEvent, run: Run) -> None:
        nonlocal count
        if count == number:
            size = (folder / NAME).stat().st_size
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + TORN, hard))
        count += 1

    with _limits_restored():
        played = stage.play(*requirements, journal=Journal(folder), others=handlers(folder), on=on)
    happened, wrong = read(folder), _left(played)
    if len(happened) != min(number + 1, len(played.told)) or happened != played.told[: len(happened)]:
        wrong.append(f"{len(happened)} of {len(played.told)} events can be read")
    wrong += [f"{path.name} is there in part" for path in folder.iterdir() if path.name.endswith(".part")]
    if len(happened) < len(played.told):
        wrong += _not_stopped(played)
        if played.troubles.get(NAME) != f"{NAME} cannot be written: File too large":
            wrong.append(f"told: {played.troubles}")
    return count > number, wrong


def closed_pipe(stage: Stage, folder: Path, number: int, *requirements: str) -> tuple[bool, list[str]]:
    """Nobody reads what a run says after the event of that number; whether there was one, and what is wrong."""
    reading, writing = os.pipe()
    count = 0

    def on(event: events.AnyEvent, run: Run) -> None:
        nonlocal count
        if count == number:
            os.close(reading)
        count += 1

    kept = RecordFile(folder)
    # What nobody took is tried once more when it is closed.
    with suppress(BrokenPipeError), os.fdopen(writing, "w") as stream:
        played = stage.play(*requirements, journal=Journal(folder), others=[kept, Plain(stream, kept.record)], on=on)
    if count <= number:
        os.close(reading)
    wrong = _left(played)
    if len(played.troubles) != (count > number + 1):
        wrong.append(f"told: {played.troubles}")
    if read(folder) != played.told:
        wrong.append("the journal is not whole")
    if any(result.outcome != "passed" for result in played.results.values()):
        wrong += _not_stopped(played)
    return count > number, wrong


def _left(played: Played) -> list[str]:
    return [f"{thing} is left" for thing in played.left]


def _not_stopped(played: Played) -> list[str]:
    """What has lost its journal, or was given up for trouble of ours, is no Pass."""
    verdict = played.verdict
    right = (verdict.verdict, verdict.exit_code) == ("Fail", 3)
    return [] if right else [f"the verdict is {verdict.verdict}, exit code {verdict.exit_code}"]


@contextmanager
def _limits_restored() -> Iterator[None]:
    """Whatever limit is set for the size of files is gone afterwards."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

"""``winready status``: the verdict of a run, in one word, or how far it is."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING

import click

from winready.cli.options import colour_wanted, fail, print_document, say, table_option
from winready.cli.places import asked_place, kept_fresh, place_of_run, reading_run
from winready.cli.runs import find_run, report_dir_option
from winready.cli.tables import WIDE, print_record

if TYPE_CHECKING:
    from pathlib import Path

    from winready.report.record import Record

FRESH = 3.0
"""Seconds between two looks at a run elsewhere."""


@click.command()
@click.argument("run", required=False)
@click.option("-w", "--watch", is_flag=True, help="Follow a run that goes on, from another terminal, to its end.")
@report_dir_option
@table_option
def status(run: str | None, watch: bool, report_dir: str | None, output: str) -> None:
    """Print the verdict of the last run, or of RUN, with its exit code.

    RUN is an id, a folder, a bundle or a tarball of Sonobuoy.

    \b
    winready status
    winready status ./winready-runs/261115-101500-ab12
    winready status -o wide                                 with a line for each requirement
    winready status --watch                                 of the run that goes on
    """
    if watch:
        found = _watch(run, report_dir)
    else:
        _, found = find_run(run, report_dir)
    _tell(found, output, brief=watch)
    sys.exit(found.exit_code)


def _tell(found: Record, output: str, *, brief: bool) -> None:
    from winready.report.words import not_judged_lines

    if output == WIDE:
        print_record(found, output)
    elif output != "text":
        keys = ("run_id", "verdict", "verdict_text", "scope", "exit_code", "verdict_reasons", "not_judged")
        print_document({key: getattr(found, key) for key in (*keys, "linux_not_judged", "simulated")}, output)
    elif not brief:
        say(found.verdict_text)
        for line in not_judged_lines(found):
            say(line, err=True)
        if found.simulated:
            say("simulated cluster (sandbox)", err=True)


def _watch(run: str | None, report_dir: str | None) -> Record:
    """Show a run as its own terminal does, until it has its verdict."""
    folder = _going_on(run, report_dir)
    place = place_of_run(run) or asked_place(report_dir)
    with kept_fresh(place, folder.name, FRESH):
        finished = asyncio.run(_follow(folder))
    if finished is None:
        fail(f"run {folder.name} was cut off", f"'winready run --resume {folder.name}' does the rest", code=3)
    return finished


def _going_on(run: str | None, report_dir: str | None) -> Path:
    from winready.report import folders
    from winready.report.history import unfinished

    run, base = reading_run(run, report_dir)
    if run is None:
        names = [name for name, going in unfinished(base) if going]
        if not names:
            fail(f"no run goes on in {base}", "'winready history' lists the runs that there are")
        run = max(names)
    try:
        return folders.find(base, run)
    except folders.RunNotFound as error:
        fail(str(error), "'winready history' lists the runs that there are")


async def _follow(folder: Path) -> Record | None:
    """The record of the run once it has ended; None when it was cut off."""
    from winready.engine.events import RunFinished
    from winready.report.record import Record
    from winready.report.tailing import tail
    from winready.report.terminal import Live, make_terminal

    record = Record()
    last = time.monotonic()

    def clock() -> float:
        """Between two events its time goes on with ours; simulated time goes by itself."""
        return record.duration_s + (0.0 if record.settings.get("virtual_time") else time.monotonic() - last)

    terminal = make_terminal(sys.stdout, record, 1.0, colour=colour_wanted(), clock=clock)
    terminal.start()
    try:
        async for _, event in tail(folder):
            if event is None:
                break
            record.apply(event)
            last = time.monotonic()
            if isinstance(terminal, Live):
                terminal.scale = _scale(record)
            terminal.handle(event)
            if isinstance(event, RunFinished):
                return record
    finally:
        terminal.close()
    return None


def _scale(record: Record) -> float:
    """How much faster than planned its time goes."""
    scale = record.settings.get("time_scale")
    return float(scale) if isinstance(scale, int | float) and 0 < scale <= 100 else 1.0

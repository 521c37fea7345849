"""From ``--report-dir`` to a folder on this machine, whether it names one or a place elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from winready.cli.options import fail, say

if TYPE_CHECKING:
    from winready.report.sharing.mirror import Mirror, Progress, Seen
    from winready.store.addresses import Place
    from winready.store.objects import Objects

NAMED = 5
MANY = 50
"""More objects than that are worth telling how far it is."""


def place_elsewhere(text: str) -> Place | None:
    """The place that an address names; None for a path. A mistake ends the command."""
    from winready.store.addresses import is_address, parse

    if not is_address(text):
        return None
    with told():
        return parse(text)


def asked_place(report_dir: str | None) -> Place | None:
    """``--report-dir``, else ``$ARTIFACTS``, where that is an address."""
    return place_elsewhere(report_dir or os.environ.get("ARTIFACTS") or "")


def place_of_run(run: str | None) -> Place | None:
    """The place that a run given as an address is in."""
    place = place_elsewhere(run) if run else None
    return place.above()[0] if place is not None else None


def writing(report_dir: str | None) -> tuple[Path, Place | None]:
    """Where a run writes its folder, and where it is to be sent from there."""
    from winready.report import folders

    place = asked_place(report_dir)
    if place is None:
        return folders.report_folder(report_dir), None
    return spool_of(place), place


def spool_of(place: Place) -> Path:
    """Where runs for a place wait."""
    from winready.report.sharing import keeping

    with told():
        base = keeping.spool(place)
        keeping.forget_sent(base)
        return base


def reading(report_dir: str | None, only: str | None = None) -> Path:
    """The folder to read runs from; of a place elsewhere its mirror, as of now. With ``only``, all of one run."""
    from winready.report import folders

    place = asked_place(report_dir)
    if place is None:
        return folders.report_folder(report_dir)
    return mirrored(place, only).folder


def reading_run(run: str | None, report_dir: str | None) -> tuple[str | None, Path]:
    """The name of a run and the folder to find it in; RUN may be an address of its own."""
    place = place_elsewhere(run) if run else None
    if run is not None and place is None and Path(run).is_dir():
        return run, Path(run).parent
    if place is None:
        elsewhere = asked_place(report_dir)
        if elsewhere is not None:
            run = run or _newest(elsewhere)
        return run, reading(report_dir, run if elsewhere is not None else None)
    upper, name = place.above()
    if not name:
        fail(f"{place.address} names no run", "write the address of a report folder, a slash and the id of a run")
    return name, mirrored(upper, name).folder


def _newest(place: Place) -> str:
    """The newest finished run of a place, by its id: nobody fetches ten thousand runs for one."""
    from winready.cluster.settings import RUN_ID
    from winready.report.sharing.layout import sort

    with told():
        runs, _ = sort(opened(place).list())
    finished = [run.name for run in runs.values() if run.finished]
    if not finished:
        fail(f"there is no finished run in {place.address}; 'winready run' makes one")
    return max(finished, key=lambda name: (RUN_ID.fullmatch(name) is not None, name))


def mirrored(place: Place, only: str | None = None) -> Mirror:
    """The mirror of a place, as of now; what is odd there is named."""
    from winready.report.sharing import keeping
    from winready.report.sharing.layout import is_run
    from winready.report.sharing.mirror import Mirror

    if only is not None and not is_run(only):
        fail(f"there is no run {only!r} in {place.address}", "'winready history' lists the runs that there are")
    with told():
        mirror = Mirror(opened(place), keeping.mirror(place))
        with _progress(place) as progress:
            seen = mirror.refresh(only, progress)
    _tell(place, seen)
    if only is not None and only not in seen.runs:
        fail(f"there is no run {only!r} in {place.address}", "'winready history' lists the runs that there are")
    return mirror


def shown(base: Path, report_dir: str | None) -> str:
    """A report folder as its user knows it."""
    place = asked_place(report_dir)
    return place.address if place is not None else str(base)


@contextmanager
def kept_fresh(place: Place | None, only: str | None, seconds: float) -> Iterator[None]:
    """Let the mirror of a place follow it meanwhile; trouble is said once, and what was seen stays."""
    if place is None:
        yield
        return
    import threading

    from winready.report.sharing import keeping
    from winready.report.sharing.mirror import Mirror
    from winready.store.errors import StoreError

    mirror, over = Mirror(opened(place), keeping.mirror(place)), threading.Event()

    def follow() -> None:
        said = False
        while not over.wait(seconds):
            try:
                mirror.refresh(only)
                said = False
            except (StoreError, OSError) as error:
                if not said:
                    say(f"note: {error}; what is shown is what was seen before", err=True)
                said = True

    thread = threading.Thread(target=follow, name="mirror", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()


def opened(place: Place) -> Objects:
    """The objects of a place; a mistake ends the command."""
    from winready.store.objects import open_place

    with told():
        return open_place(place)


@contextmanager
def told() -> Iterator[None]:
    """Trouble with a place, as the end of a command: 2 for what was written wrongly, 3 for what may pass."""
    from winready.report.sharing.keeping import NotSafe
    from winready.store.errors import Away, Full, StoreError

    try:
        yield
    except (Away, Full) as error:
        fail(error.message, error.remedy, code=3)
    except StoreError as error:
        fail(error.message, error.remedy)
    except NotSafe as error:
        fail(str(error), "set XDG_STATE_HOME and XDG_CACHE_HOME to folders of yours")
    except OSError as error:
        where = error.filename or "the folder for results from elsewhere"
        fail(f"{where} cannot be written: {error.strerror}", "set XDG_STATE_HOME and XDG_CACHE_HOME to other folders")


def _tell(place: Place, seen: Seen) -> None:
    if seen.foreign:
        more = f" and {len(seen.foreign) - NAMED} more" if len(seen.foreign) > NAMED else ""
        names = ", ".join(repr(key[:80]) for key in sorted(seen.foreign)[:NAMED])
        say(f"note: {place.address} has objects that belong to no run, and are left alone: {names}{more}", err=True)
    for key, why in list(seen.left_out.items())[:NAMED]:
        say(f"note: {key} in {place.address} is left out: {why}", err=True)


@contextmanager
def _progress(place: Place) -> Iterator[Progress | None]:
    """How far it is, for whoever watches and has to wait."""
    if not sys.stderr.isatty():
        yield None
        return
    shown = False

    def show(done: int, of: int) -> None:
        nonlocal shown
        if of > MANY and (done % MANY == 0 or done == of):
            click.echo(f"\r{place.address}: {done} of {of} runs", nl=False, err=True)
            shown = True

    try:
        yield show
    finally:
        if shown:
            click.echo("\n", nl=False, err=True)

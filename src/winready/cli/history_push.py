"""``winready history push``: bring runs to the place that many share."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from winready.cli.options import fail, say
from winready.cli.places import asked_place, opened, place_elsewhere, spool_of, told
from winready.cli.runs import read_folder

if TYPE_CHECKING:
    from winready.report.sharing.pushing import Pushed
    from winready.store.addresses import Place
    from winready.store.objects import Objects


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--report-dir", metavar="ADDRESS", help="Where to: s3://BUCKET/PREFIX, gs://, az:// or file://.")
@click.option("--from", "source", metavar="DIR", help="Push the runs of this report folder.")
@click.option("--prow", metavar="ADDRESS", help="Also write each run there as a build of a Prow job.")
def push(runs: tuple[str, ...], report_dir: str | None, source: str | None, prow: str | None) -> None:
    """Send runs that are not there yet, or not whole: what a store that was away or full did not take.

    RUN is an id or a folder; without one, everything that still waits to be sent there. Objects that are there are
    compared and never overwritten, so that it can be done again at any time. Exit code 3 when something is not there.

    \b
    winready history push --report-dir s3://shop-runs/fleet
    winready history push 261115-101500-ab12 --report-dir s3://shop-runs/fleet
    winready history push --from ./winready-runs --report-dir s3://shop-runs/fleet
    """
    place = asked_place(report_dir)
    if place is None:
        raise click.UsageError("say where to: --report-dir s3://BUCKET/PREFIX, gs://, az:// or file:///FOLDER")
    builds = place_elsewhere(prow) if prow else None
    if prow and builds is None:
        raise click.UsageError("--prow is an address: s3://BUCKET/PREFIX, gs://, az:// or file:///FOLDER")
    spool = spool_of(place)
    found = _chosen(runs, spool, Path(source) if source else None)
    if not found:
        say(f"nothing waits to be sent to {place.address}")
        return
    objects = opened(place)
    failed = [folder.name for folder in found if not _push(objects, folder, spool, builds)]
    if failed:
        sys.exit(3)


def _chosen(runs: tuple[str, ...], spool: Path, source: Path | None) -> list[Path]:
    from winready.engine import journal
    from winready.report import folders, record
    from winready.report.sharing.pushing import SENT

    if source is not None and not source.is_dir():
        fail(f"there is no folder {source}", "name a report folder with --from")
    if runs:
        return [_named(run, [source] if source else [spool, Path(folders.DEFAULT)]) for run in runs]
    base = source or spool
    names = {folder for name in (record.NAME, journal.NAME) for folder in folders.runs(base, name)}
    return sorted(folder for folder in names if source or not (folder / SENT).exists())


def _named(run: str, bases: list[Path]) -> Path:
    from winready.report import folders

    for base in bases:
        with suppress(folders.RunNotFound):
            return folders.find(base, run).resolve()
    return fail(
        f"there is no run {run!r} in {' or '.join(map(str, bases))}", "name it by its folder, or say --from DIR"
    )


def _push(objects: Objects, folder: Path, spool: Path, builds: Place | None) -> bool:
    from winready.report.sharing.layout import is_run
    from winready.report.sharing.pushing import SENT, push
    from winready.store.errors import TooLarge
    from winready.store.objects import Conflict

    if not is_run(folder.name):
        say(f"error: {folder.name!r} is no name for a run in a store", err=True)
        return False
    with told():
        try:
            done = push(objects, folder)
            if builds is not None and done.finished:
                push_build(builds, folder)
        except (Conflict, TooLarge) as error:
            # Of this run alone; the others may do better.
            say(f"error: {error.message}", err=True)
            say(f"       {error.remedy}", err=True)
            return False
    if done.finished and folder.is_relative_to(spool.resolve()):
        (folder / SENT).touch()
    say(_words(done))
    return True


def push_build(builds: Place, folder: Path) -> None:
    """Write a run as a build of a Prow job; raises a `StoreError`."""
    from winready.cluster.settings import RUN_ID
    from winready.report import prow
    from winready.store.objects import open_place, put_once

    run = read_folder(folder)
    if RUN_ID.fullmatch(run.run_id) is None:
        fail(f"run {run.run_id[:80]!r} has no id that a build could be numbered by", "leave --prow out")
    place = builds.below(prow.build(run.run_id))
    objects = open_place(builds)
    for name, content in prow.files(run).items():
        put_once(objects, f"{place.above()[1]}/{name}", content)
    say(f"build: {place.address}")


def _words(done: Pushed) -> str:
    state = "" if done.finished else "; it has no record yet, and is told by its journal"
    if not done.sent:
        return f"{done.run}: all {done.there} objects were there already{state}"
    there = f", {done.there} were there already" if done.there else ""
    return f"{done.run}: {done.sent} objects sent{there}{state}"

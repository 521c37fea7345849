"""From RUN on the command line to a run: an id, a folder, an address, a bundle, a tarball, or the newest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from winready.cli.options import fail, say
from winready.cli.places import reading_run, shown

if TYPE_CHECKING:
    from winready.report.bundle.making import Certificate
    from winready.report.history import History
    from winready.report.products import Product
    from winready.report.record import Record

report_dir_option = click.option(
    "--report-dir",
    metavar="DIR",
    help="Where runs are: a folder, or s3://BUCKET/PREFIX, gs://, az://, file:// "
    "(default: $ARTIFACTS, else ./winready-runs).",
)


def find_run(run: str | None, report_dir: str | None) -> tuple[Path, Record]:
    """The folder and the record of a run; a mistake of the user ends the command.

    A run without a record that can be read is told by its journal, as far as it came.
    """
    from winready.report import folders

    if run is not None and Path(run).is_file():
        from winready.report.sonobuoy_archive import looks_like_one

        return run_in_archive(Path(run)) if looks_like_one(Path(run)) else (Path(run), _in_bundle(Path(run)))
    name, base = reading_run(run, report_dir)
    try:
        folder = folders.find(base, name)
    except folders.RunNotFound as error:
        words = str(error).replace(str(base), shown(base, report_dir))
        fail(words, "'winready history' lists the runs that there are" if run else "")
    return folder, read_folder(folder)


def find_product(run: str, report_dir: str | None) -> Product:
    """A run for a table of products; a bundle says itself what it is about."""
    from winready.report.products import Product
    from winready.report.sonobuoy_archive import looks_like_one

    if Path(run).is_file() and not looks_like_one(Path(run)):
        claim, found = _claimed(Path(run))
        name = f"{claim.product.product_name} {claim.product.product_version}"
        return Product(name, found, draft=claim.draft)
    return Product("", find_run(run, report_dir)[1])


def read_folder(folder: Path) -> Record:
    """The record of the run in a folder; without one that can be read, what its journal tells."""
    from winready.engine import journal
    from winready.report import record

    try:
        if (folder / record.NAME).exists():
            return record.read(folder)
        state = "is in progress" if journal.in_progress(folder) else "was cut off"
        problem = f"run {folder.name} {state}; this is what its journal tells so far"
    except journal.Unreadable as error:
        problem = f"{error}; this is what the run's journal tells"
    try:
        found = record.read_story(folder)
    except journal.Unreadable as error:
        fail(problem.partition(";")[0], str(error))
    say(f"note: {problem}", err=True)
    return found


def run_in_archive(path: Path, plugin: str | None = None) -> tuple[Path, Record]:
    """The run in a tarball of Sonobuoy; its folder is there until the command ends."""
    folder = folder_in_archive(path, plugin)
    return folder, read_folder(folder)


def folder_in_archive(path: Path, plugin: str | None = None) -> Path:
    """The files of a run in a tarball of Sonobuoy, in a folder that is there until the command ends."""
    import tempfile

    from winready.report.sonobuoy_archive import choose, read_archive
    from winready.spec.archives import ArchiveError

    try:
        files = choose(read_archive(path), plugin)
        # Only files that winready knows by name are written, and none where the tarball would have them.
        folder = Path(click.get_current_context().with_resource(tempfile.TemporaryDirectory(prefix="winready-")))
        for name, content in files.items():
            (folder / name).write_bytes(content)
    except ArchiveError as error:
        fail(f"{path} {error}", "'--plugin NAME' chooses one of them" if "several" in str(error) else "", code=2)
    except OSError as error:
        fail(f"the run in {path} cannot be unpacked: {error.strerror}")
    return folder


def _in_bundle(path: Path) -> Record:
    return _claimed(path)[1]


def _claimed(path: Path) -> tuple[Certificate, Record]:
    from winready.report.bundle.archive import BundleError
    from winready.report.bundle.verifying import read_claim

    try:
        return read_claim(path.read_bytes())
    except OSError as error:
        fail(f"{path} cannot be read: {error.strerror}")
    except BundleError as error:
        fail(f"{path} is no intact bundle: {error}", "a run is named by its id, its folder or its bundle")


def take_in(index: History) -> None:
    """Bring an index up to date; where that takes a while, say how far it is."""
    from winready.report.history import AT_ONCE

    told = 0

    def tell(done: int, total: int) -> None:
        nonlocal told
        if total > AT_ONCE and done - told >= total / 10:
            told = done
            say(f"note: {done} of {total} new runs taken in", err=True)

    index.sync(tell)


def write_text(text: str, to: str | None) -> None:
    """Text to a file, or to standard output."""
    if to is None or to == "-":
        click.echo(text, nl=False)
        return
    try:
        Path(to).write_bytes(text.encode())
    except OSError as error:
        fail(f"{to} cannot be written: {error.strerror}", "choose another place with --to")

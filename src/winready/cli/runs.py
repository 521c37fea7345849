"""From RUN on the command line to a run that can be read: an id, a folder, a bundle, or the newest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from winready.cli.options import fail, say

if TYPE_CHECKING:
    from winready.report.record import Record

report_dir_option = click.option(
    "--report-dir", metavar="DIR", help="Where run folders are (default: $ARTIFACTS, else ./winready-runs)."
)


def find_run(run: str | None, report_dir: str | None) -> tuple[Path, Record]:
    """The folder and the record of a run; a mistake of the user ends the command.

    A run without a record that can be read is told by its journal, as far as it came.
    """
    from winready.engine import journal
    from winready.report import folders, record

    base = folders.report_folder(report_dir)
    if run is not None and Path(run).is_file():
        return Path(run), _in_bundle(Path(run))
    try:
        folder = folders.find(base, run)
    except folders.RunNotFound as error:
        fail(str(error), "'winready history' lists the runs that there are" if run else "")
    try:
        if (folder / record.NAME).exists():
            return folder, record.read(folder)
        state = "is in progress" if journal.in_progress(folder) else "was cut off"
        problem = f"run {folder.name} {state}; this is what its journal tells so far"
    except journal.Unreadable as error:
        problem = f"{error}; this is what the run's journal tells"
    try:
        found = record.read_story(folder)
    except journal.Unreadable as error:
        fail(problem.partition(";")[0], str(error))
    say(f"note: {problem}", err=True)
    return folder, found


def _in_bundle(path: Path) -> Record:
    from winready.report.bundle.archive import BundleError
    from winready.report.bundle.verifying import read_run

    try:
        return read_run(path.read_bytes())
    except OSError as error:
        fail(f"{path} cannot be read: {error.strerror}")
    except BundleError as error:
        fail(f"{path} is no intact bundle: {error}", "a run is named by its id, its folder or its bundle")


def write_text(text: str, output: str | None) -> None:
    """Text to a file, or to standard output."""
    if output is None or output == "-":
        click.echo(text, nl=False)
        return
    try:
        Path(output).write_bytes(text.encode())
    except OSError as error:
        fail(f"{output} cannot be written: {error.strerror}", "choose another place with --output")

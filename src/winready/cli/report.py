"""``winready report``: a finished run in the format that somebody else reads."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from winready.cli.options import fail, say
from winready.cli.runs import find_run, report_dir_option, write_text

if TYPE_CHECKING:
    from winready.report.record import Record

FORMS = ("text", "html", "junit", "csv", "json", "yaml", "markdown", "sonobuoy", "prow")


class FormOrOldPath(click.Choice[str]):
    """A format. Before ``--to`` there was ``--output PATH``, and scripts still write that."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return value if set(value) & set("./\\") else super().convert(value, param, ctx)


@click.command()
@click.argument("run", required=False)
@click.option(
    "-o",
    "--output",
    "--format",
    "asked",
    type=FormOrOldPath(FORMS),
    multiple=True,
    metavar="FORMAT",
    help=f"What to write: {', '.join(FORMS)}. Without it text on a terminal, html elsewhere.",
)
@click.option("--to", metavar="PATH", help="Write there instead of to standard output; for prow, a folder.")
@click.option("--open", "shown", is_flag=True, help="Show the page in the browser.")
@report_dir_option
def report(run: str | None, asked: tuple[str, ...], to: str | None, shown: bool, report_dir: str | None) -> None:
    """Render the last run, or RUN (an id, a folder, a bundle or a tarball of Sonobuoy).

    \b
    winready report                                    the summary
    winready report --open                             the page, in the browser
    winready report --to report.html
    winready report 261115-101500-ab12 -o markdown     for a pull request
    winready report -o csv --to run.csv                for a spreadsheet
    winready report -o prow --to build/                started.json, finished.json, artifacts/
    """
    for old in (each for each in asked if each not in FORMS):
        say(f"note: --output is the format now; files are named by --to {old}", err=True)
        to = to or old
    form = next((each for each in reversed(asked) if each in FORMS), None)
    folder, record = find_run(run, report_dir)
    if shown:
        if form not in (None, "html"):
            raise click.UsageError(f"--open shows the page; leave -o {form} out")
        _show(folder, record, to)
        return
    form = form or ("html" if to or not sys.stdout.isatty() else "text")
    if form == "prow":
        from winready.report import prow

        if not to:
            fail("prow is a layout of several files", "name a folder with --to")
        try:
            prow.write(record, Path(to))
        except OSError as error:
            fail(f"{to} cannot be written: {error.strerror}", "choose another folder with --to")
        return
    from winready.report.formats import FORMATS

    write_text(FORMATS[form](record), to)


def _show(folder: Path, record: Record, to: str | None) -> None:
    """Open the page of a run: written anew, so that it is what this version makes of it."""
    import tempfile
    import webbrowser

    from winready.report.html import page

    if to is None:
        # Browsers read it after this command has ended.
        to = str(Path(tempfile.mkdtemp(prefix="winready-")) / f"{record.run_id or folder.name}.html")
    write_text(page.render(record), to)
    say(f"report: {to}")
    if not webbrowser.open(Path(to).absolute().as_uri()):
        fail("no browser can be started here", f"open {to} in one", code=3)

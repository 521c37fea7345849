"""``winready report``: a finished run in the format that somebody else reads."""

from __future__ import annotations

from pathlib import Path

import click

from winready.cli.options import fail
from winready.cli.runs import find_run, report_dir_option, write_text

CHOICES = ("html", "junit", "csv", "json", "yaml", "markdown", "sonobuoy", "prow")


@click.command()
@click.argument("run", required=False)
@click.option("--format", "form", type=click.Choice(CHOICES), default="html", show_default=True, help="What to write.")
@click.option("--output", metavar="PATH", help="Where to (default: standard output); for prow, a folder.")
@report_dir_option
def report(run: str | None, form: str, output: str | None, report_dir: str | None) -> None:
    """Render the last run, or RUN (an id, a folder, a bundle or a tarball of Sonobuoy).

    \b
    winready report --output report.html
    winready report 261115-101500-ab12 --format markdown     for a pull request
    winready report --format csv --output run.csv            for a spreadsheet
    winready report --format prow --output build/            started.json, finished.json, artifacts/
    """
    _, record = find_run(run, report_dir)
    if form == "prow":
        from winready.report import prow

        if not output:
            fail("prow is a layout of several files", "name a folder with --output")
        try:
            prow.write(record, Path(output))
        except OSError as error:
            fail(f"{output} cannot be written: {error.strerror}", "choose another folder with --output")
        return
    from winready.report.formats import FORMATS

    write_text(FORMATS[form](record), output)

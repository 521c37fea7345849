"""``winready status``: the verdict of a run, in one word."""

from __future__ import annotations

import sys

import click

from winready.cli.options import fail, print_document


@click.command()
@click.argument("run", required=False)
@click.option("--report-dir", metavar="DIR", help="Where run folders are (default: $ARTIFACTS, else ./winready-runs).")
@click.option("-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True)
def status(run: str | None, report_dir: str | None, output: str) -> None:
    """Print the verdict of the last run, or of RUN (an id or a folder), with its exit code.

    \b
    winready status
    winready status ./winready-runs/261115-101500-ab12
    """
    import msgspec

    from winready.report import folders, record

    try:
        folder = folders.find(folders.report_folder(report_dir), run)
        found = record.read(folder)
    except folders.RunNotFound as error:
        fail(str(error))
    except (OSError, msgspec.DecodeError) as error:
        fail(f"{folder / record.NAME} cannot be read: {error}", "the run's journal.jsonl may still be whole")
    if output == "text":
        click.echo(found.verdict_text)
    else:
        keys = ("run_id", "verdict", "verdict_text", "scope", "exit_code", "verdict_reasons")
        print_document({key: getattr(found, key) for key in keys}, output)
    sys.exit(found.exit_code)

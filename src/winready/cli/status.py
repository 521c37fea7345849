"""``winready status``: the verdict of a run, in one word."""

from __future__ import annotations

import sys

import click

from winready.cli.options import print_document, say
from winready.cli.runs import find_run, report_dir_option


@click.command()
@click.argument("run", required=False)
@report_dir_option
@click.option("-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True)
def status(run: str | None, report_dir: str | None, output: str) -> None:
    """Print the verdict of the last run, or of RUN, with its exit code.

    RUN is an id, a folder, a bundle or a tarball of Sonobuoy.

    \b
    winready status
    winready status ./winready-runs/261115-101500-ab12
    """
    from winready.report.words import not_judged_lines

    _, found = find_run(run, report_dir)
    if output == "text":
        say(found.verdict_text)
        for line in not_judged_lines(found):
            say(line, err=True)
        if found.simulated:
            say("simulated cluster (sandbox)", err=True)
    else:
        keys = ("run_id", "verdict", "verdict_text", "scope", "exit_code", "verdict_reasons", "not_judged")
        print_document({key: getattr(found, key) for key in (*keys, "linux_not_judged", "simulated")}, output)
    sys.exit(found.exit_code)

"""``winready compare``: two runs side by side."""

from __future__ import annotations

import sys

import click

from winready.cli.options import document_text
from winready.cli.runs import find_run, report_dir_option, write_text


@click.command()
@click.argument("a")
@click.argument("b")
@click.option("--name", "names", multiple=True, metavar="TEXT", help="What stands above each column; give it twice.")
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["text", "markdown", "html", "csv", "json", "yaml"]),
    default="text",
    show_default=True,
    help="Form of the comparison.",
)
@click.option("--to", metavar="FILE", help="Write to this file instead of standard output.")
@report_dir_option
def compare(a: str, b: str, names: tuple[str, ...], form: str, to: str | None, report_dir: str | None) -> None:
    """Show what changed from run A to run B, for better or worse, with the evidence that differs.

    A and B are run ids, run folders, bundles or tarballs of Sonobuoy. Exit code 1 when something got worse.

    \b
    winready compare 261114-090000-11aa 261115-101500-ab12
    winready compare old.tar.gz new.tar.gz --name "Shop 1.4" --name "Shop 1.5" -o markdown
    """
    from winready.report.comparing import compare as compare_runs

    if len(names) not in (0, 2):
        raise click.UsageError("give --name twice: for A and for B")
    first, second = (find_run(run, report_dir)[1] for run in (a, b))
    found = compare_runs(first, second, (names[0], names[1]) if names else ("", ""))
    if form in ("json", "yaml"):
        write_text(document_text(found, form), to)
    else:
        from winready.report.comparison_forms import FORMS

        write_text(FORMS[form](found), to)
    sys.exit(1 if found.worse else 0)

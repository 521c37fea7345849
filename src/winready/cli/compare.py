"""``winready compare``: two runs side by side."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from winready.cli.options import document_text, output_option
from winready.cli.runs import find_run, report_dir_option, write_text
from winready.cli.tables import WIDE, listed, table_text
from winready.report.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from winready.report.comparing import Comparison, Row


@click.command()
@click.argument("a")
@click.argument("b")
@click.option("--name", "names", multiple=True, metavar="TEXT", help="What stands above each column; give it twice.")
@output_option("text", "wide", "markdown", "html", "csv", "json", "yaml")
@click.option("--to", metavar="FILE", help="Write to this file instead of standard output.")
@report_dir_option
def compare(a: str, b: str, names: tuple[str, ...], output: str, to: str | None, report_dir: str | None) -> None:
    """Show what changed from run A to run B, for better or worse, with the evidence that differs.

    A and B are run ids, run folders, bundles or tarballs of Sonobuoy. Exit code 1 when a requirement or
    rule got worse; features and workloads are compared where both runs have them, and never counted.

    \b
    winready compare 261114-090000-11aa 261115-101500-ab12
    winready compare old.tar.gz new.tar.gz --name "Shop 1.4" --name "Shop 1.5" -o markdown
    """
    from winready.report.comparing import compare as compare_runs

    if len(names) not in (0, 2):
        raise click.UsageError("give --name twice: for A and for B")
    first, second = (find_run(run, report_dir)[1] for run in (a, b))
    found = compare_runs(first, second, (names[0], names[1]) if names else ("", ""))
    if output in ("json", "yaml"):
        write_text(document_text(found, output), to)
    elif output == WIDE:
        write_text("\n".join(_wide(found)), to)
    else:
        from winready.report.comparison_forms import FORMS

        write_text(FORMS[output](found), to)
    sys.exit(1 if found.worse else 0)


def _wide(found: Comparison) -> Iterator[str]:
    """Both runs, then everything that was compared: what stayed the same, too."""
    sides = [
        (letter, side.name, side.run_id, side.verdict, side.cluster, side.version, listed(side.builds), side.tool)
        for letter, side in (("A", found.a), ("B", found.b))
    ]
    yield table_text(("SIDE", "NAME", "RUN", "VERDICT", "CLUSTER", "KUBERNETES", "WINDOWS", "TOOL"), *sides)
    if found.notes:
        yield printable("".join(f"note: {note}\n" for note in found.notes))
    for kind, rows in (("requirements", found.rows), *found.advisory):
        heads = ("CHANGE", kind.upper().removesuffix("S"), found.a.name, found.b.name, "TOOK A", "TOOK B", "WHY")
        yield table_text(heads, *(_cells(row) for row in rows))


def _cells(row: Row) -> tuple[str, ...]:
    from winready.report.words import duration

    took = [duration(seconds) if seconds else "" for seconds in (row.seconds_before, row.seconds_after)]
    reasons = (("A", row.reason_before), ("B", row.reason_after))
    why = "; ".join(f"{letter}: {reason}" for letter, reason in reasons if reason)
    return row.change, row.id, row.sides[0][1], row.sides[1][1], *took, why

"""``winready compare``: two runs side by side, or a table of many products."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from winready.cli.options import document_text, fail, output_option
from winready.cli.places import reading, shown
from winready.cli.runs import find_product, find_run, read_folder, report_dir_option, take_in, write_text
from winready.cli.tables import WIDE, listed, table_text
from winready.report.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from winready.report.comparing import Comparison, Row
    from winready.report.products import Product


@click.command()
@click.argument("runs", nargs=-1, metavar="A B | --grid [RUN]...")
@click.option("--grid", is_flag=True, help="A table of products and versions: one column for each run.")
@click.option("--cluster", metavar="TEXT", help="With --grid: only clusters whose address or id contains this.")
@click.option("--name", "names", multiple=True, metavar="TEXT", help="What stands above each column; one for each run.")
@output_option("text", "wide", "markdown", "html", "csv", "json", "yaml")
@click.option("--to", metavar="FILE", help="Write to this file instead of standard output.")
@report_dir_option
def compare(
    runs: tuple[str, ...], grid: bool, cluster: str | None, names: tuple[str, ...], output: str, to: str | None,
    report_dir: str | None,
) -> None:  # fmt: skip
    """Show what changed from run A to run B, for better or worse, with the evidence that differs.

    Runs are run ids, run folders, bundles or tarballs of Sonobuoy. Exit code 1 when a requirement or
    rule got worse; features and workloads are compared where both runs have them, and never counted.

    With --grid, a table for vendors and for SIG Windows: requirements by category, and a column for each
    run, or without any for the newest run of each cluster and Kubernetes version in the report folder. What a
    bundle is about is named by its product. Partial runs and sandboxes are marked. Exit code 0.

    \b
    winready compare 261114-090000-11aa 261115-101500-ab12
    winready compare old.tar.gz new.tar.gz --name "Shop 1.4" --name "Shop 1.5" -o markdown
    winready compare --grid -o html --to products.html
    winready compare --grid a.tar.gz b.tar.gz c.tar.gz -o markdown
    """
    if grid:
        write_text(_table(runs, names, cluster, output, report_dir), to)
        return
    if cluster:
        raise click.UsageError("--cluster chooses what --grid shows; without it give two runs")
    if len(runs) > 2:
        raise click.UsageError("two runs are compared; --grid shows more side by side")
    if len(runs) < 2:
        raise click.MissingParameter(param_type="argument", param_hint="'B'" if runs else "'A'")
    from winready.report.comparing import compare as compare_runs

    if len(names) not in (0, 2):
        raise click.UsageError("give --name twice: for A and for B")
    first, second = (find_run(run, report_dir)[1] for run in runs)
    found = compare_runs(first, second, (names[0], names[1]) if names else ("", ""))
    if output in ("json", "yaml"):
        write_text(document_text(found, output), to)
    elif output == WIDE:
        write_text("\n".join(_wide(found)), to)
    else:
        from winready.report.comparison_forms import FORMS

        write_text(FORMS[output](found), to)
    sys.exit(1 if found.worse else 0)


def _table(
    runs: tuple[str, ...], names: tuple[str, ...], cluster: str | None, output: str, report_dir: str | None
) -> str:
    """Products side by side."""
    from winready.report.product_forms import FORMS, wide_rows
    from winready.report.products import make_products

    if names and len(names) != len(runs):
        raise click.UsageError(
            "give --name once for each run, in their order" if runs else "--name names runs: give them"
        )
    if runs and cluster:
        raise click.UsageError("--cluster chooses among the runs in the report folder: give no others")
    chosen = [find_product(run, report_dir) for run in runs] or _newest(cluster, report_dir)
    if names:
        chosen = [product._replace(name=name) for product, name in zip(chosen, names, strict=True)]
    found = make_products(chosen)
    if output in ("json", "yaml"):
        return document_text(found, output)
    return table_text(*wide_rows(found)) if output == WIDE else FORMS[output](found)


def _newest(cluster: str | None, report_dir: str | None) -> list[Product]:
    """The newest run of each cluster and Kubernetes version."""
    from winready.report.fleet.clusters import newest_by_version
    from winready.report.history import History
    from winready.report.products import Product

    base = reading(report_dir)
    with History(base) as index:
        take_in(index)
        found = newest_by_version(index, cluster or "")
    if not found:
        fail(
            f"there is no finished run in {shown(base, report_dir)}"
            + (f" of a cluster called {cluster!r}" if cluster else ""),
            "'winready history' lists the runs that there are",
        )
    return [Product("", read_folder(base / entry.folder)) for entry in found]


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

"""``winready history``: the runs of a cluster, and what changed from one to the next."""

from __future__ import annotations

from typing import Any

import click

from winready.cli.options import fail, print_document, say
from winready.cli.runs import report_dir_option


@click.command()
@click.option("--cluster", metavar="TEXT", help="Only clusters whose address or id contains this; 'sandbox' is one.")
@click.option("--limit", type=click.IntRange(1, 10000), default=20, show_default=True, help="Newest runs per cluster.")
@click.option("-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True)
@report_dir_option
def history(cluster: str | None, limit: int, output: str, report_dir: str | None) -> None:
    """List the runs of each cluster, newest first, with what became better or worse since the run before.

    \b
    winready history
    winready history --cluster prod.example -o json
    """
    from winready.report import folders
    from winready.report.changes import by_cluster
    from winready.report.history import History, unfinished

    base = folders.report_folder(report_dir)
    with History(base) as index:
        index.sync()
        clusters = by_cluster(index, cluster, limit)
        damaged = index.damaged()
    open_runs = unfinished(base)
    if cluster and not clusters:
        fail(f"no run in {base} is of a cluster called {cluster!r}", "'winready history' lists all of them")
    if output != "text":
        document = {
            "clusters": clusters,
            "unfinished": [{"run": name, "in_progress": going} for name, going in open_runs],
            "damaged": [{"run": name, "why": why} for name, why in damaged],
        }
        print_document(document, output)
        return
    if not clusters:
        say(f"there is no finished run in {base}; 'winready run' makes one")
    for group in clusters:
        say(f"{group.label}  Kubernetes {group.runs[0].version or '?'}")
        for run in group.runs:
            say(f"  {run.folder:<20} {run.started[:16].replace('T', ' ')}  {run.verdict_text:<48} {run.counts}")
            for line in _changes(run):
                say(f"      {line}")
    for name, going in open_runs:
        say(
            f"run {name} is in progress"
            if going
            else f"run {name} was cut off; 'winready run --resume {name}' does the rest"
        )
    for name, why in damaged:
        say(f"run {name} cannot be read and is left out: {why}", err=True)


def _changes(run: Any) -> list[str]:
    lines = []
    for sign, names in (("▼ worse:", run.worse), ("▲ better:", run.better)):
        if names:
            more = f" and {len(names) - 6} more" if len(names) > 6 else ""
            lines.append(f"{sign} {', '.join(names[:6])}{more}")
    return lines

"""``winready history``: the runs of a cluster, and what changed from one to the next."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from winready.cli.history_prune import prune
from winready.cli.history_push import push
from winready.cli.options import fail, print_document, say, table_option
from winready.cli.places import reading, shown
from winready.cli.runs import report_dir_option, take_in
from winready.cli.tables import listed, print_table

if TYPE_CHECKING:
    from winready.report.changes import RunLine


@click.group(invoke_without_command=True)
@click.option("--cluster", metavar="TEXT", help="Only clusters whose address or id contains this; 'sandbox' is one.")
@click.option("--limit", type=click.IntRange(1, 10000), default=20, show_default=True, help="Newest runs per cluster.")
@table_option
@report_dir_option
@click.pass_context
def history(context: click.Context, cluster: str | None, limit: int, output: str, report_dir: str | None) -> None:
    """List the runs of each cluster, newest first, with what became better or worse since the run before.

    \b
    winready history
    winready history --cluster prod.example -o json
    winready history --report-dir s3://shop-runs/fleet
    """
    if (command := context.invoked_subcommand) is not None:
        # Taken for the command's own they would be lost, and another folder would be meant.
        for option in context.command.params:
            if option.name and context.get_parameter_source(option.name) is not ParameterSource.DEFAULT:
                raise click.UsageError(f"write {option.opts[-1]} after 'history {command}'")
        return
    from winready.report.changes import by_cluster
    from winready.report.history import History, unfinished

    base = reading(report_dir)
    where = shown(base, report_dir)
    with History(base) as index:
        take_in(index)
        clusters = by_cluster(index, cluster, limit)
        damaged = index.damaged()
    open_runs = unfinished(base)
    if cluster and not clusters:
        fail(f"no run in {where} is of a cluster called {cluster!r}", "'winready history' lists all of them")
    if output not in ("text", "wide"):
        document = {
            "clusters": clusters,
            "unfinished": [{"run": name, "in_progress": going} for name, going in open_runs],
            "damaged": [{"run": name, "why": why} for name, why in damaged],
        }
        print_document(document, output)
        return
    columns = shutil.get_terminal_size((120, 24)).columns
    if not clusters:
        say(f"there is no finished run in {where}; 'winready run' makes one")
    for group in clusters if output == "wide" else ():
        say(f"{group.label}  {group.cluster}")
        heads = (
            "RUN",
            "STARTED",
            "VERDICT",
            "EXIT",
            "KUBERNETES",
            "TOOL",
            "OUTCOMES",
            "RULES FAILED",
            "WORSE",
            "BETTER",
        )
        print_table(heads, *(_wide(run) for run in group.runs))
    for group in clusters if output == "text" else ():
        say(f"{group.label}  Kubernetes {group.runs[0].version or '?'}")
        for run in group.runs:
            head, rest = f"  {run.folder:<20} {_when(run)}", f"{run.verdict_text:<48} {run.counts}"
            say(f"{head}  {rest}" if len(head) + 2 + len(rest) <= columns else f"{head}\n      {rest}")
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


history.add_command(push)
history.add_command(prune)


def _when(run: RunLine) -> str:
    return run.started[:16].replace("T", " ")


def _wide(run: RunLine) -> tuple[str, ...]:
    changed = (listed(names) for names in (run.rules, run.worse, run.better))
    return run.folder, _when(run), run.verdict_text, str(run.exit_code), run.version, run.tool, run.counts, *changed


def _changes(run: Any) -> list[str]:
    lines = [*(f"✗ {name} failed" for name in run.rules), *_named("", run)]
    for word, advisory in (("features", run.features), ("workloads", run.workloads)):
        if advisory:
            lines += [f"{word}: {advisory.counts}", *_named(f"{word} ", advisory)]
    return lines


def _named(word: str, changed: Any) -> list[str]:
    lines = []
    for sign, names in ((f"▼ {word}worse:", changed.worse), (f"▲ {word}better:", changed.better)):
        if names:
            more = f" and {len(names) - 6} more" if len(names) > 6 else ""
            lines.append(f"{sign} {', '.join(names[:6])}{more}")
    return lines

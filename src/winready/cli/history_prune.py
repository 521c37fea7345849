"""``winready history prune``: let old runs go."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from winready.cli.options import document_option, fail, print_document, say
from winready.cli.places import asked_place, mirrored, reading, shown, told
from winready.cli.runs import report_dir_option

if TYPE_CHECKING:
    from winready.report.sharing.pruning import Decision
    from winready.store.addresses import Place

_AGE = re.compile(r"(\d{1,5})(h|d|w|y)")
_SECONDS = {"h": 3600, "d": 86400, "w": 7 * 86400, "y": 365 * 86400}


@click.command()
@click.option("--keep", metavar="AGE", help="Keep runs younger than this, such as 30d, 12w or 1y.")
@click.option("--keep-last", type=click.IntRange(1, 100_000), metavar="N", help="Keep the newest N of each cluster.")
@click.option("--drop-last-pass", is_flag=True, help="The last Pass of a cluster may go, too.")
@click.option("--yes", is_flag=True, help="Delete; without it, only say what would be deleted.")
@document_option
@report_dir_option
def prune(
    keep: str | None, keep_last: int | None, drop_last_pass: bool, yes: bool, output: str, report_dir: str | None
) -> None:
    """Delete runs that no rule keeps, in a folder or in a store. It shows them first; --yes deletes them.

    What is in progress stays, and what cannot be read; so does the last Pass of each cluster.

    \b
    winready history prune --keep 90d                           what would go
    winready history prune --keep 90d --keep-last 10 --yes
    winready history prune --keep 1y --report-dir s3://shop-runs/fleet --yes
    """
    from winready.report.sharing.pruning import Policy, decide, look

    if keep is None and keep_last is None:
        raise click.UsageError("say what to keep: --keep 90d, --keep-last 10, or both")
    policy = Policy(_age(keep) if keep is not None else None, keep_last, not drop_last_pass)
    base, place = reading(report_dir), asked_place(report_dir)
    if not base.is_dir():
        fail(f"there is no folder {base}", "name another with --report-dir")
    decisions = decide(look(base), policy, time.time())
    doomed = [each.run.name for each in decisions if not each.stays]
    gone: list[str] = []
    if yes:
        with told():
            _delete(base, place, doomed, gone)
    if output != "text":
        document = {
            "deleted": gone,
            "would_delete": [] if yes else doomed,
            "kept": [{"run": each.run.name, "why": each.stays} for each in decisions if each.stays],
        }
        print_document(document, output)
        return
    _tell(decisions, doomed, gone, where=shown(base, report_dir), yes=yes)


def _delete(base: Path, place: Place | None, doomed: list[str], gone: list[str]) -> None:
    from winready.cli.places import opened
    from winready.report.sharing.layout import sort
    from winready.report.sharing.pruning import delete_folders

    if place is None:
        delete_folders(base, doomed, gone.append)
        return
    objects = opened(place)
    for name in doomed:
        stored = sort(objects.list(name))[0].get(name)
        for key in stored.keys if stored else ():
            objects.delete(key)
        gone.append(name)
    mirrored(place)


def _age(text: str) -> float:
    match = _AGE.fullmatch(text.strip())
    if match is None or int(match[1]) == 0:
        raise click.BadParameter(f"{text[:40]!r} is no age; write 36h, 30d, 12w or 1y", param_hint="--keep")
    return float(int(match[1]) * _SECONDS[match[2]])


def _tell(decisions: list[Decision], doomed: list[str], gone: list[str], *, where: str, yes: bool) -> None:
    word = "deleted" if yes else "would be deleted"
    for each in decisions:
        if each.run.name in (gone if yes else doomed):
            say(f"{word}: {each.run.name}  {each.run.label}  {each.run.verdict}")
    for each in decisions:
        if each.stays.startswith(("it is the last Pass", "it is in progress", "it cannot", "nobody")):
            say(f"kept: {each.run.name}: {each.stays}")
    count = len(gone) if yes else len(doomed)
    say(f"{count} of {len(decisions)} runs in {where} {word}" + ("" if yes or not doomed else "; --yes deletes them"))

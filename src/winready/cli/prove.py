"""``winready sandbox prove``: every fault must be noticed by whom it concerns, and by nobody else."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from winready.cli.options import fail

if TYPE_CHECKING:
    from winready.cli.proof import Proof
    from winready.engine.selection import Selection
    from winready_sandbox.faults.model import Fault

PRELOADED = ["winready.cli.proof", "winready.engine.run", "winready_sandbox.up", "winready_sandbox.programs.catalogue"]
"""What every worker needs: loaded once, before they part."""


@click.command()
@click.option("--category", "categories", multiple=True, metavar="C", help="Only this category, in any letter case.")
@click.option("--fault", "names", multiple=True, metavar="NAME", help="Only this fault.")
@click.option("--parallel", type=click.IntRange(1, 64), help="Sandboxes at a time.  [default: one for each processor]")
@click.option("--thorough", is_flag=True, help="Long observations with every fault, not only with those they concern.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def prove(
    categories: tuple[str, ...], names: tuple[str, ...], parallel: int | None, thorough: bool, output: str
) -> None:
    """Run the checks against a sandbox with each fault of the table, and against a healthy one.

    A declared requirement must come out failed, with a reason that names the broken node. Everything else must
    pass, except what the fault lists as impossible to judge. Time is virtual: checks wait for as many cluster seconds
    as on a real cluster, and none of them is spent waiting here. Checks that start pods by the hundred or reboot nodes
    run on the healthy sandbox and with the faults that concern them. Exit code 1 when a fault was missed or an alarm
    false.

    \b
    winready sandbox prove --category Core.Network
    winready sandbox prove --fault dns.windows.no-search-path
    """
    from winready.cli.proof import HEALTHY, selection
    from winready.engine.selection import Selection, SelectionError, select
    from winready.spec.loader import load_standard
    from winready_sandbox.faults.table import FAULTS, UnknownFault, find

    try:
        standard = load_standard()
        selected = {item.id for item in select(standard, Selection(categories=list(categories)))}
        if names or not categories:
            selected |= {rule.id for rule in standard.rules}
        faults = [find(name) for name in names] or [fault for fault in FAULTS.values() if _concerns(fault, selected)]
        for fault in faults:
            if not _concerns(fault, selected):
                raise ValueError(f"no check of the selected categories verifies what {fault.name} concerns")
    except (SelectionError, UnknownFault, ValueError) as error:
        fail(str(error))
    healthy = [] if names else [(HEALTHY, selection(None, list(categories), thorough))]
    tasks = [*healthy, *((fault.name, selection(fault, list(categories), thorough)) for fault in faults)]
    shown = sys.stdout if output == "text" else sys.stderr
    proofs: dict[str, Proof] = {}
    for proof in _prove_all(tasks, parallel or _processors()):
        proofs[proof.name] = proof
        print(proof.line(), file=shown, flush=True)
    ordered = [proofs[name] for name, _ in tasks]
    missed, alarms = sum(len(p.missed) for p in ordered), sum(len(p.false_alarms) for p in ordered)
    if output == "json":
        documents = [proof.document() for proof in ordered]
        click.echo(json.dumps({"faults": documents, "missed": missed, "false_alarms": alarms}, indent=2))
    else:
        click.echo(f"{len(ordered)} runs: {missed} missed, {alarms} false alarms")
    sys.exit(1 if missed or alarms else 0)


def _concerns(fault: Fault, selected: set[str]) -> bool:
    """Whether anything that is verified has to notice the fault, or to survive it."""
    from winready.checks.registry import load_checks

    verifiable = {name for name in selected if name in load_checks() or name.startswith("rule.")}
    return not fault.requirements or bool(verifiable & set(fault.requirements))


def _prove_all(tasks: Sequence[tuple[str, Selection]], parallel: int) -> Iterator[Proof]:
    """Each proof as soon as it is done; those that take long begin first, so that none is left over at the end."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed

    from winready.cli import proof

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with ProcessPoolExecutor(min(parallel, len(tasks)), context, proof.prepare) as pool:
        try:
            ordered = sorted(tasks, key=lambda task: len(task[1].skip))
            for future in as_completed([pool.submit(proof.prove, *task) for task in ordered]):
                yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

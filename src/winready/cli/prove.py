"""``winready sandbox prove``: every fault must be noticed by whom it concerns, and by nobody else."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from winready.cli.options import fail

if TYPE_CHECKING:
    from winready.proof.judgement import Proof


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
    from winready.engine.selection import SelectionError
    from winready.proof.choosing import choose
    from winready.proof.workers import hold_trials

    try:
        trials = choose(categories, names, thorough)
    except (SelectionError, ValueError) as error:
        fail(str(error))
    shown = sys.stdout if output == "text" else sys.stderr
    proofs: dict[str, Proof] = {}
    for proof in hold_trials(trials, parallel):
        proofs[proof.name] = proof
        print(proof.line(), file=shown, flush=True)
    ordered = [proofs[trial.fault] for trial in trials]
    missed, alarms = sum(len(p.missed) for p in ordered), sum(len(p.false_alarms) for p in ordered)
    if output == "json":
        documents = [proof.document() for proof in ordered]
        click.echo(json.dumps({"faults": documents, "missed": missed, "false_alarms": alarms}, indent=2))
    else:
        click.echo(f"{len(ordered)} runs: {missed} missed, {alarms} false alarms")
    sys.exit(1 if missed or alarms else 0)

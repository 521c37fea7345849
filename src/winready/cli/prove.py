"""``winready sandbox prove``: every fault is noticed by whom it concerns, and no sound cluster is called broken."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from winready.cli.options import fail

if TYPE_CHECKING:
    from winready.proof.judgement import Proof, Soundness


@click.command()
@click.option("--category", "categories", multiple=True, metavar="C", help="Only this category, in any letter case.")
@click.option("--fault", "names", multiple=True, metavar="NAME", help="Only this fault.")
@click.option("--healthy", is_flag=True, help="Only the sound clusters, no fault.")
@click.option("--variant", "variants", multiple=True, metavar="NAME", help="Only this sound cluster.")
@click.option("--parallel", type=click.IntRange(1, 64), help="Sandboxes at a time.  [default: one for each processor]")
@click.option("--thorough", is_flag=True, help="Everything in every trial, not only where it is at stake.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed, another course of chance.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def prove(
    categories: tuple[str, ...],
    names: tuple[str, ...],
    healthy: bool,
    variants: tuple[str, ...],
    parallel: int | None,
    thorough: bool,
    seed: int,
    output: str,
) -> None:
    """Run the checks against a sandbox with each fault of the table, and against sound ones of many kinds.

    With a fault, a declared requirement must come out failed, with a reason that names the broken node; everything
    else must pass, except what the fault lists as impossible to judge. On a sound cluster everything must pass, or be
    waived by the flag that is there for it; on one that refuses what a run creates, it must be blocked, and the reason
    names who refused. Time is virtual: checks wait for as many cluster seconds as on a real cluster, and none of them
    is spent waiting here. Extensions run with the faults that concern them, and so do checks that start pods by the
    hundred or reboot nodes; a fault of extensions runs without the core. What is left to chance (what gets lost, who
    starts when) comes out the same each time; --seed gives another course of it. Exit code 1 when something was missed
    or an alarm false.

    \b
    winready sandbox prove --category Core.Network
    winready sandbox prove --fault dns.windows.no-search-path
    winready sandbox prove --healthy
    winready sandbox prove --variant nodes.usual-taint
    """
    from winready.engine.selection import SelectionError
    from winready.proof.choosing import choose, choose_sound
    from winready.proof.workers import hold_trials

    if names and healthy:
        raise click.UsageError("--healthy tries no fault; leave it out, or name sound clusters with --variant")
    try:
        trials = [] if healthy or (variants and not names) else choose(categories, names, thorough)
        if not names or variants:
            trials = [*choose_sound(categories, variants, thorough), *trials]
    except (SelectionError, ValueError) as error:
        fail(str(error))
    shown = sys.stdout if output == "text" else sys.stderr
    proofs: dict[str, Proof | Soundness] = {}
    for proof in hold_trials([trial._replace(seed=seed) for trial in trials], parallel):
        proofs[proof.name] = proof
        print(proof.line(), file=shown, flush=True)
    ordered = [proofs[trial.name] for trial in trials]
    missed, alarms = sum(len(p.missed) for p in ordered), sum(len(p.false_alarms) for p in ordered)
    if output == "json":
        document: dict[str, object] = {"faults": [], "healthy": [], "refusing": []}
        for kind, proven in _by_kind(ordered).items():
            document[kind] = [proof.document() for proof in proven]
        click.echo(json.dumps({**document, "missed": missed, "false_alarms": alarms}, indent=2))
    else:
        click.echo(f"{len(ordered)} runs: {missed} missed, {alarms} false alarms")
    sys.exit(1 if missed or alarms else 0)


def _by_kind(proofs: Sequence[Proof | Soundness]) -> dict[str, list[Proof | Soundness]]:
    """Faults, sound clusters that pass, and those that refuse something."""
    from winready.proof.judgement import Soundness

    kinds: dict[str, list[Proof | Soundness]] = {}
    for proof in proofs:
        kind = "faults" if not isinstance(proof, Soundness) else "refusing" if proof.blocks else "healthy"
        kinds.setdefault(kind, []).append(proof)
    return kinds

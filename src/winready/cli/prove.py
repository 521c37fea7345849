"""``winready sandbox prove``: every fault must be noticed by whom it concerns, and by nobody else."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from winready.cli.options import fail

if TYPE_CHECKING:
    from winready.engine.selection import Selection
    from winready.report.record import Record
    from winready.sandbox.faults.model import Fault

HEALTHY = "(healthy)"
LONG = 300.0
"""Cluster seconds from which an observation is long."""


@dataclass
class Proof:
    """What came of a run on a sandbox with one fault."""

    name: str
    declared: list[str]
    blocks: list[str]
    node: str
    outcomes: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)
    false_alarms: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def document(self) -> dict[str, Any]:
        """The proof for machines."""
        told = set(self.missed) | set(self.false_alarms)
        return {
            "name": self.name,
            "node": self.node,
            "declared": self.declared,
            "blocks": self.blocks,
            "outcomes": self.outcomes,
            "missed": self.missed,
            "false_alarms": self.false_alarms,
            "reasons": {key: text for key, text in self.reasons.items() if key in told},
            "seconds": round(self.seconds, 1),
        }


@click.command()
@click.option("--category", "categories", multiple=True, metavar="C", help="Only this category, in any letter case.")
@click.option("--fault", "names", multiple=True, metavar="NAME", help="Only this fault.")
@click.option("--speed", default="25", show_default=True, metavar="X", help="Speed of the sandboxes.")
@click.option("--parallel", type=click.IntRange(1, 16), default=3, show_default=True, help="Sandboxes at a time.")
@click.option("--thorough", is_flag=True, help="Long observations with every fault, not only with those they concern.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def prove(
    categories: tuple[str, ...], names: tuple[str, ...], speed: str, parallel: int, thorough: bool, output: str
) -> None:
    """Run the checks against a sandbox with each fault of the table, and against a healthy one.

    A declared requirement must come out failed, with a reason that names the broken node. Everything else must
    pass, except what the fault lists as impossible to judge. Checks that watch for minutes (reboots, token rotation,
    reschedules) run on the healthy sandbox and with the faults that concern them. Exit code 1 when a fault was missed
    or an alarm false.

    \b
    winready sandbox prove --category Core.Network
    winready sandbox prove --fault dns.windows.no-search-path
    """
    from winready.engine.selection import Selection, SelectionError, select
    from winready.sandbox.clock import parse_speed
    from winready.sandbox.faults.table import FAULTS, UnknownFault, find
    from winready.spec.loader import load_standard

    try:
        selected = {item.id for item in select(load_standard(), Selection(categories=list(categories)))}
        rules = (
            set() if categories and not names else {rule.id for rule in load_standard().rules if rule.gates == "run"}
        )
        faults = [find(name) for name in names] or [f for f in FAULTS.values() if _concerns(f, selected | rules)]
        factor = parse_speed(speed)
        for fault in faults:
            if not _concerns(fault, selected | rules):
                raise ValueError(f"no check of the selected categories verifies what {fault.name} concerns")
    except (SelectionError, UnknownFault, ValueError) as error:
        fail(str(error))
    shown = sys.stdout if output == "text" else sys.stderr
    proofs = asyncio.run(
        _prove_all([None, *faults] if not names else [*faults], list(categories), factor, parallel, thorough, shown)
    )
    missed, alarms = sum(len(p.missed) for p in proofs), sum(len(p.false_alarms) for p in proofs)
    if output == "json":
        documents = [proof.document() for proof in proofs]
        click.echo(json.dumps({"faults": documents, "missed": missed, "false_alarms": alarms}, indent=2))
    else:
        click.echo(f"{len(proofs)} runs: {missed} missed, {alarms} false alarms")
    sys.exit(1 if missed or alarms else 0)


def _concerns(fault: Fault, selected: set[str]) -> bool:
    """Whether anything that is verified has to notice the fault, or to survive it."""
    from winready.checks.registry import load_checks

    verifiable = {name for name in selected if name in load_checks() or name.startswith("rule.")}
    return not fault.requirements or bool(verifiable & set(fault.requirements))


async def _prove_all(
    faults: list[Fault | None], categories: list[str], speed: float, parallel: int, thorough: bool, shown: Any
) -> list[Proof]:
    gate = asyncio.Semaphore(parallel)

    async def one(fault: Fault | None) -> Proof:
        async with gate:
            proof = await _prove(fault, _selection(fault, categories, thorough), speed)
        print(_line(proof), file=shown, flush=True)
        return proof

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(fault)) for fault in faults]
    return [task.result() for task in tasks]


def _selection(fault: Fault | None, categories: list[str], thorough: bool) -> Selection:
    """What runs with a fault: what takes minutes only where it is at stake."""
    from winready.checks.registry import load_checks
    from winready.engine.selection import Selection

    if fault is None or thorough:
        return Selection(categories=categories)
    long = [name for name, check in load_checks().items() if check.expected_s + check.expected_s_per_node >= LONG]
    return Selection(categories=categories, skip=[name for name in long if name not in fault.requirements])


async def _prove(fault: Fault | None, selection: Selection, speed: float) -> Proof:
    from winready.cli.own_sandbox import break_when_settled
    from winready.report.folders import new_run_id
    from winready.sandbox.daemon import start
    from winready.sandbox.plan import Plan
    from winready.sandbox.state import Place, stop

    run_id = new_run_id()
    plan = Plan(name=f"prove-{run_id}", speed=speed)
    document = await asyncio.to_thread(start, plan)
    place = Place.of(plan.name)
    try:
        broken = await asyncio.to_thread(break_when_settled, place, (fault.name,) if fault else ())
        record = await _run(Path(document["kubeconfig"]), run_id, selection, speed)
    finally:
        await asyncio.to_thread(stop, place)
    return _compare(fault, broken[0]["node"] if broken else "", record)


async def _run(kubeconfig: Path, run_id: str, selection: Selection, speed: float) -> Record:
    from winready.cluster.client import Client
    from winready.cluster.kubeconfig import find_target
    from winready.cluster.settings import Settings
    from winready.cluster.timing import Timing
    from winready.engine.journal import Journal
    from winready.engine.run import Options, Run
    from winready.report.record import Record
    from winready.spec.loader import load_standard

    options = Options(
        settings=Settings(run_id=run_id, timing=Timing(speed)),
        selection=selection,
        allow_disruptive=True,
        parallel=16,
    )
    record = Record()
    with tempfile.TemporaryDirectory(prefix="winready-prove-") as folder, Journal(Path(folder)) as journal:
        async with Client.connect(find_target(str(kubeconfig))) as client:
            async for event in Run(client, load_standard(), options).stream():
                journal.append(event)
                record.apply(event)
    return record


def _compare(fault: Fault | None, node: str, record: Record) -> Proof:
    """Hold the outcomes against what the fault declares; requirements without a check are not part of the proof."""
    from winready.checks.registry import load_checks

    proof = Proof(
        name=fault.name if fault else HEALTHY,
        declared=list(fault.requirements) if fault else [],
        blocks=list(fault.blocks) if fault else [],
        node=node,
        seconds=record.duration_s,
    )
    checked = load_checks()
    results = {item.id: (item.outcome, item.reason) for item in record.requirements if item.id in checked}
    results |= {item.id: (item.outcome, item.reason) for item in record.rules if item.gates == "run"}
    for name, (outcome, reason) in results.items():
        proof.outcomes[name], proof.reasons[name] = outcome, reason
        if name in proof.declared:
            # A rule speaks of the whole cluster, in which the broken node may not even appear.
            unnamed = node and node not in reason and not name.startswith("rule.")
            if outcome != "failed" or unnamed:
                proof.missed.append(name)
        elif name not in proof.blocks and outcome != "passed":
            proof.false_alarms.append(name)
    return proof


def _line(proof: Proof) -> str:
    noticed = len([name for name in proof.declared if name in proof.outcomes and name not in proof.missed])
    text = f"{proof.name:<46} noticed by {noticed:>2}, {proof.seconds:5.1f} s"
    for word, names in (("MISSED", proof.missed), ("FALSE ALARM", proof.false_alarms)):
        for name in names:
            text += f"\n    {word} {name}: {proof.outcomes[name]}: {proof.reasons[name][:300]}"
    return text

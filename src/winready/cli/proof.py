"""One proof: a run against a sandbox with one fault, and what its outcomes are worth.

Sandbox and run share one process and one event loop, whose time is virtual: nothing depends on how busy the machine is,
and waiting costs nothing.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from winready.engine.selection import Selection
    from winready.engine.terms import Conformance
    from winready.report.record import Record
    from winready_sandbox.faults.model import Fault

HEALTHY = "(healthy)"
LONG = 300.0
"""Cluster seconds from which an observation is long."""
PARALLEL = 32
"""Requirements at a time: waiting together costs nothing."""
SHOWN = 300
GARBAGE = 50_000


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
    """Cluster seconds that the run took."""

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
            "cluster_seconds": round(self.seconds, 1),
        }

    def line(self) -> str:
        """The proof for people."""
        noticed = len([name for name in self.declared if name in self.outcomes and name not in self.missed])
        text = f"{self.name:<46} noticed by {noticed:>2}, {self.seconds:5.0f} cluster seconds"
        for word, names in (("MISSED", self.missed), ("FALSE ALARM", self.false_alarms)):
            for name in names:
                text += f"\n    {word} {name}: {self.outcomes[name]}: {self.reasons[name][:SHOWN]}"
        return text


def selection(fault: Fault | None, categories: list[str], thorough: bool) -> Selection:
    """What runs with a fault: what takes minutes only where it is at stake."""
    from winready.checks.registry import load_checks
    from winready.engine.selection import Selection

    if fault is None or thorough:
        return Selection(categories=categories)
    long = [name for name, check in load_checks().items() if check.expected_s + check.expected_s_per_node >= LONG]
    return Selection(categories=categories, skip=[name for name in long if name not in fault.requirements])


def prepare() -> None:
    """Make a worker ready: nothing that it has loaded by now is ever garbage, and little that a run makes is."""
    gc.freeze()
    gc.set_threshold(GARBAGE)
    if parent := multiprocessing.parent_process():
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    """Nobody waits for the proof of a command that was killed."""
    parent.join()
    os._exit(1)


def prove(name: str, selection: Selection) -> Proof:
    """Run the selected checks against a fresh sandbox with the fault of that name, or against a healthy one."""
    from winready_sandbox.faults.table import find
    from winready_sandbox.virtual_time import VirtualTimeLoop

    fault = None if name == HEALTHY else find(name)
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        node, record = runner.run(_run(fault, selection))
    gc.collect()
    return compare(fault, node, record)


async def _run(fault: Fault | None, selection: Selection) -> tuple[str, Record]:
    from winready.cluster.client import Client
    from winready.cluster.kubeconfig import Target
    from winready.cluster.settings import Settings
    from winready.engine.options import Options
    from winready.engine.run import Run
    from winready.engine.terms import Terms
    from winready.report.folders import new_run_id
    from winready.report.record import Record
    from winready.spec.loader import load_standard
    from winready_sandbox.api.identity import ADMIN
    from winready_sandbox.plan import Plan
    from winready_sandbox.up import Sandbox
    from winready_sandbox.wire import WireConnector

    options = Options(
        settings=Settings(run_id=new_run_id()),
        selection=selection,
        allow_disruptive=True,
        terms=Terms(conformance=_conformance(fault)),
        parallel=PARALLEL,
    )
    record = Record()
    async with Sandbox(Plan(name="proof")) as sandbox:
        plane = sandbox.embedded
        # As clusters break: after they came up in good health.
        await sandbox.settled()
        broken = await sandbox.break_fault(fault.name) if fault else []
        target = Target(plane.url, token=plane.token(ADMIN))
        async with Client.connect(target, WireConnector(plane.inside)) as client:
            async for event in Run(client, load_standard(), options).stream():
                record.apply(event)
    return broken[0].node if broken else "", record


def _conformance(fault: Fault | None) -> Conformance:
    """What a conformance run of this cluster's Linux side would have left, read as ``--linux-conformance`` reads it."""
    from xml.etree import ElementTree

    from winready.engine.rules.conformance import LEAST_TESTS, read_conformance

    suite = ElementTree.Element("testsuite", name="Kubernetes e2e suite")
    for number in range(LEAST_TESTS):
        ElementTree.SubElement(suite, "testcase", name=f"[It] a test that passed, number {number} [Conformance]")
    for name in fault.conformance if fault else ():
        case = ElementTree.SubElement(suite, "testcase", name=f"[It] {name}")
        ElementTree.SubElement(case, "failure", type="failed")
    with tempfile.TemporaryDirectory(prefix="winready-proof-") as folder:
        path = Path(folder) / "junit_01.xml"
        ElementTree.ElementTree(suite).write(path)
        return read_conformance(path)


def compare(fault: Fault | None, node: str, record: Record) -> Proof:
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
    results |= {item.id: (item.outcome, item.reason) for item in record.rules}
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

"""One trial: a run against a sandbox with one fault, judged by what is expected of it.

Sandbox and run share one process and one event loop, whose time is virtual: nothing depends on how busy the machine is,
and waiting costs nothing.
"""

from __future__ import annotations

import asyncio
import gc
from contextlib import aclosing

from winready.cluster.client import Client
from winready.cluster.kubeconfig import Target
from winready.cluster.settings import Settings
from winready.engine.options import Options
from winready.engine.run import Run
from winready.engine.selection import Selection
from winready.engine.terms import Terms
from winready.proof.conformance import conformance_result
from winready.proof.expected.table import HEALTHY, expected
from winready.proof.judgement import Proof, judge
from winready.report.folders import new_run_id
from winready.report.record import Record
from winready.spec.loader import load_standard
from winready_sandbox.api.identity import ADMIN
from winready_sandbox.plan import Plan
from winready_sandbox.up import Sandbox
from winready_sandbox.virtual_time import VirtualTimeLoop
from winready_sandbox.wire import WireConnector

PARALLEL = 32
"""Requirements at a time: waiting together costs nothing."""


def hold_trial(fault: str, selection: Selection) -> Proof:
    """Run the selected checks against a fresh sandbox with the fault of that name, or against a healthy one."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        node, record = runner.run(_run(fault, selection))
    gc.collect()
    return judge(fault, expected(fault), node, record)


async def _run(fault: str, selection: Selection) -> tuple[str, Record]:
    options = Options(
        settings=Settings(run_id=new_run_id()),
        selection=selection,
        allow_disruptive=True,
        terms=Terms(conformance=conformance_result(expected(fault).conformance)),
        parallel=PARALLEL,
    )
    record = Record()
    async with Sandbox(Plan(name="proof")) as sandbox:
        plane = sandbox.embedded
        # As clusters break: after they came up in good health.
        await sandbox.settled()
        broken = [] if fault == HEALTHY else await sandbox.break_fault(fault)
        target = Target(plane.url, token=plane.token(ADMIN))
        async with (
            Client.connect(target, WireConnector(plane.inside)) as client,
            aclosing(Run(client, load_standard(), options).stream()) as events,
        ):
            async for event in events:
                record.apply(event)
    return broken[0].node if broken else "", record

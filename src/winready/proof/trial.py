"""One trial: runs against a sandbox with one fault, or against one that is sound in its own way.

Sandbox and run share one process and one event loop, whose time is virtual: nothing depends on how busy the machine is,
and waiting costs nothing.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from winready.checks.rights import prepared_namespaces, rights_to_grant
from winready.cluster.client import Client
from winready.cluster.kubeconfig import Target
from winready.cluster.rights import manifest
from winready.cluster.settings import Settings, parse_toleration
from winready.engine.options import Options
from winready.engine.run import Run
from winready.engine.selection import Selection, select
from winready.engine.terms import Terms
from winready.features.choosing import showing
from winready.proof.choosing import Trial
from winready.proof.conformance import conformance_result
from winready.proof.expected.table import expected
from winready.proof.furnishing import furnished, own_domain
from winready.proof.healthy.model import Scene, Variant
from winready.proof.healthy.table import PLAIN, variant
from winready.proof.judgement import Proof, Soundness, judge, judge_sound
from winready.report.record import Record
from winready.spec.loader import load_standard
from winready_sandbox import chance
from winready_sandbox.api.identity import ADMIN, AUTHENTICATED, User
from winready_sandbox.plan import Plan
from winready_sandbox.up import Sandbox
from winready_sandbox.virtual_time import VirtualTimeLoop
from winready_sandbox.wire import WireConnector

RUN_ID = "260101-000000-{:04x}"
"""The same each time: whoever asks when goes by names that contain it."""
PARALLEL = 32
"""Requirements at a time: waiting together costs nothing."""
OPERATOR = User("operator", (AUTHENTICATED,))
"""Who has no rights but those that a run needs."""


def hold_trial(trial: Trial) -> Proof | Soundness:
    """Run the selected checks against a fresh sandbox, and judge what came of it."""
    # The same trial comes to the same end each time, so that what is seen once can be looked at again.
    chance.fix(f"{trial.name} {trial.seed}")
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        proof = runner.run(_hold(trial))
    gc.collect()
    return proof


async def _hold(trial: Trial) -> Proof | Soundness:
    if trial.sound:
        this = variant(trial.name)
        async with _scene(this, trial.selection) as scene:
            around = asyncio.create_task(this.during(scene), name=this.name)
            try:
                records = await asyncio.gather(*(_run(scene, this, trial.selection, n) for n in range(this.runs)))
            finally:
                around.cancel()
                (ended,) = await asyncio.gather(around, return_exceptions=True)
        if isinstance(ended, Exception):
            raise ended
        return judge_sound(this, records)
    expectation = expected(trial.name)
    async with _scene(PLAIN, trial.selection) as scene:
        # As clusters break: after they came up in good health.
        broken = await scene.sandbox.break_fault(trial.name)
        record = await _run(scene, PLAIN, trial.selection, fault=trial.name if expectation.conformance else "")
    return judge(trial.name, expectation, broken[0].node if broken else "", record)


@asynccontextmanager
async def _scene(this: Variant, selection: Selection) -> AsyncIterator[Scene]:
    async with Sandbox(Plan(name="proof", **furnished(load_standard(), selection) | this.plan)) as sandbox:
        if not await sandbox.settled():
            raise RuntimeError(f"the cluster of {this.name} did not come up")
        scene = Scene(sandbox)
        await this.prepare(scene)
        yield scene


async def _run(scene: Scene, this: Variant, selection: Selection, number: int = 0, fault: str = "") -> Record:
    settings = Settings(
        run_id=RUN_ID.format(number),
        tolerations=tuple(parse_toleration(text) for text in this.tolerate),
        active_directory=own_domain(vars(scene.sandbox.plan)),
        namespace_prefix=this.namespace_prefix,
    )
    options = Options(
        settings=settings,
        selection=selection,
        allow_disruptive=True,
        nodes=None,
        terms=Terms(
            windows_builds=this.windows_builds,
            waived=list(this.waived),
            conformance=conformance_result(fault),
        ),
        parallel=PARALLEL,
    )
    options = showing(options, selection.features)
    record = Record()
    plane = scene.sandbox.embedded
    user = _operator(scene, selection, settings) if this.least_rights else ADMIN
    async with (
        Client.connect(Target(plane.url, token=plane.token(user)), WireConnector(plane.inside)) as client,
        aclosing(Run(client, load_standard(), options).stream()) as events,
    ):
        async for event in events:
            record.apply(event)
    return record


def _operator(scene: Scene, selection: Selection, settings: Settings) -> User:
    """Somebody with the rights that ``winready rbac`` prints for these requirements and features."""
    requirements = [*(item.id for item in select(load_standard(), selection)), *selection.features]
    spaces = prepared_namespaces(requirements, settings) if settings.namespace_prefix else []
    for obj in [*spaces, *manifest("winready", "winready", OPERATOR.name, rights_to_grant(requirements, settings))]:
        scene.api.create(f"{obj['kind'].lower()}s", obj, obj["metadata"].get("namespace", ""))
    return OPERATOR

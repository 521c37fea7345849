"""Running specs against a sandbox: processes of e2e.test side by side, and none that hangs holds up the others."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from fidelity_specs import SPEED, Round
from fidelity_state import About, State, measured
from winready.cluster import steering
from winready.cluster.client import Client
from winready.cluster.inventory import Node, take_inventory
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import NODES
from winready.cluster.settings import Settings
from winready.upstream.binary import Binary
from winready.upstream.shards import Selected
from winready.upstream.suite import Order, Result, Suite
from winready_sandbox.daemon import start
from winready_sandbox.plan import Plan
from winready_sandbox.programs import record
from winready_sandbox.state import Place, ask, stop

SETTLE_SECONDS = 310.0
STEER_SECONDS = 60.0
RUN_ID = "fidelity"
CONTROL_PLANE = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
BATCH = 8
"""Specs of one process: starting one costs seconds of CPU, and what it had not begun when it hung is run again."""
GRACE = 45.0
MOST_CRASHES = 3
"""Processes in a row that ran nothing: then it is the cluster or the program, and no spec's fault."""


class Trouble(Exception):
    """Something that is no spec's fault; the message says what."""


@dataclass(frozen=True)
class Pace:
    """How much at a time, and how long at most."""

    parallel: int = 6
    limit: float = 600.0
    """Wall seconds of a spec; those that call themselves slow, or are alone, get twice as much."""
    speed: float = SPEED

    def patience(self, spec: Selected) -> float:
        """How long a spec may take."""
        return self.limit * (2 if spec.serial or "[Slow]" in spec.text else 1)


@dataclass
class Work:
    """The specs of one round that are still to be run, on one running sandbox."""

    plan: Round
    binary: Binary
    programs: Path
    folder: Path
    state: State
    pace: Pace
    client: Client
    nodes: list[Node]
    recorded: Path
    _number: int = 0
    _crashes: int = 0
    _left: list[Selected] = field(default_factory=list)

    async def run(self, specs: Iterable[Selected]) -> None:
        """Run them all: side by side what bears it, then the others one after the other."""
        everything = sorted(specs, key=lambda spec: -self.state.seconds(self.plan.name, spec.text, spec.expected_s))
        self._left = [spec for spec in everything if not spec.serial]
        async with asyncio.TaskGroup() as group:
            for _ in range(min(self.pace.parallel, len(self._left))):
                group.create_task(self._work(self.pace.parallel))
        self._left = sorted((spec for spec in everything if spec.serial), key=lambda spec: spec.disruptive)
        await self._work(1)

    async def _work(self, beside: int) -> None:
        while self._left:
            size = min(BATCH, math.ceil(len(self._left) / (2 * beside)))
            # The longest first, so that the last ones to end are short.
            batch, self._left = self._left[:1], self._left[1:]
            if not batch[0].disruptive:
                quick = [spec for spec in reversed(self._left) if not spec.disruptive][: size - 1]
                self._left = [spec for spec in self._left if spec not in quick]
                batch += quick
            missed = await self._run_batch(batch)
            self._left += missed

    async def _run_batch(self, specs: list[Selected]) -> list[Selected]:
        """Run these in one process, keep what came of them, and return what it did not come to."""
        self._number += 1
        stopping, begun, clocks = asyncio.Event(), set[str](), dict[str, asyncio.TimerHandle]()
        hung: dict[str, float] = {}
        loop = asyncio.get_running_loop()

        def give_up(spec: Selected) -> None:
            hung[spec.name] = self.pace.patience(spec)
            stopping.set()

        def tell(spec: Selected, what: str) -> None:
            if what == "started":
                begun.add(spec.name)
                clocks[spec.name] = loop.call_later(self.pace.patience(spec), give_up, spec)
            elif spec.name in clocks:
                clocks[spec.name].cancel()
                print(f"{what:<11} {spec.text}", flush=True)

        order = Order(
            binary=self.binary,
            specs=tuple(specs),
            folder=self.folder / self.plan.name / f"{self._number:03}",
            parallel=1,
            grace=GRACE,
            extra=(f"--kubectl-path={self.programs / 'kubectl'}", f"--node-os-distro={self.plan.os}"),
        )
        suite = Suite(self.client, Settings(RUN_ID), {node.name: node for node in self.nodes}, order, stopping, tell)
        try:
            await suite.run(_nothing)
        finally:
            for clock in clocks.values():
                clock.cancel()
        return self._keep(specs, suite.results, begun, hung)

    def _keep(
        self, specs: list[Selected], results: dict[str, Result], begun: set[str], hung: dict[str, float]
    ) -> list[Selected]:
        executed = uses(self.recorded.read_text(encoding="utf-8") if self.recorded.exists() else "")
        at = f"{datetime.now(UTC):%Y-%m-%d %H:%M}"
        missed = []
        for spec in specs:
            result = results.get(spec.name)
            if spec.name in hung:
                words = f"did not end within {hung[spec.name]:g} s"
                result = Result(
                    spec.name, spec.text, "unfinished", words, hung[spec.name], pods=result.pods if result else ()
                )
            elif result is None or (spec.name not in begun and (hung or result.status in ("unfinished", "crashed"))):
                # A report that was cut short calls what it did not come to skipped.
                missed.append(spec)
                continue
            spaces = {pod.fact.namespace for pod in result.pods}
            mine: dict[str, set[str]] = {}
            for namespace, command, options in executed:
                if namespace in spaces:
                    mine.setdefault(command, set()).update(options)
            self.state.add(measured(self.plan.name, result, mine, at))
        self._crashes = self._crashes + 1 if len(missed) == len(specs) else 0
        if self._crashes >= MOST_CRASHES:
            why = next((result.message for result in results.values()), "no word")
            raise Trouble(f"e2e.test ran nothing {self._crashes} times in a row: {why}")
        return missed


async def _nothing(_: dict[str, Result]) -> None:
    return None


def uses(text: str) -> list[tuple[str, str, list[str]]]:
    """What a sandbox recorded: namespace, command, options."""
    found = []
    for line in text.splitlines():
        seen = json.loads(line)
        found.append((seen["namespace"], f"{seen['kind']} {seen['name']}", seen["options"]))
    return found


@contextmanager
def sandbox(programs: Path, plan: Round, speed: float, mark: str) -> Iterator[Path]:
    """A running sandbox of a round: its kubeconfig."""
    name = "fidelity-" + re.sub(r"[^a-z0-9]+", "-", plan.name)[:30].strip("-") + mark
    place = Place.of(name)
    # One that an ended run left behind.
    stop(place)
    document = start(Plan(name=name, control_plane=str(programs), **{"speed": speed, **plan.options}))
    try:
        ask(place, "settle", timeout=SETTLE_SECONDS)
        # As clusters break: after they came up in good health.
        for node in document["nodes"] if plan.fault else []:
            if (node["os"] == "windows") == (plan.os == "windows"):
                ask(place, "break", name=plan.fault, node=node["name"])
        yield Path(document["kubeconfig"])
    finally:
        stop(place)


@asynccontextmanager
async def steer(client: Client, settings: Settings, wanted: bool) -> AsyncIterator[None]:
    """Send pods without an OS selector to Windows for the time of the block."""
    version = await steering.served_version(client) if wanted else None
    if not wanted:
        yield
        return
    if version is None:
        raise Trouble("this API server has no MutatingAdmissionPolicy; take Kubernetes 1.36 or newer")
    name = f"winready-{RUN_ID}"
    await steering.apply_policy(client, version, name, settings.labels(), [])
    try:
        namespace = await steering.probe_namespace(client, settings)
        if reason := await steering.wait_until_steered(client, namespace, seconds=STEER_SECONDS):
            raise Trouble(f"pods are not steered: {reason}")
        yield
    finally:
        await steering.delete_policy(client, version, name)


async def run_round(
    plan: Round,
    specs: list[Selected],
    binary: Binary,
    programs: Path,
    folder: Path,
    state: State,
    pace: Pace,
    mark: str = "",
) -> None:
    """Run the specs of a round and keep their results as they come."""
    recorded = Path(tempfile.mkdtemp(prefix=f"{plan.name}-", dir=folder)) / "executed.jsonl"
    os.environ[record.VARIABLE] = str(recorded)
    with sandbox(programs, plan, pace.speed, mark) as kubeconfig:
        async with Client.connect(find_target(str(kubeconfig), None)) as client:
            nodes = (await take_inventory(client)).nodes
            judged = [node for node in nodes if node.windows == (plan.os == "windows")]
            told = sorted({f"{node.os_image} ({node.runtime})" for node in judged})
            state.add(About(plan.name, binary.full_version, told))
            for node in nodes if plan.alone else []:
                if node not in judged:
                    await client.patch(NODES, node.name, {"spec": {"taints": [CONTROL_PLANE]}})
            work = Work(plan, binary, programs, folder, state, pace, client, nodes, recorded)
            async with steer(client, Settings(RUN_ID), plan.steered):
                await work.run(specs)

"""A Windows node that goes away in the middle of a run, in virtual time, and comes back when everything is over."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from chaos.crashes import JUDGED, cleaned
from chaos.remains import whole_state
from chaos.scenes import STANDARD, Scene, follow, played, scene
from winready.cluster.client import Client
from winready.cluster.inventory import read_node
from winready.cluster.resources import NODES
from winready.engine import events
from winready.engine.outcomes import RequirementResult
from winready.engine.run import Run
from winready.engine.selection import Selection
from winready_sandbox.machine.machine import PowerRequest

How = Literal["off", "removed", "taken-out"]
WAYS: tuple[How, ...] = ("off", "removed", "taken-out")
"""Its power is cut and it stays silent; its Node is removed besides; its Node is removed while it runs."""
NODE = "windows-2"
LOST_POWER = "node.windows.never-returns"
NOTICED = 60.0
"""Cluster seconds in which a check may still end with what it had seen before."""
LONGEST = 3600.0
"""Cluster seconds after which any run must be over."""


@dataclass
class Gone:
    """What became of the run, of its results, and of the cluster."""

    how: How
    gone_at: float | None = None
    """When the node went, in cluster seconds since the run began; None if the run was over by then."""
    seconds: float = 0.0
    verdict: str = ""
    outcomes: dict[str, str] = field(default_factory=dict)
    finished: int = 0
    """Results that were finished when the node went."""
    lost: list[str] = field(default_factory=list)
    """Those of them that the run's record does not have, or has otherwise."""
    unfair: list[str] = field(default_factory=list)
    """Results that say more than could be seen, or that do not name the node."""
    unknown: list[str] = field(default_factory=list)
    """What ``cleanup`` says while the node is away."""
    objects: list[str] = field(default_factory=list)
    """What is in the API after that and was not before; the node itself is not meant."""
    cleaned: list[str] = field(default_factory=list)
    """What ``cleanup`` says is still there when the node is back."""
    remains: list[str] = field(default_factory=list)
    """What is there then and was not before, on nodes, too."""

    @property
    def troubles(self) -> list[str]:
        """Everything that is not as it should be."""
        found = [*self.lost, *self.unfair, *self.objects, *self.cleaned, *self.remains]
        found += [f"cleanup says: {text}" for text in self.unknown if not text.startswith(f"unknown on node {NODE}: ")]
        if self.seconds > LONGEST:
            found.append(f"the run took {self.seconds:.0f} s")
        return found


def lose_node(seed: str, requirements: list[str], how: How, after: float) -> Gone:
    """Take a node away ``after`` so many cluster seconds of a run, clean up, give it back, and clean up again."""
    selection = Selection(requirements=requirements)

    async def story() -> Gone:
        async with scene(selection) as stage, stage.calm() as client:
            return await _lose(stage, client, selection, how, after)

    return played(story, seed)


async def _lose(stage: Scene, client: Client, selection: Selection, how: How, after: float) -> Gone:
    loop, result, before = asyncio.get_running_loop(), Gone(how), whole_state(stage.sandbox)
    start = loop.time()
    told: dict[str, tuple[float, RequirementResult]] = {}

    def on(event: events.AnyEvent) -> None:
        if isinstance(event, events.RequirementFinished):
            told[event.result.id] = loop.time() - start, event.result

    async def strike() -> None:
        await asyncio.sleep(after)
        result.gone_at = loop.time() - start
        await _take_away(stage, client, how)

    striking = asyncio.create_task(strike())
    record = await follow(Run(client, STANDARD, stage.options(selection)), on)
    result.seconds = loop.time() - start
    if not striking.done():
        striking.cancel()
    with suppress(asyncio.CancelledError):
        await striking
    result.verdict = str(record.verdict)
    again = {item.id: item for item in record.requirements}
    result.outcomes = {name: item.outcome for name, item in again.items()}
    gone_at = result.gone_at if result.gone_at is not None else result.seconds
    finished = {name: item for name, (at, item) in told.items() if at <= gone_at and item.outcome in JUDGED}
    result.finished = len(finished)
    result.lost = [f"{name} is lost or changed" for name, item in finished.items() if again.get(name) != item]
    result.unfair = _unfair(told, gone_at)
    result.unknown = await cleaned(client)
    found = whole_state(stage.sandbox) - before
    result.objects = sorted(thing for thing in found if not thing.startswith(f"node {NODE}: "))
    if result.gone_at is not None:
        await _give_back(stage, client)
    result.cleaned = await cleaned(client)
    result.remains = sorted(whole_state(stage.sandbox) ^ before)
    return result


def _unfair(told: Mapping[str, tuple[float, RequirementResult]], gone_at: float) -> list[str]:
    """A sound cluster from which a node went passes, or cannot be judged because of that node; nothing else."""
    found = []
    for name, (at, item) in told.items():
        late = at > gone_at + NOTICED
        # Whoever shuts a node down and never sees it again may say so.
        rebooted = item.outcome == "failed" and f"node {NODE} did not come back from its reboot" in item.reason
        right = NODE not in item.reason or not late if item.outcome == "passed" else False
        right = right or rebooted or (item.outcome == "blocked" and f"node {NODE} " in item.reason)
        if not right or "Traceback" in item.reason:
            found.append(f"{name}, {at - gone_at:.0f} s later: {item.outcome}: {item.reason}")
    return found


async def _take_away(stage: Scene, client: Client, how: How) -> None:
    if how != "taken-out":
        await stage.sandbox.break_fault(LOST_POWER, NODE)
        stage.sandbox.fleet.kubelets[NODE].machine.request_power(PowerRequest(restart=True, delay=0.0))
    if how != "off":
        await client.delete(NODES, NODE)


async def _give_back(stage: Scene, client: Client) -> None:
    """Its power is back; a node that was only taken out joins again when it starts."""
    if not await stage.sandbox.heal_fault(LOST_POWER, NODE):
        stage.sandbox.fleet.kubelets[NODE].machine.request_power(PowerRequest(restart=True, delay=0.0))
        await stage.sandbox.clock.sleep(60.0)
    while (raw := await client.find(NODES, NODE)) is None or read_node(raw).unusable:
        await stage.sandbox.clock.sleep(5.0)
    assert await stage.sandbox.settled()

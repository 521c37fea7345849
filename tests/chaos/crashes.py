"""Runs that are killed, in virtual time: from one moment on nothing of theirs reaches the cluster or the disk.

Tasks cannot be killed without letting them clean up. So what they clean up with is taken away: every connection is cut
at both ends, none can be opened, and the journal keeps what was synced and, if the kill came while a line was written,
a part of that line.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp.client_proto import ResponseHandler

from chaos.remains import whole_state
from chaos.scenes import STANDARD, Scene, follow, scene
from winready.cli.run_options import earlier_run
from winready.cluster.client import Client
from winready.cluster.node_folders import sweep
from winready.cluster.settings import Settings
from winready.engine import events
from winready.engine.journal import NAME, Journal, read
from winready.engine.run import Run
from winready.engine.selection import Selection
from winready.report.folders import new_run_id
from winready.report.following import follow as follow_handlers
from winready_sandbox import chance
from winready_sandbox.virtual_time import VirtualTimeLoop
from winready_sandbox.wire import Accept, Wire, WireConnector

JUDGED = ("passed", "failed", "not-applicable")


class Severed(WireConnector):
    """A way to the API server that can be cut for good."""

    def __init__(self, accept: Accept) -> None:
        super().__init__(accept)
        self._wires: list[Wire] = []
        self.cut = asyncio.Event()

    async def _create_connection(self, req: Any, traces: Any, timeout: Any) -> ResponseHandler:
        if self.cut.is_set():
            await asyncio.Event().wait()
        protocol = await super()._create_connection(req, traces, timeout)
        assert isinstance(protocol.transport, Wire)
        self._wires.append(protocol.transport)
        return protocol

    def sever(self) -> None:
        """The process at our end is gone."""
        self.cut.set()
        for wire in self._wires:
            wire.abort()


class Doomed(Journal):
    """A journal whose process is killed; at the event of that number while it is written, if there is one."""

    def __init__(self, folder: Path, connector: Severed, at: int | None, torn: random.Random) -> None:
        super().__init__(folder)
        self._folder = folder
        self._connector = connector
        self._left = at
        self._torn = torn

    def handle(self, event: events.AnyEvent) -> None:
        """Write it, unless nobody is there any more to do so."""
        if self._connector.cut.is_set():
            return
        size = (self._folder / NAME).stat().st_size
        super().handle(event)
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                whole = (self._folder / NAME).stat().st_size
                with (self._folder / NAME).open("r+b") as file:
                    file.truncate(self._torn.randint(size, whole))
                self._connector.sever()


@dataclass
class Crashed:
    """What became of a run that was killed, of one that took over from it, and of the cluster."""

    finished: int = 0
    """Results that the killed run had finished."""
    lost: list[str] = field(default_factory=list)
    """Those of them that the second run does not have."""
    verdict: str = ""
    outcomes: dict[str, str] = field(default_factory=dict)
    cleaned: list[str] = field(default_factory=list)
    """What ``cleanup`` says is still there."""
    remains: list[str] = field(default_factory=list)
    """What is there and was not before, and what is not there any more."""
    events: int = 0
    left_by_kill: int = 0
    """Things that the killed run left behind, before anybody cleaned up."""


def crash(
    seed: str,
    requirements: list[str],
    folder: Path,
    *,
    after: float | None = None,
    at_event: int | None = None,
    clean_first: bool = False,
) -> Crashed:
    """Kill a run ``after`` cluster seconds or at the event of a number, let another one take over, and clean up."""
    chance.fix(seed)
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(_crash(seed, requirements, folder, after, at_event, clean_first))


async def _crash(
    seed: str, requirements: list[str], folder: Path, after: float | None, at_event: int | None, clean_first: bool
) -> Crashed:
    selection, result = Selection(requirements=requirements), Crashed()
    async with scene(selection) as stage:
        before = whole_state(stage.sandbox)
        announced: set[str] = set()
        zombie = await _killed(stage, selection, folder, after, at_event, random.Random(seed), announced)
        result.left_by_kill = len(whole_state(stage.sandbox) ^ before)
        happened = read(folder)
        result.events = len(happened)
        finished = {
            event.result.id: event.result for event in happened if isinstance(event, events.RequirementFinished)
        }
        finished = {name: found for name, found in finished.items() if found.outcome in JUDGED}
        result.finished = len(finished)
        result.lost = [f"{name} was told and is not in the journal" for name in announced - finished.keys()]
        async with stage.calm() as client:
            if clean_first:
                result.cleaned += await cleaned(client)
            carried = earlier_run(folder).carried if happened else None
            record = await follow(Run(client, STANDARD, stage.options(selection, 1, carried=carried)))
            result.cleaned += await cleaned(client)
        again = {item.id: item for item in record.requirements}
        result.lost += [name for name, found in finished.items() if again.get(name) != found]
        result.verdict, result.outcomes = str(record.verdict), {name: item.outcome for name, item in again.items()}
        result.remains = sorted(whole_state(stage.sandbox) ^ before)
        zombie.cancel()
        with suppress(asyncio.CancelledError):
            await zombie
    return result


class Told:
    """Whoever watches: what he was told before the end must be kept."""

    name = "whoever watches"

    def __init__(self, connector: Severed, announced: set[str]) -> None:
        self._connector = connector
        self._announced = announced

    def start(self) -> None:
        """Nothing to make ready."""

    def handle(self, event: events.AnyEvent) -> None:
        """Take note of results."""
        if self._connector.cut.is_set() or not isinstance(event, events.RequirementFinished):
            return
        if event.result.outcome in JUDGED:
            self._announced.add(event.result.id)

    def close(self) -> None:
        """Nothing is open."""


async def _killed(
    stage: Scene,
    selection: Selection,
    folder: Path,
    after: float | None,
    at_event: int | None,
    torn: random.Random,
    announced: set[str],
) -> asyncio.Task[None]:
    """A run up to the moment at which it is killed; the rest of it reaches nobody."""
    connector = Severed(stage.sandbox.embedded.inside)

    async def run() -> None:
        async with Client.connect(stage.target(), connector) as client:
            doomed = Run(client, STANDARD, stage.options(selection))
            await follow_handlers(doomed, Doomed(folder, connector, at_event, torn), [Told(connector, announced)])

    task = asyncio.create_task(run())
    killed = asyncio.create_task(connector.cut.wait())
    await asyncio.wait([task, killed], timeout=after, return_when=asyncio.FIRST_COMPLETED)
    connector.sever()
    await killed
    return task


async def cleaned(client: Client) -> list[str]:
    """As ``winready cleanup``."""
    settings = Settings(run_id=new_run_id())
    swept = await sweep(client, settings, run_id=None, patience=300.0, dry_run=False, objects_only=False)
    return swept.left

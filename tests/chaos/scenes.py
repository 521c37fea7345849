"""A sandbox, a proxy and runs between them, in virtual time: what a storm does to a verdict."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from chaos.kinds import Weather
from chaos.proxy import Proxy, StormyConnector
from winready.cluster.client import Client
from winready.cluster.kubeconfig import Target
from winready.cluster.settings import Settings
from winready.engine import events
from winready.engine.options import Options
from winready.engine.run import Run
from winready.engine.selection import Selection
from winready.proof.furnishing import furnished, own_domain
from winready.report.record import Record
from winready.spec.loader import load_standard
from winready_sandbox import chance
from winready_sandbox.api.identity import ADMIN
from winready_sandbox.plan import Plan
from winready_sandbox.up import Sandbox
from winready_sandbox.virtual_time import VirtualTimeLoop
from winready_sandbox.wire import WireConnector

T = TypeVar("T")
RUN_ID = "260101-000000-{:04x}"
STANDARD = load_standard()


@dataclass
class Ended:
    """How a run ended."""

    record: Record
    seconds: float
    """Of the cluster's clock."""
    weather: Weather

    @property
    def outcomes(self) -> dict[str, str]:
        """What became of each requirement."""
        return {result.id: result.outcome for result in self.record.requirements}


@dataclass
class Scene:
    """A cluster, and the ways to it."""

    sandbox: Sandbox

    def target(self) -> Target:
        """Where its API is, and who asks."""
        plane = self.sandbox.embedded
        return Target(plane.url, token=plane.token(ADMIN))

    @asynccontextmanager
    async def calm(self) -> AsyncIterator[Client]:
        """A client that nothing stands before."""
        async with Client.connect(self.target(), WireConnector(self.sandbox.embedded.inside)) as client:
            yield client

    @asynccontextmanager
    async def behind(self, weather: Weather) -> AsyncIterator[tuple[Client, Proxy]]:
        """A client behind a proxy."""
        plane = self.sandbox.embedded
        proxy = Proxy(plane.url, WireConnector(plane.inside), weather)
        try:
            async with Client.connect(self.target(), StormyConnector(proxy.server, weather)) as client:
                yield client, proxy
        finally:
            await proxy.close()

    def options(self, selection: Selection, number: int = 0, **more: Any) -> Options:
        """As a trial has them."""
        settings = Settings(run_id=RUN_ID.format(number), active_directory=own_domain(vars(self.sandbox.plan)))
        return Options(settings=settings, selection=selection, allow_disruptive=True, nodes=None, parallel=32, **more)


@asynccontextmanager
async def scene(selection: Selection, fault: str = "") -> AsyncIterator[Scene]:
    """A cluster that came up, with a fault or without."""
    async with Sandbox(Plan(name="chaos", **furnished(STANDARD, selection))) as sandbox:
        assert await sandbox.settled()
        if fault:
            await sandbox.break_fault(fault)
        yield Scene(sandbox)


async def follow(run: Run, on: Callable[[events.AnyEvent], object] = lambda event: None) -> Record:
    """Do a run to its end."""
    record = Record()
    async with aclosing(run.stream()) as told:
        async for event in told:
            record.apply(event)
            on(event)
    return record


def weather_run(
    rates: Mapping[str, float],
    seed: str,
    requirements: list[str],
    fault: str = "",
    on: Callable[[events.AnyEvent, Run, Proxy], object] = lambda event, run, proxy: None,
) -> Ended:
    """One run in some weather, against a sandbox of its own."""
    selection = Selection(requirements=requirements)

    async def story() -> Ended:
        weather = Weather(rates, seed)
        async with scene(selection, fault) as stage, stage.behind(weather) as (client, proxy):
            start = asyncio.get_running_loop().time()
            run = Run(client, STANDARD, stage.options(selection))
            record = await follow(run, lambda event: on(event, run, proxy))
            return Ended(record, asyncio.get_running_loop().time() - start, weather)

    return played(story, seed)


def played(story: Callable[[], Coroutine[Any, Any, T]], seed: str) -> T:
    """Let a story happen in virtual time, the same way each time."""
    chance.fix(seed)
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(story())

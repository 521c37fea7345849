"""Startup, liveness and readiness probes of one running container."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, Literal, Protocol

from winready_sandbox.clock import Clock
from winready_sandbox.nodes.actions import Target, perform

Object = dict[str, Any]
Kind = Literal["startup", "liveness", "readiness"]
_LEAST_PERIOD = 0.2
"""Wall seconds: at high speeds a steady probe would otherwise eat the processor that it is to watch."""
_LEAST_FIRST_PERIOD = 0.03


class Probed(Protocol):
    """What a container learns from its probes."""

    def on_started(self) -> None:
        """The startup probe succeeded, or there is none."""

    def on_ready(self, ready: bool) -> None:
        """The readiness probe changed its mind."""

    def on_probe_failure(self, kind: Kind, message: str) -> None:
        """One attempt failed."""

    def on_dead(self, kind: Kind) -> None:
        """Liveness or startup failed often enough."""


class Probes:
    """Runs the probes of one container from its start to its end."""

    def __init__(self, target: Target, probed: Probed, ignored: Callable[[], bool]) -> None:
        self._target = target
        self._probed = probed
        self._ignored = ignored
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin; without probes the container is started and ready at once."""
        spec = self._target.spec
        if "startupProbe" in spec and not self._ignored():
            self._run(self._startup(spec["startupProbe"]))
        else:
            self._after_start()

    def _run(self, probe: Any) -> None:
        self._tasks.append(asyncio.create_task(probe, name=f"probe {self._target.spec['name']}"))

    def stop(self) -> None:
        """End all of them."""
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()

    def _after_start(self) -> None:
        spec = self._target.spec
        self._probed.on_started()
        if "readinessProbe" in spec and not self._ignored():
            self._run(self._repeat("readiness", spec["readinessProbe"]))
        else:
            self._probed.on_ready(True)
        if "livenessProbe" in spec and not self._ignored():
            self._run(self._repeat("liveness", spec["livenessProbe"]))

    async def _startup(self, probe: Object) -> None:
        if await self._until_decided("startup", probe):
            self._after_start()
        else:
            self._probed.on_dead("startup")

    async def _until_decided(self, kind: Kind, probe: Object) -> bool:
        clock = self._target.clock
        await clock.sleep(probe.get("initialDelaySeconds") or 0)
        failures = 0
        while True:
            if await self._once(kind, probe):
                return True
            failures += 1
            if failures >= (probe.get("failureThreshold") or 3):
                return False
            await _pause(clock, probe, first=True)

    async def _repeat(self, kind: Kind, probe: Object) -> None:
        clock = self._target.clock
        await clock.sleep((probe.get("initialDelaySeconds") or 0) + random.uniform(0, 0.5))
        good = bad = 0
        healthy: bool | None = None
        while True:
            if await self._once(kind, probe):
                good, bad = good + 1, 0
                if good >= (probe.get("successThreshold") or 1) and healthy is not True:
                    healthy = True
                    if kind == "readiness":
                        self._probed.on_ready(True)
            else:
                good, bad = 0, bad + 1
                if bad >= (probe.get("failureThreshold") or 3) and healthy is not False:
                    healthy = False
                    if kind == "readiness":
                        self._probed.on_ready(False)
                    else:
                        self._probed.on_dead(kind)
                        return
            await _pause(clock, probe, first=healthy is None)

    async def _once(self, kind: Kind, probe: Object) -> bool:
        if self._ignored():
            return True
        outcome = await perform(probe, self._target, float(probe.get("timeoutSeconds") or 1))
        if not outcome.ok:
            self._probed.on_probe_failure(kind, outcome.message)
        return outcome.ok


async def _pause(clock: Clock, probe: Object, *, first: bool) -> None:
    least = _LEAST_FIRST_PERIOD if first else _LEAST_PERIOD
    await asyncio.sleep(max(clock.wall(probe.get("periodSeconds") or 10), least))

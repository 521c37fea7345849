"""Loops of simulated scripts take simulated time, so that a script that never ends does not stop the sandbox.

Every few hundred steps without a pause count as computing: the container is charged for it, and the event
loop gets to run everybody else.
"""

from __future__ import annotations

import asyncio

from winready.sandbox.machine.process import Process

STEPS = 400
SLICE = 0.05


class Pace:
    """Counts the steps of one interpreter."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._steps = 0

    async def step(self) -> None:
        """One step; now and then it takes time."""
        self._steps += 1
        if self._steps % STEPS == 0:
            await self._process.burn(SLICE * self._process.container.clock.speed)
        elif self._steps % 20 == 0:
            await asyncio.sleep(0)

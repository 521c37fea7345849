"""Loops of simulated scripts take simulated time, so that a script that never ends does not stop the sandbox.

Every few hundred steps without a pause count as computing: the container is charged for it, and the event
loop gets to run everybody else.
"""

from __future__ import annotations

import asyncio
from typing import NoReturn

from winready_sandbox.machine.process import Process

STEPS = 400
SLICE = 0.05
LONGEST = 4
"""Slices: a script that goes on and on is let go on more and more rarely, which nobody sees but the host."""
ENDLESS, FEW, LONG = 5, 2, 0.5
"""After so many slices a script seems to have no end; then it makes only a few steps in each, and they are longer."""
LARGE, PIECE = 2**18, 2**12
"""Bytes of work after which everybody else gets a turn at once, and those that count as a step."""
LINGER = 0.6
"""Wall seconds after a slice in which the script still counts as computing: it is, however slowly the host lets it."""


class Pace:
    """Counts the steps of one interpreter."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._steps = 0
        self._slices = 0
        self._work = 0
        self._computing: asyncio.TimerHandle | None = None

    def work(self, size: int) -> None:
        """Something was done with that many bytes at once, which the next step pays for."""
        self._work += size

    async def step(self) -> None:
        """One step; now and then it takes time."""
        each = STEPS if self._slices < ENDLESS else FEW
        done = self._steps // each
        self._steps += 1 + self._work // PIECE
        large, self._work = self._work >= LARGE, self._work % PIECE
        if self._steps // each > done:
            self._slices += 1
            self._compute()
            await asyncio.sleep(LONG if self._slices > ENDLESS else SLICE * min(self._slices, LONGEST))
            self._compute()
        elif large or self._steps % 20 == 0:
            await asyncio.sleep(0)

    async def rest(self) -> None:
        """Pay for the work that has come together, if it is much."""
        if self._work >= LARGE:
            await self.step()

    async def spin(self) -> None:
        """All the steps of a slice at once, of a loop in which nothing happens: nobody sees them, only the time."""
        each = STEPS if self._slices < ENDLESS else FEW
        self._steps += each - 1 - self._steps % each
        await self.step()

    async def forever(self) -> NoReturn:
        """Compute on and on, until somebody ends the process."""
        while True:
            await self.spin()

    def _compute(self) -> None:
        if self._computing is None:
            self._process.cpu_demand(self._process.cores + 1)
        else:
            self._computing.cancel()
        self._computing = asyncio.get_running_loop().call_later(LINGER, self._rest)

    def _rest(self) -> None:
        self._computing = None
        if self._process.cores >= 1:
            self._process.cpu_demand(self._process.cores - 1)

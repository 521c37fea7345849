"""The values of a program cost memory of its process, as they would on a real machine.

They are real bytes of the host as well. So a process is refused what it cannot have before it is made, and what it
holds is booked with its container and its machine: a script that doubles a text ends as it would end there.
"""

from __future__ import annotations

from winready_sandbox.machine.errors import OutOfMemory
from winready_sandbox.machine.process import KILLED, Exit, Process

LARGEST = 8 * 2**20
"""Bytes of one value."""
MOST = 48 * 2**20
"""Bytes of all values of one program."""
STEP = 2**20
"""Bytes that are booked at once: nobody looks at less."""


class Holding:
    """What one interpreter holds."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._booked = 0

    def book(self, total: int) -> None:
        """It holds that many bytes now; raises as the operating system does where there are no more."""
        if total > MOST:
            self.refuse()
        wanted = total // STEP * STEP
        if wanted > self._booked:
            try:
                self._process.hold(wanted - self._booked)
            except OutOfMemory:
                self.refuse()
        elif wanted < self._booked:
            self._process.let_go(self._booked - wanted)
        self._booked = wanted

    def check(self, size: int) -> None:
        """May there be a value of that size?"""
        if size > LARGEST:
            self.refuse()

    def refuse(self) -> None:
        """Windows says no, and the program may go on without; Linux promises everything and kills afterwards."""
        if self._process.windows:
            raise OutOfMemory
        raise Exit(KILLED)

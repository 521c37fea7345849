"""A simulated process: what a program gets to work with, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from winready.sandbox.streams import Pipe

if TYPE_CHECKING:
    from winready.sandbox.machine.container import Container

Program = Callable[["Process"], Awaitable[int]]
"""A program is an async function; what it returns is its exit code."""


@dataclass(eq=False)
class Process:
    """One running program inside a container (or, for HostProcess, on the node)."""

    container: Container
    argv: list[str]
    env: dict[str, str]
    cwd: str
    user: str
    stdin: Pipe = field(default_factory=Pipe)
    stdout: Pipe = field(default_factory=Pipe)
    stderr: Pipe = field(default_factory=Pipe)
    tty: bool = False
    stop_requested: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the runtime asks the process to stop (SIGTERM, CTRL_SHUTDOWN); programs that ignore it get killed."""
    _task: asyncio.Task[int] | None = None
    exit_code: int | None = None

    def run(self, program: Program) -> None:
        """Start the program as a task of its own."""
        self._task = asyncio.create_task(self._main(program), name=" ".join(self.argv)[:60])

    async def _main(self, program: Program) -> int:
        killed_code = 137 if self.container.os == "linux" else 1067
        self.exit_code = killed_code
        try:
            self.exit_code = await program(self)
        finally:
            self.stdout.close()
            self.stderr.close()
        return self.exit_code

    async def wait(self) -> int:
        """Wait for the end and return the exit code."""
        if self._task is not None:
            await asyncio.wait([self._task])
            if not self._task.cancelled() and (error := self._task.exception()) is not None:
                raise error
        return self.exit_code if self.exit_code is not None else 0

    async def kill(self) -> None:
        """End the process at once."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def out(self, text: str) -> None:
        """Write text to standard output with the line ends as given."""
        self.stdout.write(text.encode("utf-8", "surrogateescape"))

    def err(self, text: str) -> None:
        """Write text to standard error with the line ends as given."""
        self.stderr.write(text.encode("utf-8", "surrogateescape"))

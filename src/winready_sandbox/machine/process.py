"""A simulated process: what a program gets to work with, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from winready_sandbox.machine.errors import OutOfMemory
from winready_sandbox.streams import Flooded, Pipe, encoded

if TYPE_CHECKING:
    from winready_sandbox.machine.container import Container
    from winready_sandbox.machine.files import FileSystem
    from winready_sandbox.machine.users import Identity

Program = Callable[["Process"], Awaitable[int]]
"""A program is an async function; what it returns is its exit code."""

CONTROL_C_EXIT = 0xC000013A
"""How Windows ends a console process that does not handle the shutdown event."""
ABORTED = 1067
"""ERROR_PROCESS_ABORTED: a process that was terminated from outside."""


NO_MEMORY = 0xC0000017
"""STATUS_NO_MEMORY, of a program that did not expect to be refused."""
BROKEN_PIPE = 141
"""SIGPIPE: nobody reads the output any more."""
STACK_OVERFLOW = 0xC00000FD
"""STATUS_STACK_OVERFLOW, of a program that called itself too often."""
KILLED, SEGMENTATION_FAULT = 137, 139


class Exit(Exception):
    """Raised anywhere inside a program to end it with an exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"exit {code}")
        self.code = code


class StopSignal(asyncio.Event):
    """The request to stop; a program that waits for it, or looks at it, handles it by itself."""

    handled = False

    async def wait(self) -> bool:  # type: ignore[override]  # typeshed narrows the return type to Literal[True]
        """Wait for the request, and thereby declare that the program will end by itself."""
        self.handled = True
        return await super().wait()


@dataclass(eq=False)
class Process:
    """One running program inside a container (or, for HostProcess, on the node)."""

    container: Container
    argv: list[str]
    env: MutableMapping[str, str]
    cwd: str
    user: str
    stdin: Pipe = field(default_factory=Pipe)
    stdout: Pipe = field(default_factory=Pipe)
    stderr: Pipe = field(default_factory=Pipe)
    tty: bool = False
    stop_requested: StopSignal = field(default_factory=StopSignal)
    """Set when the runtime asks the process to stop (SIGTERM, CTRL_SHUTDOWN); programs that ignore it get killed."""
    pid: int = 1
    parent: Process | None = None
    command_line: str = ""
    """What Windows hands over; ``argv`` is what a C program makes of it."""
    path: str = ""
    """The executable file."""
    identity: Identity | None = None
    shares_streams: bool = False
    """Standard output belongs to somebody else and stays open after this process ends."""
    exit_code: int | None = None
    children: list[Process] = field(default_factory=list)
    memory: int = 0
    held: int = 0
    """The part of its memory that is values."""
    cores: float = 0.0
    _task: asyncio.Task[int] | None = None
    _killed_with: int | None = None

    @property
    def files(self) -> FileSystem:
        """The file system this process sees."""
        return self.container.files

    @property
    def windows(self) -> bool:
        """Does it run on Windows?"""
        return self.container.os == "windows"

    @property
    def running(self) -> bool:
        """Has it not ended yet?"""
        return self._task is not None and not self._task.done()

    def run(self, program: Program) -> None:
        """Start the program as a task of its own."""
        self._task = asyncio.create_task(self._main(program), name=" ".join(self.argv)[:60])
        self._task.add_done_callback(self._ended)

    async def _main(self, program: Program) -> int:
        try:
            return await program(self)
        except Exit as ended:
            return ended.code
        except (OutOfMemory, Flooded, MemoryError):
            if not self.windows:
                return KILLED
            self.err("Out of memory.\r\n")
            return NO_MEMORY
        except RecursionError:
            return STACK_OVERFLOW if self.windows else SEGMENTATION_FAULT

    def _ended(self, task: asyncio.Task[int]) -> None:
        """Whatever the way it ended, even before its first step."""
        code = 137 if self.container.os == "linux" else ABORTED
        if self._killed_with is not None:
            code = self._killed_with
        elif not task.cancelled() and task.exception() is None:
            code = task.result()
        self.exit_code = code & (0xFFFFFFFF if self.windows else 0xFF)
        self._release()

    def _release(self) -> None:
        self.cpu_demand(0)
        self.let_go(self.held)
        self.container.memory.give_back(self.memory)
        self.memory = 0
        if self.parent is not None and self in self.parent.children:
            self.parent.children.remove(self)
        for child in self.children:
            if child.running and child._task is not None:
                child._task.cancel()
        self.container.forget(self)
        if not self.shares_streams:
            self.stdout.close()
            self.stderr.close()

    async def wait(self) -> int:
        """Wait for the end and return the exit code."""
        if self._task is not None:
            await asyncio.wait([self._task])
            if not self._task.cancelled() and (error := self._task.exception()) is not None:
                raise error
        return self.exit_code if self.exit_code is not None else 0

    async def finish(self) -> int:
        """Wait for the end as a parent does: if the parent is ended meanwhile, this process ends too."""
        try:
            return await self.wait()
        except asyncio.CancelledError:
            if self._task is not None:
                self._task.cancel()
            raise

    async def kill(self, code: int | None = None) -> None:
        """End the process at once."""
        if self._task is not None and not self._task.done():
            self._killed_with = code
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([self._task])

    def signal_stop(self) -> None:
        """Deliver SIGTERM or CTRL_SHUTDOWN; what the program does not handle, the OS does.

        Linux ignores the signal for the first process of a container, as the kernel does for any pid 1.
        """
        self.stop_requested.set()
        if self.stop_requested.handled or self._task is None:
            return
        if self.windows:
            self._killed_with = CONTROL_C_EXIT
            self._task.cancel()
        elif self.pid != 1:
            self._killed_with = 143
            self._task.cancel()

    def spawn(
        self,
        argv: Sequence[str],
        *,
        stdin: Pipe | None = None,
        stdout: Pipe | None = None,
        stderr: Pipe | None = None,
        env: MutableMapping[str, str] | None = None,
        cwd: str | None = None,
        command_line: str = "",
        path: str = "",
    ) -> Process:
        """Start a child that inherits what is not given; raises `ExecError` when there is no such program."""
        return self.container.start_process(
            list(argv),
            stdin=stdin or self.stdin,
            stdout=stdout or self.stdout,
            stderr=stderr or self.stderr,
            env=env if env is not None else self.env,
            cwd=self.cwd if cwd is None else cwd,
            user=self.user,
            identity=self.identity,
            parent=self,
            command_line=command_line,
            path=path,
        )

    def cpu_demand(self, cores: float) -> None:
        """Say how many cores the program would use from now on if nothing limited it."""
        if cores != self.cores:
            self.container.cpu.ask(cores - self.cores)
            self.cores = cores

    async def burn(self, seconds: float) -> None:
        """Compute for that many cluster seconds on one core."""
        self.cpu_demand(self.cores + 1)
        try:
            await self.container.clock.sleep(seconds)
        finally:
            self.cpu_demand(self.cores - 1)

    def allocate(self, size: int) -> None:
        """Reserve memory: Windows refuses at the commit limit (`OutOfMemory`), Linux kills the container."""
        try:
            self.container.memory.take(size)
        except OutOfMemory:
            if self.windows:
                raise
            self.container.out_of_memory()
            raise Exit(137) from None
        self.memory += size

    def free(self, size: int) -> None:
        """Give memory back."""
        size = min(size, self.memory)
        self.container.memory.give_back(size)
        self.memory -= size

    def hold(self, size: int) -> None:
        """Reserve memory for values, which are real bytes of the host: of those a machine has few."""
        self.allocate(size)
        try:
            self.container.machine.values.take(size)
        except OutOfMemory:
            self.free(size)
            raise
        self.held += size

    def let_go(self, size: int) -> None:
        """Give back memory of values."""
        size = min(size, self.held)
        self.held -= size
        self.container.machine.values.give_back(size)
        self.free(size)

    def out(self, text: str) -> None:
        """Write text to standard output with the line ends as given; a reader that is gone ends the process."""
        if self.stdout.closed:
            raise Exit(BROKEN_PIPE)
        self.stdout.write(encoded(text))

    def err(self, text: str) -> None:
        """Write text to standard error with the line ends as given."""
        self.stderr.write(encoded(text))

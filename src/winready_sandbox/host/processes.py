"""Real processes with the pipes of simulated ones, so that streams, probes and logs serve both alike."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable

from winready_sandbox.host.ground import Ground, GroundError, Running
from winready_sandbox.streams import Pipe

Launch = Callable[[tuple[int, int, int]], Awaitable[Running]]
"""Starts a process with these as standard input, output and error."""
CANNOT_START = 126
_CHUNK = 65536


class HostProcess:
    """One process; it is started in the background."""

    def __init__(
        self,
        ground: Ground,
        launch: Launch,
        *,
        stdin: Pipe | None = None,
        stdout: Pipe | None = None,
        stderr: Pipe | None = None,
        tty: bool = False,
    ) -> None:
        self._ground = ground
        self.stdin = stdin or Pipe()
        self.stdout = stdout or Pipe()
        self.stderr = self.stdout if tty else stderr or Pipe()
        self.trouble = ""
        """Why it could not be started."""
        self._tty = tty
        self._running: Running | None = None
        self._begun = asyncio.Event()
        self._task = asyncio.create_task(self._run(launch), name="host process")

    @property
    def running(self) -> bool:
        """Has it not ended yet?"""
        return not self._task.done()

    async def started(self) -> str:
        """Wait until it runs; returns why it does not, or nothing."""
        await self._begun.wait()
        return self.trouble

    async def wait(self) -> int:
        """Its exit code, once everything that it wrote has been read."""
        return await asyncio.shield(self._task)

    async def signal(self, number: int) -> None:
        """Send a signal."""
        if self._running is not None and not self._running.ended.done():
            await self._ground.signal(self._running.pid, number)

    async def kill(self) -> None:
        """End it."""
        await self.signal(signal.SIGKILL)

    async def _run(self, launch: Launch) -> int:
        ours, theirs = self._terminal() if self._tty else self._pipes()
        try:
            self._running = await launch(theirs)
        except GroundError as error:
            self.trouble = str(error)
        finally:
            for descriptor in set(theirs):
                os.close(descriptor)
            self._begun.set()
        if self._running is None:
            for descriptor in set(ours):
                os.close(descriptor)
            self.stderr.write(self.trouble.encode())
            self.stdout.close()
            self.stderr.close()
            return CANNOT_START
        feeding = asyncio.create_task(self._feed(ours[0]))
        outputs = [asyncio.create_task(_drain(ours[1], self.stdout))]
        if not self._tty:
            outputs.append(asyncio.create_task(_drain(ours[2], self.stderr)))
        code = await self._running.ended
        # Somebody may have left a child behind that keeps the outputs open; in a container it ends with the first one.
        _, late = await asyncio.wait(outputs, timeout=5)
        for task in (feeding, *late):
            task.cancel()
        await asyncio.gather(feeding, *late, return_exceptions=True)
        self.stdout.close()
        self.stderr.close()
        return code

    def _pipes(self) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        read_in, write_in = os.pipe()
        read_out, write_out = os.pipe()
        read_err, write_err = os.pipe()
        return (write_in, read_out, read_err), (read_in, write_out, write_err)

    def _terminal(self) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        master, slave = os.openpty()
        return (os.dup(master), master, master), (slave, slave, slave)

    async def _feed(self, descriptor: int) -> None:
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, os.fdopen(descriptor, "wb", buffering=0)
        )
        writer = asyncio.StreamWriter(transport, protocol, None, loop)
        try:
            with contextlib.suppress(ConnectionError, OSError):
                while data := await self.stdin.read():
                    writer.write(data)
                    await writer.drain()
        finally:
            writer.close()


async def _drain(descriptor: int, pipe: Pipe) -> None:
    """Read to the end; a terminal whose last user has gone ends with an error."""
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
    )
    try:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                pipe.write(data)
    finally:
        transport.close()

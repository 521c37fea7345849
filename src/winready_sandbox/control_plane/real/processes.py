"""The processes of a real control plane, which must never outlive the sandbox, however it ends.

They share a process group with a guard, a shell that does nothing but wait for the end of its input. The other end
of that pipe is held by the sandbox alone, so the kernel closes it even after ``kill -9``; the guard then kills the
whole group. Nothing of a sandbox is kept, so there is nothing that a gentler end would save.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

from winready_sandbox.state import StateError

LOG_LINES = 12
_LINE = 400
_GUARD = "trap '' INT TERM HUP; read -r _; kill -KILL 0"


class Component:
    """One program that was started, and what it wrote."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self.log = log
        self.process = process

    async def ended(self) -> None:
        """Wait until it ends by itself, which is always an error."""
        code = await self.process.wait()
        how = f"ended with exit code {code}" if code >= 0 else f"was ended by signal {-code}"
        raise StateError(f"{self.name} {how}; {self.last_words()}")

    def last_words(self) -> str:
        """The end of its log, for people."""
        with contextlib.suppress(FileNotFoundError):
            lines = self.log.read_text(errors="replace").splitlines()[-LOG_LINES:]
            if lines:
                return "its last log lines:\n" + "\n".join(f"  {line[:_LINE]}" for line in lines)
        return "its log is empty"


class Components:
    """The programs of one control plane."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._guard: asyncio.subprocess.Process | None = None
        self._started: list[Component] = []

    async def start(self, program: Path, arguments: Sequence[str]) -> Component:
        """Start a program in the group."""
        if self._guard is None:
            self._guard = await asyncio.create_subprocess_exec(
                "/bin/sh", "-c", _GUARD, stdin=asyncio.subprocess.PIPE, process_group=0
            )
        log = self._folder / f"{program.name}.log"
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                program,
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self._folder,
                process_group=self._guard.pid,
            )
        component = Component(program.name, process, log)
        self._started.append(component)
        return component

    async def failure(self) -> None:
        """Wait until one of them ends; raises with its last words."""
        tasks = [asyncio.create_task(component.ended()) for component in self._started]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def stop(self) -> None:
        """Kill the group and wait until nothing of it is left."""
        if self._guard is None:
            return
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        await asyncio.gather(self._guard.wait(), *(component.process.wait() for component in self._started))
        self._guard = None
        self._started.clear()

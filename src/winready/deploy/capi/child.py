"""A run in a process of its own: told to end in time, never without an end, and its kubeconfig is in no file."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from winready.engine.defaults import CLEANUP_SECONDS
from winready.report.record import Record

MOST_OUTPUT = 64 << 20
CLEAN_UP_SECONDS = CLEANUP_SECONDS + 30.0
"""What a run gets beyond its time, to clean up and to conclude."""
NOT_THEIRS = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "ARTIFACTS")
"""Of our own surroundings: a run must never take the management cluster for the one that it judges."""


@dataclass
class Child:
    """One run. ``words`` are those after ``winready run``."""

    words: Sequence[str]
    kubeconfig: bytes = field(repr=False)
    limit: float
    stopped: bool = False
    _process: asyncio.subprocess.Process | None = None
    _lines: deque[str] = field(default_factory=lambda: deque(maxlen=40))

    async def run(self) -> tuple[int, Record | None, str]:
        """Its exit code, its record if it wrote one, and else its last words; raises ``OSError``."""
        with _in_memory(self.kubeconfig) as number:
            command = [
                sys.executable, "-P", "-m", "winready.deploy.capi.tied", str(os.getpid()),
                "run", "--kubeconfig", f"/dev/fd/{number}", "-o", "json", *self.words,
            ]  # fmt: skip
            self._process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={key: value for key, value in os.environ.items() if key not in NOT_THEIRS},
                pass_fds=(number,),
                start_new_session=True,
                limit=1 << 20,
            )
        if self.stopped:
            self.stop()
        try:
            async with asyncio.timeout(self.limit + CLEAN_UP_SECONDS):
                output, _ = await asyncio.gather(self._output(), self._follow())
                code = await self._process.wait()
        except TimeoutError:
            self.kill()
            return await self._process.wait(), None, "the run did not end in time, and was killed"
        except BaseException:
            self.kill()
            raise
        return code, _record(output), self._last_words(code)

    def stop(self) -> None:
        """Have it clean up and end."""
        self.stopped = True
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it as it is."""
        self.stopped = True
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    async def _output(self) -> bytes:
        stream = self._process.stdout if self._process else None
        parts: list[bytes] = []
        size = 0
        while stream and (part := await stream.read(1 << 16)):
            size += len(part)
            if size <= MOST_OUTPUT:
                parts.append(part)
        return b"".join(parts) if size <= MOST_OUTPUT else b""

    async def _follow(self) -> None:
        stream = self._process.stderr if self._process else None
        rest = b""
        while stream and (part := await stream.read(1 << 14)):
            *whole, rest = (rest + part)[-(1 << 16) :].split(b"\n")
            self._lines.extend(line.decode(errors="replace").strip() for line in whole if line.strip())

    def _last_words(self, code: int) -> str:
        said = [text for text in self._lines if text.lower().startswith("error: ")]
        if code < 0:
            return f"the run was killed (signal {-code}); its memory limit may be too low"
        return said[-1][7:] if said else f"the run ended with exit code {code} before it had a record"


def _record(output: bytes) -> Record | None:
    try:
        return msgspec.json.decode(output, type=Record)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


@contextlib.contextmanager
def _in_memory(data: bytes) -> Iterator[int]:
    """A descriptor to read it from, which nothing else has, and which is gone with those who hold it."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("kubeconfig", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            number = os.dup(file.fileno())
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(number, view) :]
        os.lseek(number, 0, os.SEEK_SET)
        yield number
    finally:
        os.close(number)


def reports(base: str, namespace: str, name: str) -> str:
    """Where the runs of a cluster are: each cluster has a report folder of its own."""
    return f"{base.rstrip('/')}/{namespace}/{name}" if "://" in base else str(Path(base) / namespace / name)

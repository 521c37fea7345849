"""One e2e.test process: started apart from our terminal, followed while it runs, ended gently, then for sure."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from winready.cluster.secrets import SecretFilter
from winready.upstream.binary import Binary, BinaryError
from winready.upstream.flags import Invocation, arguments
from winready.upstream.junit import Case, JunitError, quiet, read_cases
from winready.upstream.output import Follower, Seen

CHUNK = 64 * 1024
GRACE_SECONDS = 90.0
"""After SIGTERM ginkgo runs the clean-up of the spec it is at, and writes its report."""
TAIL_BYTES = 4000


@dataclass
class Ended:
    """How a process ended and what it left to read."""

    exit_code: int | None
    """None when it had to be ended."""
    why: str
    """Why it had to be ended; empty when it ended by itself."""
    follower: Follower
    stopped: bool = False
    """Whether that was the run's wish, not the lack of time."""
    cases: dict[str, Case] = field(default_factory=dict)
    suite_problems: list[str] = field(default_factory=list)
    last_words: str = ""
    seconds: float = 0.0


async def run_process(
    binary: Binary,
    call: Invocation,
    log: Path,
    tell: Callable[[Seen], None],
    *,
    stopping: asyncio.Event,
    started: Callable[[str], object],
    environment: dict[str, str] | None = None,
    grace: float = GRACE_SECONDS,
    echo: Callable[[bytes], object] | None = None,
) -> Ended:
    """Run e2e.test until it ends, its deadline passes or ``stopping`` is set; it never outlives the call.

    ``started`` is told the run id of the process, which is on every namespace that it makes.
    """
    follower = Follower(call.texts, tell, started)
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        process = await asyncio.create_subprocess_exec(
            binary.path,
            *arguments(call, binary.version),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            cwd=call.report_dir,
            # A Ctrl-C at our terminal is ours to pass on: a second signal would cut its clean-up short.
            start_new_session=True,
        )
    except OSError as error:
        raise BinaryError(f"{binary.path} does not start: {error.strerror}") from None
    ended = Ended(None, "", follower)
    reader = asyncio.create_task(_follow(cast(asyncio.StreamReader, process.stdout), log, follower, echo))
    stop = asyncio.create_task(stopping.wait())
    over = asyncio.create_task(process.wait())
    try:
        # Ginkgo keeps its own time; ours is for a process that does not keep it.
        await asyncio.wait([over, stop], timeout=call.deadline + grace, return_when=asyncio.FIRST_COMPLETED)
        if over.done():
            ended.exit_code = over.result()
        else:
            ended.stopped = stop.done()
            ended.why = "the run was stopped" if ended.stopped else f"its {call.deadline:g} s were over"
    finally:
        stop.cancel()
        await _stop(process, reader, grace)
        await asyncio.gather(over, stop, return_exceptions=True)
    ended.seconds = loop.time() - began
    _read_reports(ended, call, log)
    return ended


async def _follow(
    output: asyncio.StreamReader, log: Path, follower: Follower, echo: Callable[[bytes], object] | None
) -> None:
    secrets = SecretFilter()
    with log.open("wb") as file:

        def take(clean: bytes) -> None:
            file.write(clean)
            file.flush()
            follower.feed(clean)
            if echo is not None:
                echo(clean)

        try:
            while chunk := await output.read(CHUNK):
                take(secrets.feed(chunk))
        finally:
            take(secrets.end())


async def _stop(process: asyncio.subprocess.Process, reader: asyncio.Task[None], grace: float) -> None:
    """SIGTERM, patience, SIGKILL; also when we are being cancelled ourselves."""
    if process.returncode is None:
        _signal(process, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await process.wait()
    if process.returncode is None:
        _signal(process, signal.SIGKILL)
        await process.wait()
    with contextlib.suppress(TimeoutError):
        # Grandchildren may hold the pipe open; what they say is no business of ours.
        async with asyncio.timeout(2):
            await asyncio.shield(reader)
    reader.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await reader


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _read_reports(ended: Ended, call: Invocation, log: Path) -> None:
    wanted = set(ended.follower.seen) | {" ".join(text.split()) for text in call.texts}
    for path in sorted(call.report_dir.glob("junit_*.xml")):
        try:
            _remove_secrets(path)
            for case in read_cases(path):
                if case.suite_node:
                    if case.status == "failed":
                        ended.suite_problems.append(f"{case.text}: {case.message or case.state}")
                elif case.text in wanted:
                    ended.cases[case.text] = quiet(case)
        except (JunitError, OSError) as error:
            ended.suite_problems.append(f"{path.name} cannot be read whole: {error}")
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(log.stat().st_size - TAIL_BYTES, 0))
        ended.last_words = file.read().decode("utf-8", errors="replace")


def _remove_secrets(path: Path) -> None:
    """Write a report of e2e.test again without what must not be in a run's folder."""
    secrets, clean = SecretFilter(markup=True), path.with_name(f".{path.name}")
    with path.open("rb") as source, clean.open("wb") as target:
        while chunk := source.read(CHUNK):
            target.write(secrets.feed(chunk))
        target.write(secrets.end())
    clean.replace(path)

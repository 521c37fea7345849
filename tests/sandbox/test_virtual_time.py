"""Time that only passes while everybody waits."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import re
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

import winready_sandbox as sandbox
from winready_sandbox import virtual_time
from winready_sandbox.clock import Clock, monotonic, utc_now
from winready_sandbox.virtual_time import TICK, VirtualTimeLoop

YEAR = 365 * 24 * 3600.0


def run(story: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(story)


def _work() -> None:
    time.sleep(0.005)


def test_waiting_takes_no_time_here_and_all_of_it_there() -> None:
    async def story() -> None:
        clock, before, began = Clock(), utc_now(), monotonic()
        order: list[str] = []

        async def after(seconds: float, name: str) -> None:
            await clock.sleep(seconds)
            order.append(name)

        await asyncio.gather(after(YEAR, "late"), after(60, "soon"))
        assert order == ["soon", "late"]
        assert monotonic() - began == clock.now() == YEAR
        assert abs((utc_now() - before).total_seconds() - YEAR) < 60

    run(story())


def test_time_begins_on_a_whole_second_whenever_that_is() -> None:
    async def story() -> None:
        assert monotonic() % 1 == 0
        assert utc_now().microsecond == 0
        await asyncio.sleep(0.25)
        assert utc_now().microsecond == 250_000

    run(story())


def test_work_takes_no_time_there_however_long_it_takes_here() -> None:
    async def story() -> None:
        async with asyncio.timeout(0.01):
            for _ in range(10):
                _work()
                await asyncio.sleep(0)

    run(story())


def test_a_deadline_is_never_early() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        for number in range(1, 2000):
            deadline = loop.time() + number / 7e5
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    await asyncio.Event().wait()
            assert deadline <= loop.time() < deadline + 2 * TICK

    run(story())


def test_what_is_set_first_comes_first() -> None:
    async def story() -> None:
        loop, order = asyncio.get_running_loop(), list[int]()
        for number in range(100):
            loop.call_later(0.1, order.append, number)
        await asyncio.sleep(1)
        assert order == list(range(100))

    run(story())


def test_whoever_never_waits_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual_time, "MOST_TURNS", 1000)

    async def story() -> None:
        while True:  # noqa: ASYNC110  that is the point
            await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="time stands still"):
        run(story())


def test_time_stands_still_while_a_thread_works() -> None:
    async def story() -> None:
        async with asyncio.timeout(0.001):
            await asyncio.to_thread(time.sleep, 0.05)

    run(story())


def test_what_is_under_way_through_a_socket_arrives_first() -> None:
    async def story() -> None:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.readline())
            writer.close()

        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        async with asyncio.timeout(0.5):
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"ping\n")
            assert await reader.read() == b"ping\n"
            writer.close()
        server.close()

    run(story())


def test_the_sandbox_takes_its_time_from_one_place() -> None:
    package = Path(sandbox.__file__).parent
    # The keeper is a process of its own, with real processes to wait for.
    own_clock = {"clock.py", "virtual_time.py", "state.py", "pki.py", "keeper.py"}
    wrong = re.compile(r"\btime\.(time|time_ns|monotonic)\b|\bdatetime\.(now|utcnow)\(")
    found = [
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if path.name not in own_clock and "real" not in path.parts and wrong.search(path.read_text())
    ]
    assert found == [], "use winready_sandbox/clock.py: proofs run in virtual time"


def test_no_test_hopes_that_something_has_happened_by_then() -> None:
    """Sleeping is for loops that look again, and for tests in virtual time."""
    tests = Path(__file__).parents[1]
    sleep = re.compile(r"await [\w.]*sleep\((?!0\))")
    found = [
        f"{path.relative_to(tests)}: {test.name}"
        for path in tests.rglob("test_*.py")
        if path != Path(__file__) and "faults" not in path.parts
        for test in ast.parse(path.read_text()).body
        if isinstance(test, ast.AsyncFunctionDef) and test.name.startswith("test_")
        if any(sleep.match(ast.unparse(statement)) for statement in test.body)
        if not any(ast.unparse(mark) == "pytest.mark.virtual_time" for mark in test.decorator_list)
    ]
    assert found == []

"""Loops that compute take time, however few of their rounds the host goes through."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from sandbox.helpers.containers import container
from winready_sandbox.programs.pacing import Pace


async def history(script: str, seconds: float) -> list[tuple[float, float]]:
    """When a process that runs a script wants how many cores."""
    loop = asyncio.get_running_loop()
    process = container().spawn(["powershell", "-Command", script])
    began, seen = loop.time(), [(0.0, process.cores)]
    while loop.time() < began + seconds:
        await asyncio.sleep(0.01)
        if process.cores != seen[-1][1]:
            seen.append((round(loop.time() - began, 2), process.cores))
    await process.kill()
    return seen


@pytest.mark.virtual_time
async def test_an_endless_loop_without_a_body_computes_as_one_with_a_body_does() -> None:
    empty, busy = await history("while ($true) {}", 20), await history("while ($true) { $x = 1 }", 20)
    assert empty == busy
    assert empty[-1][1] == 1


@pytest.mark.virtual_time
async def test_rounds_in_which_nothing_happens_take_as_long_as_any() -> None:
    async def slices(take: Callable[[Pace], Awaitable[None]]) -> list[float]:
        loop, pace, moments = asyncio.get_running_loop(), Pace(container().spawn(["cmd", "/c", "pause"])), [0.0]
        began = loop.time()
        while len(moments) < 12:
            await take(pace)
            if round(loop.time() - began, 3) != moments[-1]:
                moments.append(round(loop.time() - began, 3))
        return moments

    assert await slices(Pace.spin) == await slices(Pace.step)

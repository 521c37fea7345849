"""Turns that look at a whole cluster gather their news, in virtual time too."""

from __future__ import annotations

import asyncio

import pytest

from winready_sandbox.clock import Clock
from winready_sandbox.controllers.queue import MANY, WorkQueue
from winready_sandbox.virtual_time import VirtualTimeLoop


def turns(effort: int) -> list[float]:
    """When a key has its turns that is added a hundred times, a hundredth of a second apart."""

    async def story() -> list[float]:
        loop = asyncio.get_running_loop()
        began, seen = loop.time(), []
        queue: WorkQueue[str] = WorkQueue("a queue", Clock(1.0), lambda: effort)
        worker = asyncio.create_task(queue.run(lambda key: seen.append(loop.time() - began)))
        for _ in range(100):
            queue.add("key")
            await asyncio.sleep(0.01)
        await asyncio.sleep(1)
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
        return seen

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(story())


@pytest.mark.parametrize("effort", [0, 3, MANY])
def test_what_looks_at_little_has_a_turn_for_each_change(effort: int) -> None:
    assert len(turns(effort)) == 100


def test_what_looks_at_a_thousand_objects_gathers_changes_and_misses_none() -> None:
    seen = turns(1000)
    assert len(seen) < 10
    # The last change came at 0.99 s.
    assert seen[-1] > 0.98

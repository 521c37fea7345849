"""Requirements verified by upstream tests: each gets its result as soon as all of its tests have ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from winready.checks.world import World
from winready.cluster.errors import ClusterError
from winready.engine.checking import unjudged
from winready.engine.outcomes import RequirementResult
from winready.engine.plan import Planned
from winready.engine.with_upstream.judge import judge_upstream
from winready.engine.with_upstream.prepare import Prepared
from winready.engine.with_upstream.run import run_upstream
from winready.upstream.binary import BinaryError
from winready.upstream.shards import Selected
from winready.upstream.suite import Result


async def verify_upstream(
    items: Sequence[Planned],
    prepared: Prepared,
    world: World,
    stopping: asyncio.Event,
    progress: Callable[[Selected, str, int, int], None],
    finish: Callable[[Planned, RequirementResult], None],
) -> None:
    """Run the tests of these requirements. ``progress`` hears of each test, with how many of all have ended."""
    names = list(dict.fromkeys(name for item in items for name in item.upstream))
    done: set[str] = set()
    waiting = list(items)
    results: dict[str, Result] = {}

    def tell(spec: Selected, state: str) -> None:
        if state != "started":
            done.add(spec.name)
        progress(spec, state, len(done), len(names))

    def finished(some: dict[str, Result]) -> None:
        results.update(some)
        for item in [each for each in waiting if results.keys() >= set(each.upstream)]:
            waiting.remove(item)
            finish(item, judge_upstream(item, prepared, results))

    try:
        await run_upstream(prepared, names, world, stopping, tell, finished)
    except (ClusterError, BinaryError) as error:
        for item in waiting:
            finish(item, unjudged(item, "error", error.message, error.remedy))

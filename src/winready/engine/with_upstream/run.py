"""Carrying out the upstream part of a run: steer, run, call witnesses, and leave nothing behind."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from winready.checks.world import World
from winready.cluster import steering
from winready.cluster.errors import ClusterError
from winready.cluster.namespaces import Namespace
from winready.engine.with_upstream.prepare import Prepared
from winready.upstream.shards import Selected, at_once
from winready.upstream.suite import Order, Result, Suite
from winready.upstream.witness import Sort, call_witnesses, unproven, vouched, vouchers

STEER_SECONDS = 60.0
REMOVE_TRIES = 5


async def run_upstream(
    prepared: Prepared,
    names: Iterable[str],
    world: World,
    stopping: asyncio.Event,
    tell: Callable[[Selected, str], None],
    finished: Callable[[dict[str, Result]], None],
) -> None:
    """Run these tests of the mapping; ``finished`` gets their results, every test's once, stage by stage."""
    specs = prepared.selected(names)
    order = Order(
        binary=prepared.binary,
        specs=tuple(specs),
        folder=prepared.options.folder,
        provider=prepared.options.provider,
        parallel=prepared.options.parallel or at_once(sum(node.windows for node in world.nodes.values())),
        echo=prepared.options.echo,
        non_blocking_taints=(steering.TAINT,) if prepared.steering == "taint" else (),
    )
    suite = Suite(world.client, world.settings, world.nodes, order, stopping, tell)
    builds: dict[Sort, str] = {}

    async def prove(results: dict[str, Result]) -> None:
        builds.update(vouchers(results.values()))
        if not stopping.is_set() and (needed := unproven(results.values(), builds)):
            builds.update(await _witnessed(world, needed))
        finished({name: vouched(result, builds) for name, result in results.items()})

    async with _steered(prepared, [spec.name for spec in specs], world):
        try:
            await suite.run(prove)
        finally:
            world.impostors += suite.impostors


async def _witnessed(world: World, needed: Sequence[Sort]) -> dict[Sort, str]:
    """What witnesses vouch for, in a namespace that is gone again when the next tests begin."""
    # Not one of the run's own namespaces: its pods vouch for images of others.
    name = f"winready-{world.settings.run_id}-witness-{secrets.token_hex(2)}"
    async with Namespace.open(world.client, world.settings, name, world.nodes) as namespace:
        builds = await call_witnesses(namespace, needed)
    world.impostors += namespace.impostors.values()
    return builds


@asynccontextmanager
async def _steered(prepared: Prepared, names: list[str], world: World) -> AsyncIterator[None]:
    """Send pods without an OS selector to Windows for the time of the block, if any test needs that."""
    if not prepared.needs_steering(names):
        yield
        return
    client, run_id = world.client, world.settings.run_id
    if prepared.steering == "taint":
        try:
            await steering.taint_linux(client, run_id)
            yield
        finally:
            await _surely(lambda: steering.remove_taints(client, run_id))
        return
    if prepared.steering == "webhook":
        await _in_effect(world, "webhook", "see whether 'winready steer serve' still runs, or use --steer-by-taint")
        yield
        return
    name = f"winready-{run_id}-steer"
    version = prepared.policy_version
    try:
        await steering.apply_policy(client, version, name, world.settings.labels(), [])
        look = f"'kubectl get mutatingadmissionpolicy {name} -o yaml' shows it; or use --steer-by-taint"
        await _in_effect(world, "policy", look)
        yield
    finally:
        await _surely(lambda: steering.delete_policy(client, version, name))


async def _in_effect(world: World, means: str, remedy: str) -> None:
    """Do not begin before pods are steered."""
    namespace = await steering.probe_namespace(world.client, world.settings)
    if reason := await steering.wait_until_steered(world.client, namespace, seconds=STEER_SECONDS):
        raise ClusterError(f"the {means} that sends pods to Windows nodes does not take effect: {reason}", remedy)


async def _surely(undo: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Undo, several times if need be; the run's clean-up looks again in any case."""
    for attempt in range(REMOVE_TRIES):
        try:
            await undo()
        except ClusterError:
            await asyncio.sleep(0.2 * 2**attempt)
        else:
            return

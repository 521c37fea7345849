"""Carrying out the upstream part of a run: steer, run, call witnesses, and leave nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any

from winready.checks.world import World
from winready.cluster import steering
from winready.cluster.errors import ClusterError
from winready.cluster.namespaces import Namespace
from winready.engine.upstream import Prepared
from winready.upstream.shards import Selected
from winready.upstream.suite import Order, Result, Suite
from winready.upstream.witness import call_witnesses, unproven, vouched, vouchers

STEER_SECONDS = 60.0
REMOVE_TRIES = 5


async def run_upstream(
    prepared: Prepared,
    names: Iterable[str],
    world: World,
    stopping: asyncio.Event,
    tell: Callable[[Selected, str], None],
) -> dict[str, Result]:
    """Run these tests of the mapping; every one has a result afterwards, its Windows pods proven where possible."""
    specs = prepared.selected(names)
    order = Order(
        binary=prepared.binary,
        specs=tuple(specs),
        folder=prepared.options.folder,
        provider=prepared.options.provider,
        parallel=prepared.options.parallel,
        echo=prepared.options.echo,
        non_blocking_taints=(steering.TAINT,) if prepared.steering == "taint" else (),
    )
    suite = Suite(world.client, world.settings, world.nodes, order, stopping, tell)
    async with _steered(prepared, [spec.name for spec in specs], world):
        results = await suite.run()
    world.impostors += suite.impostors
    if not stopping.is_set() and (needed := unproven(results.values())):
        # Not one of the run's own namespaces: its pods vouch for images of others.
        name = f"winready-{world.settings.run_id}-witness"
        async with Namespace.open(world.client, world.settings, name, world.nodes) as namespace:
            builds = await call_witnesses(namespace, needed)
        world.impostors += namespace.impostors.values()
    else:
        builds = {}
    builds |= vouchers(results.values())
    return {name: vouched(result, builds) for name, result in results.items()}


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
    name = f"winready-{run_id}-steer"
    version = prepared.policy_version
    try:
        await steering.apply_policy(client, version, name, world.settings.labels(), [])
        namespace = await steering.probe_namespace(client, world.settings)
        if reason := await steering.wait_until_steered(client, namespace, seconds=STEER_SECONDS):
            raise ClusterError(
                f"the policy that sends pods to Windows nodes does not take effect: {reason}",
                f"'kubectl get mutatingadmissionpolicy {name} -o yaml' shows it; or use --steer-by-taint",
            )
        yield
    finally:
        await _surely(lambda: steering.delete_policy(client, version, name))


async def _surely(undo: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Undo, several times if need be; the run's clean-up looks again in any case."""
    for attempt in range(REMOVE_TRIES):
        try:
            await undo()
        except ClusterError:
            await asyncio.sleep(0.2 * 2**attempt)
        else:
            return

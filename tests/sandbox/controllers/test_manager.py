"""The ground that controllers stand on: caches survive lost history, queues retry, deaths are noticed."""

from __future__ import annotations

import asyncio

import pytest

from sandbox.controllers.cluster import Cluster, deployment, running
from winready_sandbox.api.errors import conflict, gone
from winready_sandbox.clock import Clock
from winready_sandbox.controllers.controller import Controller
from winready_sandbox.controllers.manager import Manager
from winready_sandbox.controllers.objects import Key
from winready_sandbox.controllers.queue import WorkQueue


class Broken(Controller):
    """A controller with a defect."""

    name = "broken-controller"
    resource = "configmaps"

    def watch(self) -> None:
        self.informers.of("configmaps").add_handler(self.enqueue)

    def sync(self, key: Key) -> None:
        raise ZeroDivisionError(key[1])


async def test_a_controller_that_dies_ends_the_manager_with_its_error() -> None:
    cluster = Cluster()
    manager = asyncio.create_task(Manager(cluster.context, (Broken,)).run())
    await asyncio.sleep(0)
    cluster.client.create("configmaps", {"metadata": {"name": "trap"}}, "default")
    with pytest.raises(ExceptionGroup) as caught:
        await asyncio.wait_for(manager, 60)
    assert [str(error) for error in caught.value.exceptions] == ["trap"]


async def test_controllers_survive_the_loss_of_history() -> None:
    async with running(Cluster(), kubelets=False) as cluster:
        cluster.node("one")
        cluster.client.create("deployments", deployment(), "default")
        await cluster.until(lambda: len(cluster.pods()) == 3)
        cluster.registry.store.expire_history()
        for watch in cluster.registry.store.pods.watches():
            watch.fail(gone())
        for pod in cluster.pods():
            cluster.client.delete("pods", pod["metadata"]["name"], "default", grace=0)
        await cluster.until(lambda: len(cluster.pods()) == 3)


async def test_a_key_waits_once_and_failures_come_back() -> None:
    queue: WorkQueue[str] = WorkQueue("test", Clock(100))
    seen: list[str] = []
    done = asyncio.Event()

    def sync(key: str) -> None:
        seen.append(key)
        if seen.count("b") == 3:
            done.set()
        if key == "b" and seen.count("b") < 3:
            raise conflict("pods", "", "b")

    for key in ("a", "b", "a", "a"):
        queue.add(key)
    worker = asyncio.create_task(queue.run(sync))
    await asyncio.wait_for(done.wait(), 60)
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)
    assert seen == ["a", "b", "b", "b"]


async def test_news_of_a_costly_key_gather_while_it_rests() -> None:
    queue: WorkQueue[str] = WorkQueue("test", Clock(100))
    turns: list[str] = []

    def sync(key: str) -> None:
        turns.append(key)
        if key == "large":
            sum(range(300_000))
            queue.add("large")

    queue.add("large")
    worker = asyncio.create_task(queue.run(sync))
    for number in range(50):
        queue.add(f"small-{number}")
        await asyncio.sleep(0)
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)
    assert turns.count("large") == 1
    assert len(turns) >= 50

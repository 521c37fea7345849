"""Answers while the place for facts takes its time, and while several ask: one run, and nobody waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from winready.cluster.client import Client
from winready.cluster.kubeconfig import Target
from winready.deploy.capi import hooks
from winready.deploy.capi.facts import Book
from winready.deploy.capi.gate import Gate
from winready.deploy.capi.hooks import Call, Named
from winready.deploy.capi.running import Runner
from winready.deploy.capi.terms import Terms
from winready.store.addresses import parse
from winready.store.folder import FolderObjects

TERMS = Terms(policy="require-pass", nodes_wait=0.01)
CALL = Call(hooks.UPGRADE, Named("fleet", "one", "u"), step="upgrade_v1.34.0_v1.35.0")


class Slow(FolderObjects):
    """A folder on a share that answers when it likes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(parse(str(folder)))
        self.go_on = threading.Event()
        self.asked = 0

    def create(self, key: str, data: bytes) -> str:
        self.asked += key.endswith("-asked.json")
        self.go_on.wait(60)
        return super().create(key, data)


@pytest.fixture
async def slow(tmp_path: Path) -> AsyncIterator[tuple[Gate, Slow]]:
    """A gate whose management cluster is away, too."""
    objects = Slow(tmp_path)
    said: list[str] = []
    async with Client.connect(Target(server="https://127.0.0.1:1")) as client:
        book = Book(objects)
        runner = Runner(book, TERMS, client, str(tmp_path / "runs"), (), said.append)
        yield Gate(book, runner, TERMS), objects
        objects.go_on.set()
        await runner.close(30)


async def test_a_slow_place_for_facts_makes_nobody_wait(slow: tuple[Gate, Slow]) -> None:
    gate, objects = slow
    answers = await asyncio.gather(*(gate.answer(CALL) for _ in range(10)))
    assert all(answer.retry > 0 for answer in answers)
    assert (await gate.answer(CALL)).message.startswith("winready: a run of cluster fleet/one is being asked for")
    created = await gate.answer(Call(hooks.CREATED, CALL.cluster, step="created"))
    assert "is queued" in created.message
    assert (await gate.answer(Call(hooks.DELETE, Named("fleet", "two", "v")))).retry == 0
    assert objects.asked == 2
    objects.go_on.set()
    for _ in range(3000):
        if "was not judged" in (await gate.answer(CALL)).message:
            break
        await asyncio.sleep(0.02)
    assert "the run could not begin" in (await gate.answer(CALL)).message
    assert len(gate.book.attempts(CALL.cluster, CALL.step)) == 1

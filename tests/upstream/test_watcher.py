"""Namespaces of e2e.test become namespaces of the run, whatever becomes of their process."""

from __future__ import annotations

import asyncio

from winready.cluster.cleanup import clean_up
from winready.cluster.client import Client
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import NAMESPACES
from winready.cluster.settings import RUN_LABEL, Settings
from winready.cluster.timing import Timing
from winready.upstream.watcher import Watcher


async def test_a_namespace_that_was_overlooked_is_marked_at_the_end(kubeconfig: str) -> None:
    asked = asyncio.Event()
    known: set[str] = set()

    def ours(run: str) -> bool:
        if run == "late":
            asked.set()
        return run in known

    async with Client.connect(find_target(kubeconfig)) as client:
        async with Watcher(client, Settings(run_id="w1", timing=Timing(1)), {}, ours):
            for name, labels in (("e2e-ours", {}), ("e2e-others", {RUN_LABEL: "w2"})):
                labels = {"e2e-run": "late", **labels}
                await client.create(NAMESPACES, {"metadata": {"name": name, "labels": labels}})
            async with asyncio.timeout(60):
                await asked.wait()
            known.add("late")
        marked = await client.list(NAMESPACES, labels=f"{RUN_LABEL}=w1")
        assert [item["metadata"]["name"] for item in marked] == ["e2e-ours"]
        for run in ("w1", "w2"):
            assert await clean_up(client, run_id=run, patience=60, pause=0.05) == []

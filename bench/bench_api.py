"""What one more pod costs in a big sandbox compared with a small one, and what the big one takes in memory.

Both clusters run one after the other in this process, virtual kubelets and controllers included. The cost of a pod is
the process's CPU time from its create over HTTPS until a watcher has seen it bound to a node.
"""

from __future__ import annotations

import asyncio
import json
import resource
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from winready_sandbox.api.identity import MASTERS, User
from winready_sandbox.plan import Plan
from winready_sandbox.state import Place
from winready_sandbox.up import Sandbox

PODS = 3000
SAMPLES = 60
PAUSE = 0.1
"""Seconds between two pods, for the node to take the last one: what it does with a pod is not what is measured."""
MOST_RATIO = 3.0
MOST_MEGABYTES = 1024
PATH = "/api/v1/namespaces/default/pods"


def pod(name: str) -> dict[str, Any]:
    """A small pod that any node may run."""
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": "1m"}}}
    tolerations = [{"operator": "Exists"}]
    spec = {"containers": [container], "tolerations": tolerations, "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@asynccontextmanager
async def cluster(linux: int, windows: int) -> AsyncIterator[aiohttp.ClientSession]:
    """A running sandbox and a session of its administrator."""
    with tempfile.TemporaryDirectory() as folder:
        place = Place("bench", Path(folder))
        async with Sandbox(Plan(linux=linux, windows=windows), place) as sandbox, administrator(sandbox) as session:
            yield session


@asynccontextmanager
async def administrator(sandbox: Sandbox) -> AsyncIterator[aiohttp.ClientSession]:
    """An HTTPS session with all rights."""
    plane = sandbox.embedded
    tls = ssl.create_default_context(cadata=sandbox.authority.certificate.decode())
    headers = {"Authorization": f"Bearer {plane.token(User('bench', (MASTERS,)))}"}
    connector = aiohttp.TCPConnector(ssl=tls)
    async with aiohttp.ClientSession(plane.url, headers=headers, connector=connector) as session:
        yield session


class Watcher:
    """Sees pods as a client does."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._bound: dict[str, asyncio.Event] = {}
        self.count = 0

    def bound(self, name: str) -> asyncio.Event:
        """Set as soon as the pod of that name was seen on a node."""
        return self._bound.setdefault(name, asyncio.Event())

    async def run(self) -> None:
        """Watch until cancelled."""
        async with self._session.get(PATH, params={"watch": "true"}) as response:
            async for line in response.content:
                obj = json.loads(line)["object"]
                event = self.bound(obj["metadata"]["name"])
                if obj["spec"].get("nodeName") and not event.is_set():
                    event.set()
                    self.count += 1


async def create(session: aiohttp.ClientSession, name: str) -> None:
    """Create one pod."""
    async with session.post(PATH, json=pod(name)) as response:
        if response.status != 201:
            raise RuntimeError(await response.text())


async def cost(session: aiohttp.ClientSession, watcher: Watcher, prefix: str) -> float:
    """Median CPU milliseconds from create until seen bound."""
    samples = []
    for number in range(SAMPLES):
        name = f"{prefix}-{number}"
        start = time.process_time()
        await create(session, name)
        await watcher.bound(name).wait()
        samples.append((time.process_time() - start) * 1000)
        await asyncio.sleep(PAUSE)
    return statistics.median(samples)


async def measure(linux: int, windows: int, fill: int) -> float:
    """The cost of one more pod in a cluster of that size, already holding that many pods."""
    async with cluster(linux, windows) as session:
        watcher = Watcher(session)
        watching = asyncio.create_task(watcher.run())
        gate = asyncio.Semaphore(16)

        async def one(number: int) -> None:
            async with gate:
                await create(session, f"fill-{number}")

        await asyncio.gather(*(one(number) for number in range(fill)))
        for number in range(fill):
            await watcher.bound(f"fill-{number}").wait()
        await settle()
        milliseconds = await cost(session, watcher, "one-more")
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        return milliseconds


async def settle() -> None:
    """Wait until the nodes have started what they were given: the process is idle most of a second."""
    while True:
        before = time.process_time()
        await asyncio.sleep(0.5)
        if time.process_time() - before < 0.2:
            return


async def main() -> int:
    """Print both figures; not to keep to them is a failure."""
    small = await measure(2, 2, 0)
    big = await measure(50, 50, PODS)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    ratio = big / small
    print(f"api: one more pod costs {small:.1f} ms CPU with 4 nodes, {big:.1f} ms with 100 nodes and {PODS} pods")
    print(f"api: ratio {ratio:.1f} (at most {MOST_RATIO:g}), {megabytes:.0f} MB (at most {MOST_MEGABYTES})")
    return 0 if ratio <= MOST_RATIO and megabytes <= MOST_MEGABYTES else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))

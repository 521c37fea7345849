"""What faults of limits look like: in a second container, on a busy node, after a while, after a restart."""

from __future__ import annotations

import asyncio

from sandbox.faults.bench import IMAGE, NAMESPACE, Bench, Object
from sandbox.faults.case import Case
from winready.cluster.resources import PODS

BURN = {"command": ["powershell.exe", "-NoProfile", "-Command", "while($true){}"], "args": []}
GROW = "$n=0; try { while ($n -lt 64) { $keep += ,(New-Object byte[] 8MB); $n++ } } catch { 'refused' }; $n"
WHILE = 140.0
"""Cluster seconds after which faults that begin later have begun."""


def _limits(**limits: str) -> Object:
    return {"resources": {"limits": limits, "requests": {"cpu": "50m", "memory": "50Mi"}}}


async def _cores(
    b: Bench, node: str, *, limit: str = "", later: float = 0.0, container: str = "c", twice: bool = False
) -> float:
    """The cores that a busy loop in a container gets, or two of them."""
    options: Object = {"container": {**BURN, **_limits(**({"cpu": limit} if limit else {}))}}
    if container != "c":
        options = {"more": [{"name": container, "image": IMAGE, **options["container"]}]}
    async with b.pod(node, **options) as made:
        name = made["metadata"]["name"]

        async def used() -> float:
            pods = (await b.client.node_proxy(node, "stats/summary", key="pods"))["pods"]
            [own] = [each for each in pods if each["podRef"]["name"] == name]
            return float(next(c["cpu"]["usageCoreNanoSeconds"] for c in own["containers"] if c["name"] == container))

        more = asyncio.create_task(b.run(name, *BURN["command"], container=container)) if twice else None
        await b.sandbox.clock.sleep(later + 5)
        before = await used()
        await b.sandbox.clock.sleep(30)
        cores = (await used() - before) / 30e9
        if more is not None:
            more.cancel()
        return cores


def _word(cores: float) -> str:
    return "less" if cores < 0.4 else "half a core" if cores < 0.65 else "more"


async def unlimited(b: Bench, node: str) -> str:
    """What a busy loop gets without a limit."""
    return _word(await _cores(b, node))


async def limited(b: Bench, node: str) -> str:
    """What a busy loop gets with a limit of half a core."""
    return _word(await _cores(b, node, limit="500m"))


async def limited_later(b: Bench, node: str) -> str:
    """The same after minutes."""
    return _word(await _cores(b, node, limit="500m", later=WHILE))


async def two_limited(b: Bench, node: str) -> str:
    """What two busy loops get together in a container with a limit of half a core."""
    return _word(await _cores(b, node, limit="500m", twice=True))


async def second_limited(b: Bench, node: str) -> str:
    """The same in a pod's second container."""
    return _word(await _cores(b, node, limit="500m", container="d"))


async def _grown(b: Bench, pod: str, container: str = "c") -> str:
    _, text = await b.run(pod, "powershell.exe", "-NoProfile", "-Command", GROW, container=container)
    return "less" if "refused" in text else "everything" if text == "64" else text


async def grown_later(b: Bench, node: str) -> str:
    """What a script gets that wants 512 MB with a limit of 384, minutes after the start of its container."""
    async with b.pod(node, container=_limits(memory="384Mi")) as made:
        await b.sandbox.clock.sleep(WHILE)
        return await _grown(b, made["metadata"]["name"])


async def second_grown(b: Bench, node: str) -> str:
    """The same in a pod's second container."""
    more = [{"name": "d", "image": IMAGE, "args": ["pause"], **_limits(memory="384Mi")}]
    async with b.pod(node, more=more) as made:
        return await _grown(b, made["metadata"]["name"], "d")


async def grown_again(b: Bench, node: str) -> str:
    """The same in a container that was started again."""
    async with b.pod(node, container=_limits(memory="384Mi")) as made:
        name = made["metadata"]["name"]
        await b.run(name, "curl.exe", "-s", "http://127.0.0.1:8080/exit?code=1")

        async def again() -> bool:
            pod = await b.client.get(PODS, name, NAMESPACE)
            [status] = pod["status"]["containerStatuses"]
            return status["restartCount"] == 1 and "running" in status["state"]

        assert await b.until(again)
        return await _grown(b, name)


LIMIT_CASES = [
    Case("machine.windows.busy", unlimited, "more", "half a core"),
    Case("machine.windows.cpu-limit-is-weight", limited, "half a core", "less"),
    Case("machine.windows.cpu-limit-lost-later", limited_later, "half a core", "more"),
    Case("machine.windows.cpu-limit-per-process", two_limited, "half a core", "more"),
    Case("machine.windows.cpu-limit-first-container", second_limited, "half a core", "more"),
    Case("machine.windows.memory-limit-lost-later", grown_later, "less", "everything"),
    Case("machine.windows.memory-limit-first-container", second_grown, "less", "everything"),
    Case("machine.windows.limits-lost-on-restart", grown_again, "less", "everything"),
]

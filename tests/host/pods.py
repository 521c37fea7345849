"""Making pods on the host node and looking at what becomes of them."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from winready.cluster.client import Client
from winready.cluster.execution import Execution
from winready.cluster.resources import EVENTS, NAMESPACES, PODS

Object = dict[str, Any]
HOST = "sandbox.winready.io/host"
IMAGE = "busybox:1"
PATIENCE = 150


def pod(name: str, *command: str, container: Object | None = None, **spec: Any) -> Object:
    """A pod that wants to be on the host node."""
    first: Object = {"name": "main", "image": IMAGE, "command": list(command), **(container or {})}
    where = {"nodeSelector": {HOST: "true"}, "tolerations": [{"key": HOST, "operator": "Exists"}]}
    defaults = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 30, "containers": [first]}
    return {"metadata": {"name": name}, "spec": {**where, **defaults, **spec}}


async def becomes(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(PATIENCE):
        while not await condition():  # noqa: ASYNC110  it is far away
            await asyncio.sleep(0.05)


class Pods:
    """The pods of one namespace."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    @classmethod
    async def make(cls, client: Client) -> Pods:
        """With a namespace of its own."""
        name = f"t-{uuid.uuid4().hex[:8]}"
        await client.create(NAMESPACES, {"metadata": {"name": name}})
        return cls(client, name)

    async def clean(self) -> None:
        """Remove it with all that is in it."""
        await self.client.delete(NAMESPACES, self.namespace)

    async def create(self, obj: Object) -> Object:
        """Create a pod."""
        return await self.client.create(PODS, {**obj, "metadata": {**obj["metadata"], "namespace": self.namespace}})

    async def until(self, name: str, wanted: Callable[[Object], bool]) -> Object:
        """The pod, once its status is as wanted."""
        found: Object = {}
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    found = await self.client.get(PODS, name, self.namespace)
                    if wanted(found.get("status") or {}):
                        return found
                    await asyncio.sleep(0.05)
        except TimeoutError:
            events = [f"{each['reason']}: {each['message']}" for each in await self.client.list(EVENTS, self.namespace)]
            raise AssertionError(f"{found.get('status')}\n" + "\n".join(events)) from None

    async def phase(self, name: str, *phases: str) -> Object:
        """The pod, once it is in one of these phases."""
        return await self.until(name, lambda status: status.get("phase") in phases)

    async def run(self, obj: Object) -> tuple[int, str]:
        """Create a pod and wait for its end: its exit code and what it wrote."""
        await self.create(obj)
        name = obj["metadata"]["name"]
        ended = await self.phase(name, "Succeeded", "Failed")
        code = int(ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"])
        return code, await self.client.logs(self.namespace, name, "main")

    async def exec(self, name: str, *command: str, stdin: bytes | None = None) -> Execution:
        """Run a command in a pod."""
        return await self.client.exec(self.namespace, name, "main", list(command), deadline=PATIENCE, stdin=stdin)

    async def gone(self, name: str) -> None:
        """Wait until a pod is gone."""

        async def away() -> bool:
            return await self.client.find(PODS, name, self.namespace) is None

        await becomes(away)

    async def events(self) -> list[str]:
        """What was told about the pods."""
        return [f"{each['reason']}: {each['message']}" for each in await self.client.list(EVENTS, self.namespace)]

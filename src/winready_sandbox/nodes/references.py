"""What pods refer to: services, config maps and secrets, watched once for all nodes of a sandbox.

A real kubelet watches each object that its pods name. A hundred simulated kubelets in one process would hold
the same objects a hundred times, so they share one watch per namespace; each still acts in its own time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any

from winready_sandbox.apiclient import ApiClient

Object = dict[str, Any]


class _Watched:
    """The objects of one resource in one namespace, kept up to date."""

    def __init__(self, client: ApiClient, resource: str, namespace: str) -> None:
        self.objects: dict[tuple[str, str], Object] = {}
        self.synced = asyncio.Event()
        self._watch = client.watch(resource, namespace)
        self._kind = {"configmaps": "ConfigMap", "secrets": "Secret"}.get(resource, "")
        self.task = asyncio.create_task(self._run(), name=f"watch {resource} {namespace}".strip())

    async def _run(self) -> None:
        async for change in self._watch:
            if change.type == "SYNCED":
                self.synced.set()
                continue
            metadata = change.object["metadata"]
            key = (metadata["namespace"], metadata["name"])
            if change.type == "DELETED":
                self.objects.pop(key, None)
            else:
                self.objects[key] = {**change.object, "kind": self._kind} if self._kind else change.object


class References:
    """Looks up what pods refer to."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._watched: dict[tuple[str, str], _Watched] = {}

    def _of(self, resource: str, namespace: str = "") -> _Watched:
        key = (resource, namespace)
        if key not in self._watched:
            self._watched[key] = _Watched(self._client, resource, namespace)
        return self._watched[key]

    async def services(self) -> Iterable[Object]:
        """All services of the cluster."""
        watched = self._of("services")
        await watched.synced.wait()
        return watched.objects.values()

    async def prepare(self, namespace: str) -> None:
        """Make sure that `find` knows the config maps and secrets of a namespace."""
        for resource in ("configmaps", "secrets"):
            await self._of(resource, namespace).synced.wait()

    def find(self, resource: str, name: str, namespace: str) -> Object | None:
        """A config map or secret of a prepared namespace."""
        return self._of(resource, namespace).objects.get((namespace, name))

    async def close(self) -> None:
        """Stop watching."""
        for watched in self._watched.values():
            watched.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watched.task
        self._watched.clear()

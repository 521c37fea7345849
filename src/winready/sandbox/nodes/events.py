"""Events about pods and nodes, folded as the kubelet folds them: the same words again raise a count."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from typing import Any, Literal

from winready.sandbox.apiclient import ApiClient, ApiFailure, ApiUnreachable
from winready.sandbox.nodes.times import stamp

Object = dict[str, Any]
_REMEMBERED = 512


class Recorder:
    """Writes the events of one node, in order and without holding up the work they tell about."""

    def __init__(self, client: ApiClient, node: str) -> None:
        self._client = client
        self._node = node
        self._queue: asyncio.Queue[tuple[tuple[str, ...], Object]] = asyncio.Queue()
        self._known: dict[tuple[str, ...], Object] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to write."""
        if self._task is None:
            self._task = asyncio.create_task(self._write(), name=f"events {self._node}")

    async def stop(self) -> None:
        """Stop; what is not written yet is lost, as when a node dies."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    def pod(
        self, pod: Object, reason: str, message: str, *, type: Literal["Normal", "Warning"] = "Normal", field: str = ""
    ) -> None:
        """An event about a pod, or about the container that ``field`` names."""
        metadata = pod["metadata"]
        about: Object = {
            "kind": "Pod",
            "apiVersion": "v1",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
            "resourceVersion": metadata.get("resourceVersion", ""),
        }
        if field:
            about["fieldPath"] = field
        self._add(about, metadata["namespace"], reason, message, type)

    def node(self, reason: str, message: str, *, type: Literal["Normal", "Warning"] = "Normal") -> None:
        """An event about the node itself."""
        about = {"kind": "Node", "name": self._node, "uid": self._node}
        self._add(about, "default", reason, message, type)

    def _add(self, about: Object, namespace: str, reason: str, message: str, type: str) -> None:
        key = (about["uid"], about.get("fieldPath", ""), reason, message, type)
        now = stamp()
        known = self._known.get(key)
        if known is not None:
            known["count"] += 1
            known["lastTimestamp"] = now
            self._queue.put_nowait((key, known))
            return
        event: Object = {
            "metadata": {"name": f"{about['name']}.{uuid.uuid4().hex[:16]}", "namespace": namespace},
            "involvedObject": about,
            "reason": reason,
            "message": message,
            "type": type,
            "source": {"component": "kubelet", "host": self._node},
            "reportingComponent": "kubelet",
            "reportingInstance": self._node,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "eventTime": None,
            "count": 1,
        }
        if len(self._known) >= _REMEMBERED:
            self._known.pop(next(iter(self._known)))
        self._known[key] = event
        self._queue.put_nowait((key, event))

    async def _write(self) -> None:
        written: set[str] = set()
        while True:
            key, event = await self._queue.get()
            name, namespace = event["metadata"]["name"], event["metadata"]["namespace"]
            try:
                if name in written:
                    counted = {"count": event["count"], "lastTimestamp": event["lastTimestamp"]}
                    await self._client.patch("events", name, counted, namespace)
                else:
                    await self._client.create("events", dict(event), namespace)
                    written.add(name)
            except (ApiFailure, ApiUnreachable):
                # Events are best effort on real nodes as well: a refused one (its namespace may be gone) is dropped.
                self._known.pop(key, None)
            if len(written) > _REMEMBERED * 2:
                written = {known["metadata"]["name"] for known in self._known.values()} & written

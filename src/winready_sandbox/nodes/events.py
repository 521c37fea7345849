"""Events about pods and nodes, folded as the kubelet folds them: the same words again raise a count."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Literal

from winready_sandbox.apiclient import ApiClient, ApiFailure, ApiUnreachable
from winready_sandbox.chance import unique_hex
from winready_sandbox.clock import Clock
from winready_sandbox.nodes.times import stamp

Object = dict[str, Any]
_REMEMBERED = 512
_BURST = 25
_REFILL = 300.0
"""As the real recorder: 25 events about one object at once, then one in five minutes."""


class Recorder:
    """Writes the events of one node, in order and without holding up the work they tell about."""

    def __init__(self, client: ApiClient, node: str, clock: Clock) -> None:
        self._client = client
        self._node = node
        self._clock = clock
        self._pending: set[tuple[str, ...]] = set()
        self._budgets: dict[str, tuple[float, float]] = {}
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
            if key not in self._pending and self._affordable(about["uid"]):
                self._pending.add(key)
                self._queue.put_nowait((key, known))
            return
        if not self._affordable(about["uid"]):
            return
        event: Object = {
            "metadata": {"name": f"{about['name']}.{unique_hex(16)}", "namespace": namespace},
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
        self._pending.add(key)
        self._queue.put_nowait((key, event))

    def _affordable(self, uid: str) -> bool:
        """Whether one more event about this object may be written; a flapping probe must not drown the others."""
        now = self._clock.now()
        left, since = self._budgets.get(uid, (float(_BURST), now))
        left = min(left + (now - since) / _REFILL, float(_BURST))
        if len(self._budgets) >= _REMEMBERED:
            self._budgets.pop(next(iter(self._budgets)))
        self._budgets[uid] = (max(left - 1, 0.0) if left >= 1 else left, now)
        return left >= 1

    async def _write(self) -> None:
        written: set[str] = set()
        while True:
            key, event = await self._queue.get()
            self._pending.discard(key)
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

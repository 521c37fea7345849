"""Events as the real components write them: the same news about the same object is counted, not repeated."""

from __future__ import annotations

import random
from collections import OrderedDict
from typing import TYPE_CHECKING

from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.objects import Object, timestamp
from winready_sandbox.controllers.objects import uid_of

if TYPE_CHECKING:
    from winready_sandbox.api.client import LocalClient

REMEMBERED = 4096


class Recorder:
    """Writes the events of one component."""

    def __init__(self, client: LocalClient, component: str) -> None:
        self.client = client
        self.component = component
        self._seen: OrderedDict[tuple[str, str, str], tuple[str, str, int]] = OrderedDict()

    def event(
        self, kind: str, api_version: str, obj: Object, reason: str, message: str, *, warning: bool = False
    ) -> None:
        """Tell of something that happened to an object; that its namespace goes away meanwhile is no error."""
        meta = obj["metadata"]
        namespace = meta.get("namespace") or "default"
        identity = (uid_of(obj) or meta["name"], reason, message)
        known = self._seen.get(identity)
        try:
            if known is not None and self._count(identity, known):
                return
            created = self.client.create(
                "events", self._fresh(kind, api_version, obj, reason, message, warning), namespace
            )
        except ApiError as error:
            if error.code in (403, 404):
                return
            raise
        self._seen[identity] = (namespace, created["metadata"]["name"], 1)
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)

    def _count(self, identity: tuple[str, str, str], known: tuple[str, str, int]) -> bool:
        namespace, name, count = known
        try:
            self.client.patch("events", name, {"count": count + 1, "lastTimestamp": timestamp()}, namespace)
        except ApiError as error:
            if error.code != 404:
                raise
            del self._seen[identity]
            return False
        self._seen[identity] = (namespace, name, count + 1)
        self._seen.move_to_end(identity)
        return True

    def _fresh(self, kind: str, api_version: str, obj: Object, reason: str, message: str, warning: bool) -> Object:
        meta = obj["metadata"]
        involved = {"kind": kind, "apiVersion": api_version, "name": meta["name"], "uid": uid_of(obj)}
        for field in ("namespace", "resourceVersion"):
            if meta.get(field):
                involved[field] = meta[field]
        now = timestamp()
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{meta['name']}.{random.getrandbits(64):016x}",
                "namespace": meta.get("namespace") or "default",
            },
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "type": "Warning" if warning else "Normal",
            "source": {"component": self.component},
            "reportingComponent": self.component,
            "reportingInstance": "",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "eventTime": None,
            "count": 1,
        }

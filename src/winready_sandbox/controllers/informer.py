"""Local copies of what the API server holds: list once, then follow the watch; list again when history is gone.

Writes of the controllers themselves are recorded at once (``record``), with the handlers called, and the
watch event that follows is recognised as old news. So a controller always sees its own writes, and
no bookkeeping of expected events is needed to keep it from creating the same pod twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.objects import Object
from winready_sandbox.controllers.objects import Key, key_of, uid_of

if TYPE_CHECKING:
    from winready_sandbox.api.client import LocalClient
    from winready_sandbox.api.resources import ResourceTable

Handler = Callable[[Object | None, Object | None], None]
"""Called with the old and the new state; None stands for absent."""

IndexFunction = Callable[[Object], Iterable[str]]


def _version(obj: Object) -> int:
    return int(obj["metadata"].get("resourceVersion") or 0)


class Informer:
    """The cache of one resource, with indexes and handlers."""

    def __init__(self, client: LocalClient, resource: str) -> None:
        self.client = client
        self.resource = resource
        self.synced = asyncio.Event()
        self._objects: dict[Key, Object] = {}
        self._handlers: list[Handler] = []
        self._functions: dict[str, IndexFunction] = {}
        self._indexes: dict[str, dict[str, dict[Key, Object]]] = {}
        self._removed: set[str] = set()

    def __iter__(self) -> Iterator[Object]:
        return iter(list(self._objects.values()))

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: Key) -> Object | None:
        """The object as last seen."""
        return self._objects.get(key)

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Keep objects findable by what ``function`` says of them."""
        if name in self._functions:
            return
        self._functions[name] = function
        self._indexes[name] = {}
        for key, obj in self._objects.items():
            self._enter(name, key, obj)

    def by(self, index: str, value: str) -> list[Object]:
        """The objects that an index files under a value."""
        return list(self._indexes[index].get(value, {}).values())

    def add_handler(self, handler: Handler) -> None:
        """Tell ``handler`` of everything that is there and of every change to come."""
        self._handlers.append(handler)
        for obj in list(self._objects.values()):
            handler(None, obj)

    def record(self, obj: Object) -> None:
        """Take in a newer state of an object, from a write or from the watch."""
        uid = uid_of(obj)
        if uid in self._removed:
            return
        key = key_of(obj)
        old = self._objects.get(key)
        if old is not None and _version(obj) <= _version(old):
            return
        if old is not None and uid_of(old) != uid:
            self.forget(old)
            old = None
        self._objects[key] = obj
        self._reindex(key, old, obj)
        self._tell(old, obj)

    def forget(self, obj: Object, *, final: bool = False) -> None:
        """Take in that an object is gone; ``final`` when the watch itself says so and no late news can follow."""
        uid, key = uid_of(obj), key_of(obj)
        if final:
            self._removed.discard(uid)
        elif key in self._objects:
            self._removed.add(uid)
        old = self._objects.get(key)
        if old is None or uid_of(old) != uid:
            return
        del self._objects[key]
        self._reindex(key, old, None)
        self._tell(obj, None)

    async def run(self) -> None:
        """Follow the API server until cancelled."""
        while True:
            since = self._relist()
            self.synced.set()
            try:
                async for kind, obj in self.client.watch(self.resource, since=since):
                    if kind == "DELETED":
                        self.forget(obj, final=True)
                    elif kind != "BOOKMARK":
                        self.record(obj)
            except ApiError as error:
                if error.code != 410:
                    raise
            await asyncio.sleep(0)

    def _relist(self) -> str:
        items, version = self.client.list(self.resource)
        self._removed.clear()
        present = {uid_of(item) for item in items}
        for obj in list(self._objects.values()):
            if uid_of(obj) not in present:
                self.forget(obj, final=True)
        for obj in items:
            self.record(obj)
        return version

    def clear(self) -> None:
        """Take in that everything is gone."""
        for obj in list(self._objects.values()):
            self.forget(obj, final=True)

    def _tell(self, old: Object | None, new: Object | None) -> None:
        for handler in self._handlers:
            handler(old, new)

    def _reindex(self, key: Key, old: Object | None, new: Object | None) -> None:
        for name, function in self._functions.items():
            if old is not None:
                filed = self._indexes[name]
                for value in function(old):
                    bucket = filed.get(value)
                    if bucket is not None:
                        bucket.pop(key, None)
                        if not bucket:
                            del filed[value]
            if new is not None:
                self._enter(name, key, new)

    def _enter(self, name: str, key: Key, obj: Object) -> None:
        for value in self._functions[name](obj):
            self._indexes[name].setdefault(value, {})[key] = obj


class Informers:
    """One shared informer per resource, and writes that go through them."""

    def __init__(self, client: LocalClient, resources: ResourceTable) -> None:
        self.client = client
        self.resources = resources
        self._informers: dict[str, Informer] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._running: dict[str, asyncio.Task[None]] = {}

    def of(self, resource: str) -> Informer:
        """The informer of ``plural`` or ``plural.group``, started if the others are running."""
        resource = self.resources.find(resource).qualified
        informer = self._informers.get(resource)
        if informer is None:
            informer = self._informers[resource] = Informer(self.client, resource)
            if self._tasks is not None:
                self._launch(informer, self._tasks)
        return informer

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        """Start every informer asked for so far and wait until each has listed."""
        self._tasks = tasks
        for informer in list(self._informers.values()):
            self._launch(informer, tasks)
        for informer in list(self._informers.values()):
            await informer.synced.wait()

    def _launch(self, informer: Informer, tasks: asyncio.TaskGroup) -> None:
        task = tasks.create_task(informer.run(), name=f"informer {informer.resource}")
        self._running[informer.resource] = task

    def drop(self, resource: str) -> None:
        """Stop following a resource that is no longer served."""
        informer = self._informers.pop(resource, None)
        if informer is not None:
            informer.clear()
        task = self._running.pop(resource, None)
        if task is not None:
            task.cancel()

    def _known(self, resource: str) -> Informer | None:
        return self._informers.get(self.resources.find(resource).qualified)

    def record(self, resource: str, obj: Object) -> Object:
        """Make a write visible to every controller at once."""
        informer = self._known(resource)
        if informer is not None:
            informer.record(obj)
        return obj

    def create(self, resource: str, obj: Object, namespace: str = "") -> Object:
        """Create, and see it."""
        return self.record(resource, self.client.create(resource, obj, namespace))

    def update(self, resource: str, obj: Object, subresource: str = "") -> Object:
        """Update, and see it."""
        return self._written(resource, self.client.update(resource, obj, subresource))

    def patch(
        self,
        resource: str,
        name: str,
        patch: Any,
        namespace: str = "",
        *,
        subresource: str = "",
        kind: str = "merge",
    ) -> Object:
        """Patch, and see it."""
        written = self.client.patch(resource, name, patch, namespace, subresource=subresource, kind=kind)
        return self._written(resource, written)

    def delete(
        self,
        resource: str,
        obj: Object,
        *,
        grace: int | None = None,
        propagation: str | None = None,
    ) -> None:
        """Delete exactly this object (by uid) and see what is left of it; one that is gone already is no error."""
        namespace, name = key_of(obj)
        uid = uid_of(obj)
        try:
            self.client.delete(resource, name, namespace, grace=grace, uid=uid, propagation=propagation)
        except ApiError as error:
            if error.code != 404 and not (error.code == 409 and error.reason == "Conflict"):
                raise
        self._look(resource, obj)

    def _look(self, resource: str, obj: Object) -> None:
        informer = self._known(resource)
        if informer is None:
            return
        namespace, name = key_of(obj)
        try:
            left = self.client.get(resource, name, namespace)
        except ApiError as error:
            if error.code != 404:
                raise
            informer.forget(obj)
            return
        informer.record(left)

    def _written(self, resource: str, obj: Object) -> Object:
        """A write may also remove the object: the last finalizer of a deleted one was taken away."""
        meta = obj["metadata"]
        if meta.get("deletionTimestamp") and not meta.get("finalizers"):
            self._look(resource, obj)
            return obj
        return self.record(resource, obj)

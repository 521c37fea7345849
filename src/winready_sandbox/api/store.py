"""Objects, their history and whoever watches: one counter, one bucket per kind, nothing walked in vain.

A write touches its own bucket only, and wakes only watches that could care: each watch hangs under one
topic (everything, a namespace, a name, or the value of an indexed field such as a pod's node), so a
hundred kubelets watching their own pods cost nothing when somebody else's pod changes.

Entries are immutable and shared: the ring of past events, the indexes and every watch hold the same ones,
and an object is encoded to JSON once, whoever asks.

The ring also is the memory of past states: a list that continues at an older version is rebuilt by undoing
newer events, so paging needs no snapshots.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from winready_sandbox.api.errors import ApiError, gone

Object = dict[str, Any]
Key = tuple[str, str]
Topic = tuple[str, str]
Predicate = Callable[[Object], bool]

EVERYTHING: Topic = ("", "")
HISTORY = 2048
"""Events kept per kind; older ones are 410 Expired for who asks."""
MAX_BACKLOG = 20_000
"""A watcher that lags this far behind is cut off, as the real server does."""

_encode = msgspec.json.Encoder().encode


class Entry:
    """One version of one object."""

    __slots__ = ("_json", "key", "obj", "version")

    def __init__(self, key: Key, obj: Object, version: int) -> None:
        self.key = key
        self.obj = obj
        self.version = version
        self._json: bytes | None = None

    @property
    def json(self) -> bytes:
        """The object's JSON, encoded at first need."""
        if self._json is None:
            self._json = _encode(self.obj)
        return self._json

    @property
    def item_json(self) -> bytes:
        """The JSON as an item of a list, which names neither kind nor apiVersion."""
        head = b'{"kind":"%b","apiVersion":"%b",' % (self.obj["kind"].encode(), self.obj["apiVersion"].encode())
        return b"{" + self.json[len(head) :] if self.json.startswith(head) else self.json


@dataclass(frozen=True, slots=True)
class Event:
    """One change: ``entry`` is the state after it (for DELETED the last one), ``previous`` the one before."""

    type: str
    version: int
    entry: Entry
    previous: Entry | None


def _topics(key: Key, obj: Object, fields: Iterable[str]) -> set[Topic]:
    topics = {EVERYTHING, ("metadata.namespace", key[0]), ("metadata.name", key[1])}
    topics.update((field, indexed_value(obj, field)) for field in fields)
    return topics


def indexed_value(obj: Object, path: str) -> str:
    """The text at a dotted path, empty when absent."""
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return "" if value is None else str(value)


class Bucket:
    """All objects of one kind, their recent history and their watches."""

    def __init__(self, indexed: tuple[str, ...] = (), history: int = HISTORY) -> None:
        self.indexed = indexed
        self.floor = 0
        self._kept = history
        self._namespaces: dict[str, dict[str, Entry]] = {}
        self._index: dict[Topic, dict[Key, Entry]] = {}
        self._sorted: dict[str, list[Entry]] = {}
        """Whole lists by namespace, good until the next change: access control reads the same ones at every request."""
        self._events: deque[Event] = deque()
        self._watches: dict[Topic, dict[Watch, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._namespaces.values()))

    def get(self, key: Key) -> Entry | None:
        """The object of that namespace and name."""
        return self._namespaces.get(key[0], {}).get(key[1])

    def select(self, topic: Topic = EVERYTHING, namespace: str = "") -> list[Entry]:
        """The objects under a topic, in the order of their keys."""
        field, value = topic
        if topic == EVERYTHING:
            if namespace not in self._sorted:
                self._sorted[namespace] = sorted(self._all(namespace), key=lambda entry: entry.key)
            return list(self._sorted[namespace])
        if field in self.indexed:
            found: Iterable[Entry] = self._index.get(topic, {}).values()
        else:
            found = self._all(namespace)
        return sorted(
            (
                entry
                for entry in found
                if (not namespace or entry.key[0] == namespace) and (field != "metadata.name" or entry.key[1] == value)
            ),
            key=lambda entry: entry.key,
        )

    def _all(self, namespace: str) -> Iterable[Entry]:
        if namespace:
            return self._namespaces.get(namespace, {}).values()
        return (entry for objects in self._namespaces.values() for entry in objects.values())

    def select_at(self, version: int, topic: Topic, namespace: str) -> list[Entry] | None:
        """The objects as they were at a version, or None when history does not reach back that far."""
        if version < self.floor:
            return None
        entries = {entry.key: entry for entry in self.select(EVERYTHING, namespace)}
        for event in reversed(self._events):
            if event.version <= version:
                break
            if event.previous is None:
                entries.pop(event.entry.key, None)
            elif not namespace or event.entry.key[0] == namespace:
                entries[event.entry.key] = event.previous
        field, value = topic
        keep = sorted(entries.values(), key=lambda entry: entry.key)
        if field in self.indexed:
            return [entry for entry in keep if indexed_value(entry.obj, field) == value]
        return [entry for entry in keep if field != "metadata.name" or entry.key[1] == value]

    def record(self, event: Event) -> None:
        """Take a change into the objects, the indexes, the history and every watch that may care."""
        entry, previous = event.entry, event.previous
        namespace, name = entry.key
        self._sorted.clear()
        topics = _topics(entry.key, entry.obj, self.indexed)
        if previous is not None:
            before = _topics(entry.key, previous.obj, self.indexed)
            for topic in before:
                if topic in self._index:
                    self._index[topic].pop(entry.key, None)
                    if not self._index[topic]:
                        del self._index[topic]
            topics |= before
        if event.type == "DELETED":
            objects = self._namespaces[namespace]
            del objects[name]
            if not objects:
                del self._namespaces[namespace]
        else:
            self._namespaces.setdefault(namespace, {})[name] = entry
            for field in self.indexed:
                self._index.setdefault((field, indexed_value(entry.obj, field)), {})[entry.key] = entry
        self._events.append(event)
        if len(self._events) > self._kept:
            self.floor = self._events.popleft().version
        for topic in topics:
            for watch in self._watches.get(topic, ()):
                watch.push(event)

    def since(self, version: int) -> list[Event]:
        """The changes after a version; 410 when they are no longer all known."""
        if version < self.floor:
            oldest = self._events[0].version if self._events else self.floor
            raise gone(f"too old resource version: {version} ({oldest})")
        missed: list[Event] = []
        for event in reversed(self._events):
            if event.version <= version:
                break
            missed.append(event)
        return missed[::-1]

    def expire(self) -> None:
        """Forget the history: who continues from an older version is told 410."""
        if self._events:
            self.floor = self._events[-1].version
            self._events.clear()

    def subscribe(self, watch: Watch) -> None:
        """Hang a watch under its topic."""
        self._watches.setdefault(watch.topic, {})[watch] = None

    def unsubscribe(self, watch: Watch) -> None:
        """Take a watch away."""
        watches = self._watches.get(watch.topic, {})
        watches.pop(watch, None)
        if not watches:
            self._watches.pop(watch.topic, None)

    def watches(self) -> list[Watch]:
        """Every open watch."""
        return [watch for watches in self._watches.values() for watch in watches]


class Watch:
    """A stream of changes as one watcher sees them, open from the moment it is made."""

    def __init__(
        self, bucket: Bucket, *, topic: Topic, namespace: str, matches: Predicate | None, backlog: Iterable[Event]
    ) -> None:
        self.topic = topic
        self._bucket = bucket
        self._namespace = namespace
        self._matches = matches
        self._pending: deque[Event] = deque(backlog)
        self._wake = asyncio.Event()
        self._failure: ApiError | None = None
        self._closed = False
        if self._pending:
            self._wake.set()
        bucket.subscribe(self)

    def __aiter__(self) -> Watch:
        return self

    async def __anext__(self) -> tuple[str, Object]:
        kind, entry = await self.next()
        return kind, entry.obj

    @property
    def idle(self) -> bool:
        """Whether everything that happened so far was handed out."""
        return not self._pending

    def push(self, event: Event) -> None:
        """Hand in a change; called by the bucket."""
        if len(self._pending) >= MAX_BACKLOG:
            self.fail(gone("the watcher is too slow and was cut off"))
            return
        self._pending.append(event)
        self._wake.set()

    def fail(self, error: ApiError) -> None:
        """End the stream with an error."""
        self._pending.clear()
        self._failure = error
        self._bucket.unsubscribe(self)
        self._wake.set()

    def close(self) -> None:
        """End the stream; whoever waits for it is told so."""
        self._closed = True
        self._bucket.unsubscribe(self)
        self._wake.set()

    def ready(self) -> tuple[str, Entry] | None:
        """The next change of interest that is there already, if any."""
        while self._pending:
            seen = self._as_seen(self._pending.popleft())
            if seen is not None:
                return seen
        return None

    async def next(self) -> tuple[str, Entry]:
        """The next change of interest, waiting for it."""
        while True:
            seen = self.ready()
            if seen is not None:
                return seen
            if self._failure is not None:
                raise self._failure
            if self._closed:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()

    def _selects(self, entry: Entry | None) -> bool:
        if entry is None or (self._namespace and entry.key[0] != self._namespace):
            return False
        return self._matches is None or self._matches(entry.obj)

    def _as_seen(self, event: Event) -> tuple[str, Entry] | None:
        """An object that enters the selection is ADDED, one that leaves it is DELETED."""
        before = self._selects(event.previous)
        after = event.type != "DELETED" and self._selects(event.entry)
        if after:
            return ("MODIFIED" if before else "ADDED"), event.entry
        if not before or event.previous is None:
            return None
        if event.type == "DELETED":
            return "DELETED", event.entry
        metadata = {**event.previous.obj["metadata"], "resourceVersion": str(event.version)}
        return "DELETED", Entry(event.entry.key, {**event.previous.obj, "metadata": metadata}, event.version)


class Store:
    """All buckets under one version counter."""

    def __init__(self, history: int = HISTORY) -> None:
        self.version = 1
        self._history = history
        self._buckets: dict[tuple[str, str], Bucket] = {}

    def bucket(self, storage: tuple[str, str]) -> Bucket:
        """The bucket of a kind."""
        bucket = self._buckets.get(storage)
        if bucket is None:
            indexed = ("spec.nodeName",) if storage == ("", "pods") else ()
            bucket = self._buckets[storage] = Bucket(indexed, self._history)
        return bucket

    @cached_property
    def pods(self) -> Bucket:
        """The bucket that others ask about most."""
        return self.bucket(("", "pods"))

    def write(self, storage: tuple[str, str], key: Key, obj: Object) -> Entry:
        """Create or replace an object; the object is the store's from here on."""
        return self._record(storage, key, obj, deleted=False)

    def remove(self, storage: tuple[str, str], key: Key, last: Object | None = None) -> Entry:
        """Delete an object; the answer is its last state, at the version of its deletion."""
        previous = self.bucket(storage).get(key)
        if previous is None:
            raise KeyError(key)
        if last is not None:
            return self._record(storage, key, last, deleted=True)
        return self._record(storage, key, {**previous.obj, "metadata": dict(previous.obj["metadata"])}, deleted=True)

    def _record(self, storage: tuple[str, str], key: Key, obj: Object, *, deleted: bool) -> Entry:
        bucket = self.bucket(storage)
        previous = bucket.get(key)
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        entry = Entry(key, obj, self.version)
        kind = "DELETED" if deleted else "ADDED" if previous is None else "MODIFIED"
        bucket.record(Event(kind, self.version, entry, previous))
        return entry

    def expire_history(self) -> None:
        """Make every older version 410, as a compaction does."""
        for bucket in self._buckets.values():
            bucket.expire()

    def close(self) -> None:
        """End every watch."""
        for bucket in self._buckets.values():
            for watch in bucket.watches():
                watch.close()

"""List and watch without end: a consumer sees every object once and then every change, whatever breaks between.

Versions never go backwards: what a server tells twice, too late or out of order changes nothing.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import aiohttp
import msgspec

from winready.cluster.errors import ConnectionFailed, Expired, ServerTrouble, Unauthorized, api_error
from winready.cluster.resources import Resource

if TYPE_CHECKING:
    from winready.cluster.client import Client

Type = Literal["ADDED", "MODIFIED", "DELETED"]
Key = tuple[str, str]
WATCH_SECONDS = 290
"""How long one watch is asked to live; servers close it around then anyway."""
SILENCE_SECONDS = 90.0
"""Servers send a bookmark every minute: one that says nothing for longer may have lost us."""
LONGEST_PAUSE = 5.0
LONGEST_NUMBER = 20
"""Digits of a version that is a number: it has 64 bits."""
REFUSED = 5
"""How often a watch is asked for that is refused, before a list has to say whether the server is there at all."""
BACKWARDS = 5
"""How often a list is asked for again that is older than what we saw; then history itself was set back."""


@dataclass(frozen=True)
class Event:
    """One change. After a gap in the history, changes are worked out from a new list."""

    type: Type
    object: dict[str, Any]


class _Line(msgspec.Struct):
    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: dict[str, Any]


class _Broken(Exception):
    """The stream cannot be relied on: what is true has to be listed."""


@dataclass
class _Known:
    """What a consumer was told."""

    objects: dict[Key, dict[str, Any]] = field(default_factory=dict)
    removed: dict[Key, int] = field(default_factory=dict)
    """At which version the last object of a name went."""
    highest: int = 0

    def listed(self, items: list[dict[str, Any]], version: str) -> list[Event]:
        """Take over a list; the changes since."""
        fresh = {_key(item): item for item in items}
        events = [Event("DELETED", self.objects.pop(key)) for key in list(self.objects) if key not in fresh]
        for key, item in fresh.items():
            before = self.objects.get(key)
            if before is not None and before["metadata"].get("uid") != item["metadata"].get("uid"):
                events.append(Event("DELETED", before))
                before = None
            if before is None:
                events.append(Event("ADDED", item))
            elif before["metadata"].get("resourceVersion") != item["metadata"].get("resourceVersion"):
                events.append(Event("MODIFIED", item))
            self.objects[key] = item
        self.removed.clear()
        self.highest = number_of(version)
        return events

    def heard(self, event_type: Type, obj: dict[str, Any]) -> Event | None:
        """Take over what a watch told; None when it was known, or is older than what is."""
        key, version = _key(obj), number_of(obj["metadata"].get("resourceVersion"))
        before = self.objects.get(key)
        at = number_of(before["metadata"].get("resourceVersion")) if before else self.removed.get(key, -1)
        # Numbers that cannot be read are all 0: then nothing is older than anything.
        if version <= at and at > 0:
            return None
        self.highest = max(self.highest, version)
        if event_type == "DELETED":
            self.removed[key] = version
            return Event("DELETED", obj) if self.objects.pop(key, None) else None
        self.objects[key] = obj
        return Event("ADDED" if before is None else "MODIFIED", obj)


def _key(obj: dict[str, Any]) -> Key:
    metadata = obj["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def number_of(version: str | None) -> int:
    """Versions are numbers that grow, as Kubernetes promises; what is none can only be compared for being the same."""
    return int(version) if version and version.isdecimal() and len(version) <= LONGEST_NUMBER else 0


async def follow(
    client: Client, resource: Resource, namespace: str | None, query: Mapping[str, str]
) -> AsyncIterator[Event]:
    """Yield every object, then every change."""
    known = _Known()
    labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
    pause, backwards = 0.0, 0
    while True:
        items, version = await client.list_versioned(resource, namespace, labels=labels, fields=fields)
        if number_of(version) < known.highest and backwards < BACKWARDS:
            backwards += 1
        else:
            backwards = 0
            for event in known.listed(items, version):
                yield event
            try:
                async for event_type, obj in _changes(client, resource, namespace, query, version):
                    pause = 0.0
                    if change := known.heard(event_type, obj):
                        yield change
            except (Expired, _Broken):
                pass
        # A server that answers 410 again and again must not be asked in a busy loop.
        pause = min(max(pause * 2, 0.05), LONGEST_PAUSE)
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))


async def _changes(
    client: Client, resource: Resource, namespace: str | None, query: Mapping[str, str], version: str
) -> AsyncIterator[tuple[Type, dict[str, Any]]]:
    """Changes since a version, over as many connections as it takes, as long as each ends as it should.

    Raises `Expired` when history is lost, `_Broken` when some of it may be.
    """
    loop, refused, pause, highest = asyncio.get_running_loop(), 0, 0.0, number_of(version)
    while True:
        start, heard = loop.time(), False
        watch_query = {
            **query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        try:
            async with client.transport.stream(resource.path(namespace), watch_query, idle=SILENCE_SECONDS) as response:
                async for line in _lines(response):
                    event_type, obj = _read(line)
                    refused = 0
                    # What is known already, over connections that end at once, is no progress: that would never pause.
                    number = number_of(obj["metadata"]["resourceVersion"])
                    heard, highest = heard or number > highest, max(highest, number)
                    late = number_of(version) > number > 0
                    version = obj["metadata"]["resourceVersion"]
                    if event_type != "BOOKMARK":
                        yield event_type, obj
                    if late:
                        # Whatever else was to come before it may be missing.
                        raise _Broken
        except (ServerTrouble, ConnectionFailed):
            refused += 1
            if refused > REFUSED:
                raise _Broken from None
        except (Unauthorized, aiohttp.ClientError, TimeoutError, OSError):
            raise _Broken from None
        if refused:
            pause = min(0.1 * 2**refused, LONGEST_PAUSE)
        elif heard or loop.time() - start > 1:
            pause = 0.0
        else:
            # One that ends at once is asked for again, but not in a busy loop.
            pause = min(max(pause * 2, 0.05), LONGEST_PAUSE)
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))


def _read(line: bytes) -> tuple[Any, dict[str, Any]]:
    """One event; raises the error that it tells, and `_Broken` for what no API server would say."""
    try:
        event = msgspec.json.decode(line, type=_Line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _Broken from None
    obj = event.object
    if event.type == "ERROR":
        code = obj.get("code")
        raise api_error(code if isinstance(code, int) and code else 500, obj)
    meta = obj.get("metadata")
    if not isinstance(meta, dict) or not isinstance(meta.get("resourceVersion"), str):
        raise _Broken
    named = isinstance(meta.get("name"), str) and isinstance(meta.get("namespace") or "", str)
    if event.type != "BOOKMARK" and not named:
        raise _Broken
    return event.type, obj


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Lines of any length."""
    rest = b""
    async for chunk in response.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line:
                yield line

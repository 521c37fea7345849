"""List and watch without end: a consumer sees every object once and then every change, whatever breaks between."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import aiohttp
import msgspec

from winready.cluster.errors import ApiError, Expired, ServerTrouble, api_error
from winready.cluster.resources import Resource

if TYPE_CHECKING:
    from winready.cluster.client import Client

WATCH_SECONDS = 290
"""How long one watch is asked to live; servers close it around then anyway."""
SILENCE_SECONDS = 330.0


@dataclass(frozen=True)
class Event:
    """One change. After a gap in the history, changes are worked out from a new list."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: dict[str, Any]


def _key(obj: dict[str, Any]) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


async def follow(
    client: Client, resource: Resource, namespace: str | None, query: Mapping[str, str]
) -> AsyncIterator[Event]:
    """Yield every object, then every change."""
    known: dict[tuple[str, str], dict[str, Any]] = {}
    labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
    pause = 0.0
    while True:
        items, version = await client.list_versioned(resource, namespace, labels=labels, fields=fields)
        for event in _differences(known, items):
            yield event
        try:
            async for event_type, obj in _changes(client, resource, namespace, query, version):
                pause = 0.0
                if event_type == "DELETED":
                    known.pop(_key(obj), None)
                else:
                    known[_key(obj)] = obj
                yield Event(event_type, obj)
        except Expired:
            pass
        # A server that answers 410 again and again must not be asked in a busy loop.
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))
        pause = min(max(pause * 2, 0.05), 5.0)


def _differences(known: dict[tuple[str, str], dict[str, Any]], items: list[dict[str, Any]]) -> list[Event]:
    fresh = {_key(item): item for item in items}
    events = [Event("DELETED", known.pop(key)) for key in list(known) if key not in fresh]
    for key, item in fresh.items():
        before = known.get(key)
        if before is not None and before["metadata"].get("uid") != item["metadata"].get("uid"):
            events.append(Event("DELETED", before))
            before = None
        if before is None:
            events.append(Event("ADDED", item))
        elif before["metadata"].get("resourceVersion") != item["metadata"].get("resourceVersion"):
            events.append(Event("MODIFIED", item))
        known[key] = item
    return events


async def _changes(
    client: Client, resource: Resource, namespace: str | None, query: Mapping[str, str], version: str
) -> AsyncIterator[tuple[Literal["ADDED", "MODIFIED", "DELETED"], dict[str, Any]]]:
    """Changes since a version, over as many connections as it takes; ends with `Expired` when history is lost."""
    attempt = 0
    while True:
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
                    event = msgspec.json.decode(line)
                    obj = event["object"]
                    if event["type"] == "ERROR":
                        raise api_error(int(obj.get("code") or 500), obj)
                    version = obj["metadata"]["resourceVersion"]
                    attempt = 0
                    if event["type"] != "BOOKMARK":
                        yield event["type"], obj
        except Expired:
            raise
        except ServerTrouble:
            attempt += 1
        except ApiError as error:
            if error.code != 401 or attempt > 3:
                raise
            attempt += 1
        except (aiohttp.ClientError, TimeoutError, OSError, msgspec.DecodeError):
            attempt += 1
        if attempt:
            await asyncio.sleep(min(0.05 * 2 ** min(attempt, 7), 5.0) * random.uniform(0.5, 1.0))


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Lines of any length."""
    rest = b""
    async for chunk in response.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line:
                yield line

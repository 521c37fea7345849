"""Removing what runs created, and making sure that it is gone."""

from __future__ import annotations

import asyncio

from winready.cluster import steering_webhook
from winready.cluster.absence import LostPods
from winready.cluster.client import Client, Object
from winready.cluster.errors import ClusterError, DeadlineExceeded
from winready.cluster.resources import NAMESPACES
from winready.cluster.settings import RUN_LABEL
from winready.cluster.steering import leftovers

HELD = "NamespaceFinalizersRemaining"
ROUND_SECONDS = 30.0
"""What the last look gets, even if a server that hangs has used up the time."""


async def clean_up(
    client: Client, *, run_id: str | None, patience: float, pause: float, steered: bool = True
) -> list[str]:
    """Remove the objects of a run (``None``: of any run) and list what is still there after ``patience`` wall seconds.

    An API server that is away for a while is asked again until then. Everything of a run lives in its namespaces;
    where pods of others may have been ``steered``, there can be policies and taints besides.
    """
    labels = RUN_LABEL if run_id is None else f"{RUN_LABEL}={run_id}"
    loop = asyncio.get_running_loop()
    end = loop.time() + patience
    left: list[str] = []
    trouble: ClusterError | None = None
    lost = LostPods(client, patience)
    while True:
        try:
            async with asyncio.timeout_at(max(end, loop.time() + ROUND_SECONDS)):
                left = [
                    *(await leftovers(client, run_id) if steered else ()),
                    *(await _webhooks(client, run_id) if steered else ()),
                    *await _remove_once(client, labels, lost),
                ]
            trouble = None
            if not left:
                return []
        except ClusterError as error:
            trouble = error
        except TimeoutError:
            trouble = DeadlineExceeded(f"nothing came back within {patience:.0f} s")
        if loop.time() > end:
            break
        await asyncio.sleep(pause)
    if trouble is not None:
        left = [*left, f"unknown: the API server did not answer ({trouble.message})"]
    return left


async def objects_of(client: Client, run_id: str | None) -> list[str]:
    """The objects of a run (``None``: of any run) that are there."""
    labels = RUN_LABEL if run_id is None else f"{RUN_LABEL}={run_id}"
    found = [_describe(item) for item in await client.list(NAMESPACES, labels=labels)]
    return [*await leftovers(client, run_id, remove=False), *await _webhooks(client, run_id, remove=False), *found]


async def _webhooks(client: Client, run_id: str | None, *, remove: bool = True) -> list[str]:
    """Webhooks that steer pods: no run makes one, but 'winready steer' does, and may have been killed."""
    return [] if run_id is not None else await steering_webhook.leftovers(client, remove=remove)


async def _remove_once(client: Client, labels: str, lost: LostPods) -> list[str]:
    found = {item["metadata"]["name"]: item for item in await client.list(NAMESPACES, labels=labels)}
    going = [name for name, item in found.items() if item["metadata"].get("deletionTimestamp")]
    for name in found:
        if name not in going:
            await client.delete(NAMESPACES, name)
    held = await lost.forget(going)
    return [f"{_describe(item)}{f'; {held[name]}' if name in held else ''}" for name, item in found.items()]


def _describe(item: Object) -> str:
    name = f"Namespace {item['metadata']['name']}"
    conditions = (item.get("status") or {}).get("conditions") or []
    told = [c for c in conditions if c.get("status") == "True" and c.get("message")]
    # That something remains says less than who holds it.
    stuck = [c["message"] for c in sorted(told, key=lambda c: c.get("type") != HELD)]
    return f"{name} ({stuck[0]})" if stuck else name

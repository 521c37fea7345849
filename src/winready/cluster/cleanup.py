"""Removing what runs created, and making sure that it is gone."""

from __future__ import annotations

import asyncio

from winready.cluster import steering_webhook
from winready.cluster.client import Client, Object
from winready.cluster.errors import ClusterError
from winready.cluster.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, NAMESPACES, Resource
from winready.cluster.settings import RUN_LABEL
from winready.cluster.steering import leftovers

KINDS: tuple[Resource, ...] = (NAMESPACES, CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES)
"""Everything of a run lives in its namespaces or is one of these."""

HELD = "NamespaceFinalizersRemaining"


async def clean_up(client: Client, *, run_id: str | None, patience: float, pause: float) -> list[str]:
    """Remove the objects of a run (``None``: of any run) and list what is still there after ``patience`` wall seconds.

    An API server that is away for a while is asked again until then.
    """
    labels = RUN_LABEL if run_id is None else f"{RUN_LABEL}={run_id}"
    loop = asyncio.get_running_loop()
    end = loop.time() + patience
    left: list[str] = []
    trouble: ClusterError | None = None
    while True:
        try:
            left = [
                *await leftovers(client, run_id),
                *await _webhooks(client, run_id),
                *await _remove_once(client, labels),
            ]
            trouble = None
            if not left:
                return []
        except ClusterError as error:
            trouble = error
        if loop.time() > end:
            break
        await asyncio.sleep(pause)
    if trouble is not None:
        left = [*left, f"unknown: the API server did not answer ({trouble.message})"]
    return left


async def objects_of(client: Client, run_id: str | None) -> list[str]:
    """The objects of a run (``None``: of any run) that are there."""
    labels = RUN_LABEL if run_id is None else f"{RUN_LABEL}={run_id}"
    found = [_describe(resource, item) for resource in KINDS for item in await client.list(resource, labels=labels)]
    return [*await leftovers(client, run_id, remove=False), *await _webhooks(client, run_id, remove=False), *found]


async def _webhooks(client: Client, run_id: str | None, *, remove: bool = True) -> list[str]:
    """Webhooks that steer pods: no run makes one, but 'winready steer' does, and may have been killed."""
    return [] if run_id is not None else await steering_webhook.leftovers(client, remove=remove)


async def _remove_once(client: Client, labels: str) -> list[str]:
    left = []
    for resource in KINDS:
        for item in await client.list(resource, labels=labels):
            name = item["metadata"]["name"]
            left.append(_describe(resource, item))
            if not item["metadata"].get("deletionTimestamp"):
                await client.delete(resource, name)
    return left


def _describe(resource: Resource, item: Object) -> str:
    name = f"{resource.kind} {item['metadata']['name']}"
    conditions = (item.get("status") or {}).get("conditions") or []
    told = [c for c in conditions if c.get("status") == "True" and c.get("message")]
    # That something remains says less than who holds it.
    stuck = [c["message"] for c in sorted(told, key=lambda c: c.get("type") != HELD)]
    return f"{name} ({stuck[0]})" if stuck else name

"""Removing what runs created, and making sure that it is gone."""

from __future__ import annotations

import asyncio

from winready.cluster.client import Client, Object
from winready.cluster.errors import ClusterError
from winready.cluster.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, NAMESPACES, Resource
from winready.cluster.settings import RUN_LABEL
from winready.cluster.steering import leftovers

KINDS: tuple[Resource, ...] = (NAMESPACES, CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES)
"""Everything of a run lives in its namespaces or is one of these."""


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
            left = [*await leftovers(client, run_id), *await _remove_once(client, labels)]
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
    stuck = [c["message"] for c in conditions if c.get("status") == "True" and c.get("message")]
    return f"{name} ({stuck[0]})" if stuck else name

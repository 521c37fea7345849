"""Keeps the network's view of the cluster true to an API server, whichever one it is."""

from __future__ import annotations

import asyncio

from winready_sandbox.apiclient import ApiClient
from winready_sandbox.network.view import KINDS, ClusterView, Kind


async def follow(view: ClusterView, client: ApiClient) -> None:
    """Feed every change into the view until cancelled."""
    async with asyncio.TaskGroup() as tasks:
        for kind in KINDS:
            tasks.create_task(_follow_kind(view, client, kind), name=f"network follows {kind}")


async def _follow_kind(view: ClusterView, client: ApiClient, kind: Kind) -> None:
    async for change in client.watch(kind):
        if change.type == "DELETED":
            metadata = change.object["metadata"]
            view.remove(kind, metadata.get("namespace", ""), metadata["name"])
        elif change.type != "SYNCED":
            view.put(kind, change.object)

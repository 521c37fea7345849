"""Workloads of others on nodes that a run would disturb: those that would lose their last replica."""

from __future__ import annotations

from collections.abc import Collection

from winready.cluster.client import Client, Object
from winready.cluster.resources import PODS
from winready.cluster.settings import RUN_LABEL, Settings


async def last_replicas(client: Client, settings: Settings, nodes: Collection[str]) -> list[str]:
    """Workloads with all their Ready pods on a single one of these nodes; one pod per node is a DaemonSet's nature."""
    owned: dict[tuple[str, str, str], list[Object]] = {}
    for raw in await client.list(PODS):
        labels = raw["metadata"].get("labels") or {}
        kind, name = _owner(raw)
        ours = labels.get(RUN_LABEL) in (settings.run_id, settings.takes_over or settings.run_id)
        if ours or kind in ("DaemonSet", "Node") or not _runs(raw):
            continue
        owned.setdefault((raw["metadata"]["namespace"], kind, name), []).append(raw)
    taken = []
    for (namespace, kind, name), pods in sorted(owned.items()):
        places = {raw["spec"].get("nodeName") for raw in pods}
        if len(places) == 1 and places <= set(nodes):
            taken.append(f"{kind} {namespace}/{name} on node {places.pop()}")
    return taken


def _owner(raw: Object) -> tuple[str, str]:
    for owner in raw["metadata"].get("ownerReferences") or []:
        if owner.get("controller"):
            return owner["kind"], owner["name"]
    return "Pod", raw["metadata"]["name"]


def _runs(raw: Object) -> bool:
    conditions = (raw.get("status") or {}).get("conditions") or []
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)

"""Small questions that every controller asks of raw objects."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from winready_sandbox.api.objects import Object, timestamp
from winready_sandbox.clock import utc_now

Key = tuple[str, str]
"""Namespace and name."""

NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Letters that form no words, as generated names use them."""


def key_of(obj: Object) -> Key:
    """Namespace and name of an object."""
    meta = obj["metadata"]
    return meta.get("namespace", ""), meta["name"]


def either(old: Object | None, new: Object | None) -> Object:
    """The newer of two states of which at least one is there."""
    return new or old or {}


def uid_of(obj: Object) -> str:
    """The uid of an object."""
    return str(obj["metadata"].get("uid", ""))


def labels_of(obj: Object) -> dict[str, str]:
    """The labels of an object."""
    return obj["metadata"].get("labels") or {}


def deleting(obj: Object) -> bool:
    """Whether the object is on its way out."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def micro_now_text() -> str:
    """The present with microseconds, as events and leases write it."""
    return utc_now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def controller_reference(obj: Object) -> Object | None:
    """The owner reference of the managing controller."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return dict(reference)
    return None


def owner_uids(obj: Object) -> list[str]:
    """Index function: the uid of the managing controller."""
    reference = controller_reference(obj)
    return [reference["uid"]] if reference else []


def orphan_namespaces(obj: Object) -> list[str]:
    """Index function: the namespace of an object that no controller manages."""
    return [] if controller_reference(obj) else [obj["metadata"].get("namespace", "")]


def namespaces(obj: Object) -> list[str]:
    """Index function: the namespace."""
    return [obj["metadata"].get("namespace", "")]


def owner_reference(api_version: str, kind: str, owner: Object) -> Object:
    """How a controller marks what it manages."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": owner["metadata"]["name"],
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def condition(obj: Object, kind: str) -> Object | None:
    """The status condition of that type."""
    for entry in obj.get("status", {}).get("conditions") or ():
        if entry.get("type") == kind:
            return dict(entry)
    return None


def condition_is(obj: Object, kind: str, status: str = "True") -> bool:
    """Whether a status condition has that status."""
    found = condition(obj, kind)
    return found is not None and found.get("status") == status


def pod_ready(pod: Object) -> bool:
    """Whether a pod's Ready condition is true."""
    return condition_is(pod, "Ready")


def phase(pod: Object) -> str:
    """The phase of a pod."""
    return str(pod.get("status", {}).get("phase") or "Pending")


def pod_finished(pod: Object) -> bool:
    """Whether a pod has run to its end."""
    return phase(pod) in ("Succeeded", "Failed")


def pod_active(pod: Object) -> bool:
    """Whether a pod counts as a replica: neither finished nor on its way out."""
    return not pod_finished(pod) and not deleting(pod)


def with_condition(conditions: list[Object], kind: str, status: str, **fields: Any) -> list[Object]:
    """The conditions with one set; its transition time moves only when its status changes."""
    fresh: Object = {"type": kind, "status": status, "lastTransitionTime": timestamp(), **fields}
    for position, entry in enumerate(conditions):
        if entry.get("type") != kind:
            continue
        if entry.get("status") == status:
            fresh["lastTransitionTime"] = entry.get("lastTransitionTime", fresh["lastTransitionTime"])
        return [*conditions[:position], fresh, *conditions[position + 1 :]]
    return [*conditions, fresh]


def template_hash(template: Object, salt: int | None = None) -> str:
    """A short stable name for a pod template."""
    text = json.dumps(template, sort_keys=True, separators=(",", ":")) + ("" if salt is None else str(salt))
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
    return "".join(NAME_ALPHABET[ord(digit) % len(NAME_ALPHABET)] for digit in str(number))


def resolve_percent(value: Any, total: int, *, up: bool) -> int:
    """An int-or-percent field as a number."""
    if isinstance(value, str) and value.endswith("%"):
        product = int(value[:-1]) * total
        return -(-product // 100) if up else product // 100
    return int(value)

"""``scale``: the number of replicas of any workload as one small object."""

from __future__ import annotations

from typing import Any

from winready_sandbox.api.errors import bad_request, invalid, unprocessable
from winready_sandbox.api.objects import Object, fresh
from winready_sandbox.api.patching import applied, patched
from winready_sandbox.api.registry import Registry, Write
from winready_sandbox.api.resources import CRUD, Resource
from winready_sandbox.api.selectors import selector_text

SCALE = Resource("autoscaling", "v1", "Scale", "scales", verbs=CRUD)
_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def read_scale(registry: Registry, resource: Resource, name: str, namespace: str) -> Object:
    """The scale of a workload."""
    return _scale(resource, registry.get(resource, name, namespace).obj)


def write_scale(
    registry: Registry, resource: Resource, name: str, namespace: str, body: Object, write: Write
) -> Object:
    """Set the number of replicas."""
    entry = registry.get(resource, name, namespace)
    replicas = (body.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise bad_request(f"spec.replicas must be a whole number, not {replicas!r}")
    if replicas < 0:
        detail = "must be greater than or equal to 0"
        raise unprocessable("Scale", "autoscaling", name, [invalid("spec.replicas", replicas, detail)])
    sent = body.get("metadata") or {}
    metadata = {key: sent[key] for key in ("resourceVersion", "uid") if sent.get(key)}
    wanted = fresh(entry.obj)
    wanted["metadata"] |= {"resourceVersion": "", **metadata}
    wanted.setdefault("spec", {})["replicas"] = replicas
    return _scale(resource, registry.replace(resource, entry, wanted, "", write).obj)


def patch_scale(
    registry: Registry, resource: Resource, name: str, namespace: str, patch: Any, kind: str, write: Write
) -> Object:
    """Change the number of replicas by a patch of any kind."""
    live = read_scale(registry, resource, name, namespace)
    if kind == "apply":
        body = applied(SCALE, live, patch, name, write.manager, force=write.force, subresource="")
    else:
        body = patched(SCALE, live, patch, kind)
    return write_scale(registry, resource, name, namespace, body, write)


def _scale(resource: Resource, obj: Object) -> Object:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    selector = spec.get("selector")
    if resource.storage == ("", "replicationcontrollers"):
        selector = {"matchLabels": selector or {}}
    current: Object = {"replicas": status.get("replicas", 0)}
    if text := selector_text(selector):
        current["selector"] = text
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: obj["metadata"][key] for key in _METADATA if key in obj["metadata"]},
        "spec": {"replicas": replicas} if (replicas := spec.get("replicas", 1)) else {},
        "status": current,
    }

"""One stored form, several served ones: events are kept as core/v1 and autoscalers as autoscaling/v2."""

from __future__ import annotations

import json
import re
from typing import Any

from winready_sandbox.api.objects import Object, ordered
from winready_sandbox.api.resources import Resource, ResourceTable

_NEW_TO_CORE = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_CORE_TO_NEW = {core: new for new, core in _NEW_TO_CORE.items()}
_TARGET, _CURRENT = "targetCPUUtilizationPercentage", "currentCPUUtilizationPercentage"
_NOTED = "autoscaling.alpha.kubernetes.io/"
_ELSEWHERE = {
    "metrics": ("spec", "metrics"),
    "behavior": ("spec", "behavior"),
    "conditions": ("status", "conditions"),
    "current-metrics": ("status", "currentMetrics"),
}
"""What autoscaling/v1 has no fields for and keeps in annotations."""


def converts(resource: Resource) -> bool:
    """Whether a resource is served in another form than it is stored in."""
    return resource.group == "events.k8s.io" or resource.alias


def stored_resource(table: ResourceTable, resource: Resource) -> Resource:
    """The resource under which the registry knows the objects."""
    if resource.alias:
        return table.find(resource.qualified)
    return table.find("events") if converts(resource) else resource


def to_stored(resource: Resource, obj: Object) -> Object:
    """The stored form of what a client sent."""
    if resource.alias:
        return _autoscaler_to_v2(obj)
    return _renamed(obj, _NEW_TO_CORE, "v1") if converts(resource) else obj


def patch_to_stored(resource: Resource, patch: Object) -> Object:
    """A merge patch or applied configuration in the words of the stored form."""
    if resource.alias:
        return _autoscaler_to_v2(patch, whole=False)
    if not converts(resource):
        return patch
    return {_NEW_TO_CORE.get(key, key): "v1" if key == "apiVersion" else value for key, value in patch.items()}


def fields_to_stored(resource: Resource, selector: str) -> str:
    """A field selector in the words of the stored form."""
    if resource.group != "events.k8s.io":
        return selector
    return re.sub(r"(^|,)(\w+)", lambda found: found[1] + _NEW_TO_CORE.get(found[2], found[2]), selector)


def to_served(resource: Resource, obj: Object) -> Object:
    """The form in which a client reads it."""
    if resource.alias:
        return _autoscaler_to_v1(obj)
    return _renamed(obj, _CORE_TO_NEW, resource.api_version) if converts(resource) else obj


def _renamed(obj: Object, names: dict[str, str], api_version: str) -> Object:
    renamed = {names.get(key, key): value for key, value in obj.items()}
    return ordered({**renamed, "kind": "Event", "apiVersion": api_version, "metadata": obj.get("metadata") or {}})


def _cpu(percent: Any) -> Object:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _is_cpu(metric: Any, part: str) -> bool:
    found = metric.get("resource") or {}
    return found.get("name") == "cpu" and "averageUtilization" in (found.get(part) or {})


def _autoscaler_to_v2(obj: Object, whole: bool = True) -> Object:
    """Version 1 knows one metric, use of processors; everything else is in its annotations."""
    result = {**obj}
    if whole or "apiVersion" in obj:
        result["apiVersion"] = "autoscaling/v2"
    metadata = obj.get("metadata")
    noted = dict((metadata.get("annotations") or {}) if isinstance(metadata, dict) else {})
    for name, (part, field) in _ELSEWHERE.items():
        text = noted.pop(f"{_NOTED}{name}", None)
        if isinstance(text, str) and isinstance(found := _read(text), list | dict):
            result[part] = {**(result.get(part) or {}), field: found}
    if isinstance(metadata, dict) and metadata.get("annotations"):
        result["metadata"] = {key: value for key, value in metadata.items() if key != "annotations"}
        if noted or not whole:
            result["metadata"]["annotations"] = noted
    spec = result.get("spec")
    if isinstance(spec, dict) and _TARGET in spec:
        kept = {key: value for key, value in spec.items() if key != _TARGET}
        metrics = [_cpu(spec[_TARGET])] if spec[_TARGET] is not None else []
        result["spec"] = {**kept, "metrics": [*metrics, *(kept.get("metrics") or ())]}
    status = result.get("status")
    if isinstance(status, dict) and _CURRENT in status:
        current = {"averageUtilization": status[_CURRENT], "averageValue": "0"}
        metric = {"type": "Resource", "resource": {"name": "cpu", "current": current}}
        kept = {key: value for key, value in status.items() if key != _CURRENT}
        result["status"] = {**kept, "currentMetrics": [metric, *(kept.get("currentMetrics") or ())]}
    return result


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _autoscaler_to_v1(obj: Object) -> Object:
    noted = dict(obj["metadata"].get("annotations") or {})
    parts: dict[str, Object] = {"spec": dict(obj.get("spec") or {}), "status": dict(obj.get("status") or {})}
    for part, field, inner, shown in (
        ("spec", "metrics", "target", _TARGET),
        ("status", "currentMetrics", "current", _CURRENT),
    ):
        others = []
        for metric in parts[part].get(field) or ():
            if shown not in parts[part] and _is_cpu(metric, inner):
                parts[part][shown] = metric["resource"][inner]["averageUtilization"]
            else:
                others.append(metric)
        parts[part][field] = others
    for name, (part, field) in _ELSEWHERE.items():
        value = parts[part].pop(field, None)
        if value:
            noted[f"{_NOTED}{name}"] = json.dumps(value, separators=(",", ":"))
    for name in ("currentReplicas", "desiredReplicas"):
        parts["status"].setdefault(name, 0)
    metadata = {**obj["metadata"], **({"annotations": noted} if noted else {})}
    return ordered({**obj, **parts, "apiVersion": "autoscaling/v1", "metadata": metadata})

"""One stored form, several served ones: events are kept as core/v1 and read as events.k8s.io/v1 too."""

from __future__ import annotations

import re

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


def converts(resource: Resource) -> bool:
    """Whether a resource is served in another form than it is stored in."""
    return resource.group == "events.k8s.io"


def stored_resource(table: ResourceTable, resource: Resource) -> Resource:
    """The resource under which the registry knows the objects."""
    return table.find("events") if converts(resource) else resource


def to_stored(resource: Resource, obj: Object) -> Object:
    """The stored form of what a client sent."""
    return _renamed(obj, _NEW_TO_CORE, "v1") if converts(resource) else obj


def patch_to_stored(resource: Resource, patch: Object) -> Object:
    """A merge patch or applied configuration in the words of the stored form."""
    if not converts(resource):
        return patch
    return {_NEW_TO_CORE.get(key, key): "v1" if key == "apiVersion" else value for key, value in patch.items()}


def fields_to_stored(resource: Resource, selector: str) -> str:
    """A field selector in the words of the stored form."""
    if not converts(resource):
        return selector
    return re.sub(r"(^|,)(\w+)", lambda found: found[1] + _NEW_TO_CORE.get(found[2], found[2]), selector)


def to_served(resource: Resource, obj: Object) -> Object:
    """The form in which a client reads it."""
    return _renamed(obj, _CORE_TO_NEW, resource.api_version) if converts(resource) else obj


def _renamed(obj: Object, names: dict[str, str], api_version: str) -> Object:
    renamed = {names.get(key, key): value for key, value in obj.items()}
    return ordered({**renamed, "kind": "Event", "apiVersion": api_version, "metadata": obj.get("metadata") or {}})

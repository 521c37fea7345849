"""What the server says it serves: versions, groups, resources, and all of it in one aggregated answer."""

from __future__ import annotations

from typing import Any

from winready_sandbox.api.negotiate import parse_accept
from winready_sandbox.api.objects import Object
from winready_sandbox.api.resources import Resource, ResourceTable, Subresource

AGGREGATED = "apidiscovery.k8s.io"


def aggregated_version(accept: str) -> str:
    """``v2`` or ``v2beta1`` when a client asks for aggregated discovery before anything plain, else empty."""
    for media, parameters in parse_accept(accept):
        if media == "application/json":
            asks = parameters.get("g") == AGGREGATED and parameters.get("as") == "APIGroupDiscoveryList"
            return parameters.get("v", "") if asks and parameters.get("v") in ("v2", "v2beta1") else ""
    return ""


def aggregated_type(version: str) -> str:
    """The media type of an aggregated answer."""
    return f"application/json;g={AGGREGATED};v={version};as=APIGroupDiscoveryList"


def legacy_versions(server: str) -> Object:
    """``/api``."""
    address = [{"clientCIDR": "0.0.0.0/0", "serverAddress": server}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": address}


def group(table: ResourceTable, name: str) -> Object | None:
    """``/apis/GROUP``."""
    versions = table.groups().get(name)
    if not name or not versions:
        return None
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": listed, "preferredVersion": listed[0]}


def groups(table: ResourceTable) -> Object:
    """``/apis``."""
    found = (group(table, name) for name in table.groups() if name)
    listed = [{k: v for k, v in each.items() if k not in ("kind", "apiVersion")} for each in found if each]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def resource_list(table: ResourceTable, group_name: str, version: str) -> Object | None:
    """``/api/v1`` and ``/apis/GROUP/VERSION``."""
    resources = table.of(group_name, version)
    if not resources:
        return None
    listed: list[Object] = []
    for resource in resources:
        listed.append(_plain(resource))
        listed.extend(_plain_path(resource, each) for each in resource.subresources)
    group_version = f"{group_name}/{version}" if group_name else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed}


def _plain(resource: Resource) -> Object:
    entry: Object = {
        "name": resource.plural,
        "singularName": resource.singular or resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    return entry


def _plain_path(resource: Resource, path: Subresource) -> Object:
    entry: Object = {
        "name": f"{resource.plural}/{path.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": path.kind or _own_kind(resource, path),
        "verbs": list(path.verbs),
    }
    if path.version:
        entry.update(group=path.group, version=path.version)
    return entry


def _own_kind(resource: Resource, path: Subresource) -> str:
    options = {"attach", "exec", "portforward", "proxy"}
    if path.name not in options:
        return resource.kind
    words = {"attach": "Attach", "exec": "Exec", "portforward": "PortForward", "proxy": "Proxy"}
    return f"{resource.kind}{words[path.name]}Options"


def aggregated(table: ResourceTable, version: str, core: bool) -> Object:
    """``/api`` or ``/apis`` with every resource in it."""
    items = []
    for name, versions in table.groups().items():
        if (name == "") is not core:
            continue
        entries = []
        for each in versions:
            resources = [_aggregated(resource) for resource in table.of(name, each)]
            entries.append({"version": each, "resources": resources, "freshness": "Current"})
        metadata: dict[str, Any] = {"name": name} if name else {}
        metadata["creationTimestamp"] = None
        items.append({"metadata": metadata, "versions": entries})
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"{AGGREGATED}/{version}",
        "metadata": {},
        "items": items,
    }


def _aggregated(resource: Resource) -> Object:
    entry: Object = {
        "resource": resource.plural,
        "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular or resource.kind.lower(),
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.subresources:
        entry["subresources"] = [
            {
                "subresource": path.name,
                "responseKind": {
                    "group": path.group if path.kind else resource.group,
                    "version": path.version or resource.version,
                    "kind": path.kind or _own_kind(resource, path),
                },
                "verbs": list(path.verbs),
            }
            for path in resource.subresources
        ]
    return entry

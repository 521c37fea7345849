"""OpenAPI as far as kubectl validates with it: which parameters each operation takes, open schemas for the rest."""

from __future__ import annotations

import hashlib

from winready.sandbox.api.objects import Object
from winready.sandbox.api.resources import Resource, ResourceTable

_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_METHODS = {"create": "post", "update": "put", "patch": "patch", "delete": "delete", "get": "get"}


def paths(table: ResourceTable) -> Object:
    """``/openapi/v3``: where each group's document is."""
    stamp = hashlib.sha256(f"{table.minor}.{table.changes}".encode()).hexdigest()[:32].upper()
    found: Object = {}
    for name, versions in table.groups().items():
        for version in versions:
            path = f"apis/{name}/{version}" if name else f"api/{version}"
            found[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={stamp}"}
    return {"paths": found}


def document(table: ResourceTable, group: str, version: str) -> Object | None:
    """``/openapi/v3/apis/GROUP/VERSION``."""
    resources = table.of(group, version)
    if not resources:
        return None
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    found: Object = {}
    schemas: Object = {}
    for resource in resources:
        place = (
            f"{root}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else f"{root}/{resource.plural}"
        )
        found[place] = _operations(resource, ("create",))
        if not resource.virtual:
            found[f"{place}/{{name}}"] = _operations(resource, ("get", "update", "patch", "delete"))
            found[place]["get"] = _operation(resource, "list", ())
        schemas[_schema_name(resource)] = {
            "type": "object",
            "x-kubernetes-group-version-kind": [_kind(resource)],
            "x-kubernetes-preserve-unknown-fields": True,
        }
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": f"v1.{table.minor}.0"},
        "paths": found,
        "components": {"schemas": schemas},
    }


def swagger(table: ResourceTable) -> Object:
    """``/openapi/v2``: an empty shell for clients that insist on one."""
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": f"v1.{table.minor}.0"},
        "paths": {},
        "definitions": {},
    }


def _kind(resource: Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _schema_name(resource: Resource) -> str:
    return ".".join(filter(None, ("io.k8s", resource.group, resource.version, resource.kind)))


def _operations(resource: Resource, verbs: tuple[str, ...]) -> Object:
    served = (verb for verb in verbs if verb in resource.verbs)
    return {_METHODS[verb]: _operation(resource, verb, _WRITE_PARAMETERS if verb != "get" else ()) for verb in served}


def _operation(resource: Resource, verb: str, parameters: tuple[str, ...]) -> Object:
    action = {"create": "post", "update": "put"}.get(verb, verb)
    return {
        "operationId": f"{verb}{resource.version}{resource.kind}",
        "parameters": [{"name": name, "in": "query", "schema": {"type": "string"}} for name in parameters],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _kind(resource),
    }

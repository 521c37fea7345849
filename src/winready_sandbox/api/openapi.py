"""OpenAPI as far as kubectl uses it: parameters of each operation to validate, fields of each kind to explain."""

from __future__ import annotations

import hashlib

from winready_sandbox.api.objects import Object
from winready_sandbox.api.resources import Resource, ResourceTable
from winready_sandbox.api.shapes import Field, Type, type_named, type_of_kind
from winready_sandbox.versions import release

_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_METHODS = {"create": "post", "update": "put", "patch": "patch", "delete": "delete", "get": "get"}

_SCALARS: dict[str, Object] = {
    "string": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"},
    "bool": {"type": "boolean"},
    "int": {"type": "integer", "format": "int32"},
    "long": {"type": "integer", "format": "int64"},
    "double": {"type": "number"},
    "Time": {"type": "string", "format": "date-time"},
    "MicroTime": {"type": "string", "format": "date-time"},
    "Duration": {"type": "string"},
    "Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "IntOrString": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
}


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
        scope = "/namespaces/{namespace}" if resource.namespaced else ""
        place = f"{root}{scope}/{resource.plural}"
        found[place] = _operations(resource, ("create",))
        if not resource.virtual:
            found[f"{place}/{{name}}"] = _operations(resource, ("get", "update", "patch", "delete"))
            found[place]["get"] = _operation(resource, "list", ())
        _add_kind(schemas, resource)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": release(table.minor)},
        "paths": found,
        "components": {"schemas": schemas},
    }


def _add_kind(schemas: Object, resource: Resource) -> None:
    """The schema of a kind and of everything it is made of; open where the shape is not known."""
    shape = type_of_kind(resource.api_version, resource.kind)
    marked = {"x-kubernetes-group-version-kind": [_kind(resource)]}
    if shape is None:
        name = ".".join(filter(None, (resource.group, resource.version, resource.kind)))
        schemas[name] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, **marked}
        return
    _add_type(schemas, shape)
    named = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    own = schemas[_schema_name(shape)]
    schemas[_schema_name(shape)] = {**own, "properties": {**named, **own["properties"]}, **marked}


def _add_type(schemas: Object, shape: Type) -> None:
    name = _schema_name(shape)
    if name in schemas:
        return
    properties: Object = {}
    schemas[name] = {"type": "object", "properties": properties}
    for field in shape.names.values():
        properties[field.name] = _property(schemas, field)


def _property(schemas: Object, field: Field) -> Object:
    value: Object = dict(_SCALARS.get(field.type, {"type": "object"}))
    shape = type_named(field.type)
    if shape is not None:
        _add_type(schemas, shape)
        reference = {"$ref": f"#/components/schemas/{_schema_name(shape)}"}
        value = reference if field.form else {"allOf": [reference]}
    if field.form == "*":
        return {"type": "array", "items": value}
    return {"type": "object", "additionalProperties": value} if field.form == "%" else value


def _schema_name(shape: Type) -> str:
    return "io.k8s.api." + shape.name.replace("/", ".")


def swagger(table: ResourceTable) -> Object:
    """``/openapi/v2``: an empty shell for clients that insist on one."""
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": release(table.minor)},
        "paths": {},
        "definitions": {},
    }


def _kind(resource: Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


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

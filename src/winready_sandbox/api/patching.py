"""A patch of any kind, from the live object to the object that is wanted instead."""

from __future__ import annotations

from typing import Any

from winready_sandbox.api.errors import bad_request, unsupported_media_type
from winready_sandbox.api.objects import Object
from winready_sandbox.api.patches import json_patch, merge_patch, strategic_merge
from winready_sandbox.api.patches.apply import server_side_apply
from winready_sandbox.api.resources import Resource


def patched(resource: Resource, live: Object, patch: Any, kind: str) -> Object:
    """The live object with a JSON, merge or strategic patch carried out; unchanged parts are shared."""
    if kind == "json":
        if not isinstance(patch, list):
            raise bad_request(
                "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
            )
        return _object(json_patch(live, patch))
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: the patch must be an object")
    if kind == "merge":
        return _object(merge_patch(live, patch))
    if resource.custom:
        raise unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
        )
    return _object(strategic_merge(live, patch))


def applied(
    resource: Resource, live: Object | None, body: Any, name: str, manager: str, *, force: bool, subresource: str
) -> Object:
    """The object after a server-side apply, with its field managers."""
    if not isinstance(body, dict):
        raise bad_request("error decoding YAML: the applied configuration must be an object")
    for field, expected in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        if body.get(field) != expected:
            version = str(body.get("apiVersion", ""))
            found = version if "/" in version else f"/{version}"
            raise bad_request(f"invalid object type: {found}, Kind={body.get('kind', '')}")
    metadata = body.setdefault("metadata", {})
    if metadata.setdefault("name", name) != name:
        raise bad_request(f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})")
    return _object(server_side_apply(live, body, manager, force, subresource))


def _object(result: Any) -> Object:
    if not isinstance(result, dict) or not isinstance(result.get("metadata"), dict):
        raise bad_request("the patch leaves no object with metadata behind")
    return result

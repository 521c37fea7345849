"""What a kubelet writes into a volume of each kind that comes from API objects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from winready_sandbox.nodes.volumes import content
from winready_sandbox.nodes.volumes.content import Entry, Find, Payload, VolumeError

Object = dict[str, Any]
KEPT = ("secret", "configMap", "downwardAPI", "projected")
Downward = Callable[[list[Object], int], Payload]
"""The files of downward API items, with that mode."""
Token = Callable[[str, int], Awaitable[str]]
"""A token for an audience with that lifetime."""


async def payload(volume: Object, find: Find, downward: Downward, token: Token) -> Payload:
    """The files of a volume; raises `VolumeError` for what is not there."""
    if source := volume.get("secret"):
        mode = source.get("defaultMode", 0o644)
        return content.object_entries("secrets", source, source["secretName"], mode, find)
    if source := volume.get("configMap"):
        mode = source.get("defaultMode", 0o644)
        return content.object_entries("configmaps", source, source["name"], mode, find)
    if source := volume.get("downwardAPI"):
        return downward(source.get("items") or [], source.get("defaultMode", 0o644))
    projected = volume["projected"]
    mode = projected.get("defaultMode", 0o644)
    result: Payload = {}
    for source in projected.get("sources") or []:
        if part := source.get("secret"):
            result |= content.object_entries("secrets", part, part["name"], mode, find)
        if part := source.get("configMap"):
            result |= content.object_entries("configmaps", part, part["name"], mode, find)
        if part := source.get("downwardAPI"):
            result |= downward(part.get("items") or [], mode)
        if part := source.get("serviceAccountToken"):
            lifetime = int(part.get("expirationSeconds") or 3600)
            result[part["path"]] = Entry((await token(part.get("audience", ""), lifetime)).encode(), mode)
        if "clusterTrustBundle" in source:
            raise VolumeError("clusterTrustBundle projection is not supported in this cluster")
    return result

"""What a URL path asks for, as the real server reads it."""

from __future__ import annotations

from dataclasses import dataclass

_NAMESPACE_PATHS = ("status", "finalize")


@dataclass(frozen=True)
class Target:
    """A path below ``/api`` or ``/apis``, taken apart."""

    group: str
    version: str
    plural: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""


def target(path: str) -> Target | None:
    """Take a resource path apart; None for any other path."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 2:
        group, version, parts = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 3:
        group, version, parts = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if len(parts) >= 2 and parts[0] == "namespaces":
        if len(parts) == 2 or (len(parts) == 3 and parts[2] in _NAMESPACE_PATHS):
            return Target(group, version, "namespaces", parts[1], parts[1], *parts[2:3])
        namespace, parts = parts[1], parts[2:]
    plural, name, subresource, *rest = [*parts, "", "", ""][: max(len(parts), 3)] if len(parts) < 3 else parts
    tail = "/".join(rest) if len(parts) > 3 else ""
    return Target(group, version, plural, namespace, name, subresource, tail)


def verb(method: str, target: Target, watch: bool) -> str:
    """The API verb of a request, as authorization knows it."""
    if method == "GET" or method == "HEAD":
        if target.name and not watch:
            return "get"
        return "watch" if watch else "list"
    if method == "DELETE":
        return "delete" if target.name else "deletecollection"
    return {"POST": "create", "PUT": "update", "PATCH": "patch"}.get(method, "")

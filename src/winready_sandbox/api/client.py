"""The in-process client: the verbs and watches of an outsider without the way through HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from winready_sandbox.api.deletion import DeleteOptions
from winready_sandbox.api.identity import ADMIN, User
from winready_sandbox.api.objects import Object, fresh
from winready_sandbox.api.paging import ListOptions
from winready_sandbox.api.registry import Call, Registry, Write


class LocalClient:
    """What controllers use. Objects it hands out are shared: copy before changing (``objects.fresh``)."""

    def __init__(self, registry: Registry, user: User = ADMIN, manager: str = "") -> None:
        self._registry = registry
        self._find = registry.resources.find
        self._write = Write(user, manager or user.name.rpartition(":")[2])

    def get(self, resource: str, name: str, namespace: str = "") -> Object:
        """One object, or ``ApiError`` 404."""
        return self._registry.get(self._find(resource), name, namespace).obj

    def list(
        self, resource: str, namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> tuple[list[Object], str]:
        """The selected objects and the resource version of the list."""
        listing = self._registry.list(self._find(resource), namespace, ListOptions(labels, fields))
        return [entry.obj for entry in listing.entries], str(listing.version)

    def create(self, resource: str, obj: Object, namespace: str = "") -> Object:
        """Store a new object; ``pods/binding`` and its like are created by that name."""
        plural, _, subresource = resource.partition("/")
        found = self._find(plural)
        if subresource or found.virtual:
            name = (obj.get("metadata") or {}).get("name", "")
            return self._registry.act(Call(found, subresource, namespace, name, fresh(obj), self._write))
        return self._registry.create(found, fresh(obj), namespace, self._write).obj

    def update(self, resource: str, obj: Object, subresource: str = "") -> Object:
        """Replace an object or, with a subresource, its part."""
        return self._registry.update(self._find(resource), fresh(obj), subresource=subresource, write=self._write).obj

    def patch(
        self,
        resource: str,
        name: str,
        patch: Any,
        namespace: str = "",
        *,
        subresource: str = "",
        kind: str = "merge",
        force: bool = False,
    ) -> Object:
        """Change an object: kind is ``merge``, ``strategic``, ``json`` or ``apply``."""
        write = Write(self._write.user, self._write.manager, force=force)
        return self._registry.patch(
            self._find(resource), name, fresh(patch), namespace, kind=kind, subresource=subresource, write=write
        ).obj

    def delete(
        self,
        resource: str,
        name: str,
        namespace: str = "",
        *,
        grace: int | None = None,
        uid: str | None = None,
        propagation: str | None = None,
    ) -> None:
        """Delete an object, or mark it when something must happen first."""
        options = DeleteOptions(grace=grace, uid=uid, propagation=propagation)
        self._registry.delete(self._find(resource), name, namespace, options, self._write)

    def watch(
        self, resource: str, namespace: str = "", *, since: str, labels: str = "", fields: str = ""
    ) -> AsyncIterator[tuple[str, Object]]:
        """The changes after a version; ``ApiError`` 410 when history is gone."""
        return self._registry.watch(self._find(resource), namespace, since=since, labels=labels, fields=fields)

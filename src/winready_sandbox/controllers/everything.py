"""All kinds of objects at once, also those that come with custom resource definitions: for who must see the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from winready_sandbox.api.objects import Object
from winready_sandbox.api.resources import Resource

if TYPE_CHECKING:
    from winready_sandbox.controllers.controller import Context

Watcher = Callable[[Resource, Object | None, Object | None], None]

UNWATCHED = {"events"}
"""Too many, owned by nothing, and nobody waits for them."""


class Everything:
    """Watches every stored resource, one served version of each."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._watchers: list[Watcher] = []
        self._followed: dict[str, Resource] = {}
        self._definitions = context.informers.of("customresourcedefinitions.apiextensions.k8s.io")
        self._definitions.add_handler(lambda old, new: self.refresh())
        self.refresh()

    def add_watcher(self, watcher: Watcher) -> None:
        """Tell ``watcher`` of every change of anything."""
        self._watchers.append(watcher)

    def resources(self) -> Iterable[Resource]:
        """One resource per kind of stored object."""
        seen: dict[tuple[str, str], Resource] = {}
        for resource in self.context.resources:
            if not resource.virtual and "delete" in resource.verbs and "watch" in resource.verbs:
                seen.setdefault(resource.storage, resource)
        return seen.values()

    def refresh(self) -> None:
        """Follow what is served now and was not before, and let go what no longer is."""
        served = {resource.qualified: resource for resource in self.resources() if resource.plural not in UNWATCHED}
        for name in [name for name, resource in self._followed.items() if resource.custom and name not in served]:
            del self._followed[name]
            self.context.informers.drop(name)
        for name, resource in served.items():
            if name not in self._followed:
                self._followed[name] = resource
                self.context.informers.of(name).add_handler(self._handler(resource))

    def _handler(self, resource: Resource) -> Callable[[Object | None, Object | None], None]:
        def handler(old: Object | None, new: Object | None) -> None:
            for watcher in self._watchers:
                watcher(resource, old, new)

        return handler

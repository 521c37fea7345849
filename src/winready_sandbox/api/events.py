"""Events are kept for an hour, as a real cluster keeps them; who writes one sweeps out what is older."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from winready_sandbox.api.registry import Registry
from winready_sandbox.api.resources import Resource
from winready_sandbox.api.store import Entry
from winready_sandbox.clock import monotonic

LIFETIME = 3600.0
EVENTS = ("", "events")


class EventSweeper:
    """Forgets events that nobody has touched for their lifetime."""

    def __init__(self, registry: Registry, now: Callable[[], float] = monotonic) -> None:
        self._registry = registry
        self._now = now
        self._written: deque[tuple[float, Entry]] = deque()
        registry.committed.append(self.committed)

    def committed(self, resource: Resource, entry: Entry, gone: bool) -> None:
        """Note an event that was written and remove those whose time is over."""
        if resource.storage != EVENTS or gone:
            return
        self._written.append((self._now(), entry))
        bucket = self._registry.bucket(resource)
        while self._written and self._written[0][0] < self._now() - LIFETIME:
            _, old = self._written.popleft()
            if bucket.get(old.key) is old:
                self._registry.store.remove(EVENTS, old.key)

"""How long pods have been ready, in cluster seconds: timestamps in objects are too coarse for a fast clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winready_sandbox.api.objects import Object
from winready_sandbox.controllers.objects import namespaces, orphan_namespaces, owner_uids, pod_ready, uid_of

if TYPE_CHECKING:
    from winready_sandbox.clock import Clock
    from winready_sandbox.controllers.informer import Informer, Informers


class Readiness:
    """Since when each pod has been ready."""

    def __init__(self, pods: Informer, clock: Clock) -> None:
        self.clock = clock
        self._since: dict[str, float] = {}
        pods.add_handler(self._changed)

    def _changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None and pod_ready(new):
            self._since.setdefault(uid_of(new), self.clock.now())
        elif old is not None:
            self._since.pop(uid_of(old), None)

    def since(self, pod: Object) -> float:
        """When the pod became ready; infinity while it is not."""
        return self._since.get(uid_of(pod), float("inf"))

    def wait(self, pod: Object, min_ready_seconds: int) -> float:
        """Cluster seconds until the pod counts as available; 0 when it does, infinity while it is not ready."""
        return max(0.0, self.since(pod) + min_ready_seconds - self.clock.now())


def indexed_pods(informers: Informers) -> Informer:
    """The informer of pods with the indexes that controllers share."""
    pods = informers.of("pods")
    pods.add_index("owner", owner_uids)
    pods.add_index("orphans", orphan_namespaces)
    pods.add_index("namespace", namespaces)
    pods.add_index("node", lambda pod: [pod["spec"]["nodeName"]] if pod["spec"].get("nodeName") else [])
    return pods

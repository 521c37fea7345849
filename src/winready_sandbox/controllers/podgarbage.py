"""Pods that nobody else will take away: of nodes that are gone, never placed and deleted, or too many finished ones."""

from __future__ import annotations

from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.objects import Object, timestamp
from winready_sandbox.controllers.controller import Context
from winready_sandbox.controllers.objects import deleting, key_of, pod_finished, with_condition

PERIOD = 20.0
QUARANTINE = 40.0
"""Cluster seconds: a node may be away for a moment while it registers anew."""
FINISHED_LIMIT = 12_500


class PodGarbageCollector:
    """Looks around from time to time."""

    name = "pod-garbage-collector"

    def __init__(self, context: Context) -> None:
        self.context = context
        self.clock = context.clock
        self.nodes = context.informers.of("nodes")
        self._missing: dict[str, float] = {}

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self.clock.sleep(PERIOD)
            self.collect()

    def collect(self) -> None:
        """One round."""
        pods = list(self.context.pods)
        self._gone_nodes(pods)
        for pod in pods:
            if deleting(pod) and not pod["spec"].get("nodeName"):
                self._remove(pod)
        finished = sorted(
            (pod for pod in pods if pod_finished(pod)), key=lambda pod: pod["metadata"]["creationTimestamp"]
        )
        for pod in finished[: max(0, len(finished) - FINISHED_LIMIT)]:
            self._remove(pod)

    def _gone_nodes(self, pods: list[Object]) -> None:
        used = {pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}
        missing = {name for name in used if self.nodes.get(("", name)) is None}
        now = self.clock.now()
        self._missing = {name: self._missing.get(name, now) for name in missing}
        over = {name for name, since in self._missing.items() if now - since >= QUARANTINE}
        for pod in pods:
            if pod["spec"].get("nodeName") in over:
                self._mark_failed(pod)
                self._remove(pod)

    def _mark_failed(self, pod: Object) -> None:
        if pod_finished(pod):
            return
        message = "PodGC: node no longer exists"
        conditions = (pod.get("status") or {}).get("conditions") or []
        fields = {"lastProbeTime": timestamp(), "reason": "DeletionByPodGC", "message": message}
        status = {"phase": "Failed", "conditions": with_condition(conditions, "DisruptionTarget", "True", **fields)}
        namespace, name = key_of(pod)
        try:
            self.context.informers.patch("pods", name, {"status": status}, namespace, subresource="status")
        except ApiError as error:
            if error.code != 404:
                raise

    def _remove(self, pod: Object) -> None:
        self.context.informers.delete("pods", pod, grace=0)

"""ReplicaSets: as many matching pods as asked for."""

from __future__ import annotations

from collections import Counter

from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.objects import Object
from winready_sandbox.controllers.controller import Controller
from winready_sandbox.controllers.defects import LOOK_AGAIN
from winready_sandbox.controllers.objects import (
    Key,
    deleting,
    labels_of,
    namespaces,
    phase,
    pod_active,
    pod_ready,
    with_condition,
)
from winready_sandbox.controllers.pods import claim, create_pod, delete_pod, pod_from_template, selects
from winready_sandbox.controllers.selecting import equality

BURST = 500
"""The most pods created or deleted in one go."""


class ReplicaSetController(Controller):
    """Creates and deletes pods of ReplicaSets."""

    name = "replicaset-controller"
    kind = "ReplicaSet"
    api_version = "apps/v1"
    resource = "replicasets"

    def watch(self) -> None:
        """Follow ReplicaSets and pods."""
        self.sets = self.informers.of(self.resource)
        self.sets.add_index("namespace", namespaces)
        self.pods = self.context.pods
        self.readiness = self.context.readiness
        self.sets.add_handler(self.enqueue)
        self.pods.add_handler(self.enqueue_owner)
        self.pods.add_handler(self.enqueue_adopters(selects))

    def sync(self, key: Key) -> None:
        """Create what is missing, delete what is too much, report."""
        owner = self.sets.get(key)
        if owner is None:
            return
        pods = [pod for pod in claim(self, owner, "pods", pod_active) if pod_active(pod)]
        complete = (owner.get("status") or {}).get("replicas") == owner["spec"].get("replicas", 1)
        if self.context.defects.lost_replicas and complete:
            self.queue.add_after(key, LOOK_AGAIN)
            return
        failure: ApiError | None = None
        if not deleting(owner):
            try:
                pods = self._scale(owner, pods)
            except ApiError as error:
                failure = error
                pods = [pod for pod in claim(self, owner, "pods") if pod_active(pod)]
        self._report(owner, pods, failure)
        if failure is not None:
            raise failure

    def _scale(self, owner: Object, pods: list[Object]) -> list[Object]:
        wanted = owner["spec"].get("replicas", 1)
        missing = wanted - len(pods)
        if missing > 0:
            for _ in range(min(missing, BURST)):
                pod = pod_from_template(self, owner, owner["spec"]["template"])
                pod["metadata"]["generateName"] = owner["metadata"]["name"] + "-"
                pods.append(create_pod(self, owner, pod))
            return pods
        if missing == 0:
            return pods
        nodes = Counter(pod["spec"].get("nodeName") or "" for pod in pods)
        pods = sorted(pods, key=lambda pod: self._worth(pod, nodes))
        for pod in pods[: min(-missing, BURST)]:
            delete_pod(self, owner, pod)
        return pods[-missing:]

    def _worth(self, pod: Object, nodes: Counter[str]) -> tuple[float, ...]:
        """The least worth goes first: not placed, pending, not ready, cheap, crowded, ready or made most recently."""
        node = pod["spec"].get("nodeName") or ""
        annotations = pod["metadata"].get("annotations") or {}
        restarts = sum(s.get("restartCount", 0) for s in pod.get("status", {}).get("containerStatuses") or ())
        since = self.readiness.since(pod)
        return (
            1 if node else 0,
            {"Pending": 0, "Unknown": 1}.get(phase(pod), 2),
            1 if pod_ready(pod) else 0,
            int(annotations.get("controller.kubernetes.io/pod-deletion-cost") or 0),
            -nodes[node],
            0 if since == float("inf") else -since,
            -restarts,
            -int(pod["metadata"].get("resourceVersion") or 0),
        )

    def _report(self, owner: Object, pods: list[Object], failure: ApiError | None) -> None:
        spec = owner["spec"]
        labels = equality((spec["template"].get("metadata") or {}).get("labels"))
        waits = [self.readiness.wait(pod, spec.get("minReadySeconds") or 0) for pod in pods if pod_ready(pod)]
        status: Object = {"replicas": len(pods), "observedGeneration": owner["metadata"].get("generation", 1)}
        counts = {
            "fullyLabeledReplicas": sum(labels(labels_of(pod)) for pod in pods),
            "readyReplicas": len(waits),
            "availableReplicas": sum(wait == 0 for wait in waits),
        }
        status.update({name: count for name, count in counts.items() if count})
        conditions = [c for c in owner.get("status", {}).get("conditions") or () if c["type"] != "ReplicaFailure"]
        if failure is not None:
            old = owner.get("status", {}).get("conditions") or []
            conditions = old
            # The first words stay: later ones differ in the pod's name only, and every change would be another try.
            if not any(c["type"] == "ReplicaFailure" and c["status"] == "True" for c in old):
                fields = {"reason": "FailedCreate", "message": failure.message}
                conditions = with_condition(old, "ReplicaFailure", "True", **fields)
        if conditions:
            status["conditions"] = conditions
        self.write_status(owner, status)
        later = [wait for wait in waits if wait > 0]
        if later:
            self.queue.add_after((owner["metadata"]["namespace"], owner["metadata"]["name"]), min(later))

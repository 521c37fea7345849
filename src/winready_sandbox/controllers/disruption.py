"""Disruption budgets: how many pods may be evicted right now."""

from __future__ import annotations

from winready_sandbox.api.objects import Object
from winready_sandbox.controllers.controller import Controller
from winready_sandbox.controllers.objects import (
    Key,
    controller_reference,
    deleting,
    key_of,
    labels_of,
    namespaces,
    pod_active,
    pod_ready,
    resolve_percent,
    with_condition,
)
from winready_sandbox.controllers.selecting import label_selector

SCALED = {"ReplicaSet": "replicasets", "StatefulSet": "statefulsets", "Deployment": "deployments"}


class DisruptionController(Controller):
    """Keeps the status of PodDisruptionBudgets."""

    name = "disruption-controller"
    kind = "PodDisruptionBudget"
    api_version = "policy/v1"
    resource = "poddisruptionbudgets"

    def watch(self) -> None:
        """Follow budgets, pods and the workloads that say how many pods there should be."""
        self.budgets = self.informers.of(self.resource)
        self.budgets.add_index("namespace", namespaces)
        self.budgets.add_handler(self.enqueue)
        self.context.pods.add_handler(self._pod_changed)
        self.workloads = {kind: self.informers.of(resource) for kind, resource in SCALED.items()}
        for informer in self.workloads.values():
            informer.add_handler(self._workload_changed)

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        for pod in (old, new):
            for budget in self.budgets.by("namespace", pod["metadata"]["namespace"]) if pod else ():
                if pod and label_selector(budget["spec"].get("selector"))(labels_of(pod)):
                    self.queue.add(key_of(budget))

    def _workload_changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and old["spec"].get("replicas") != new["spec"].get("replicas"):
            for budget in self.budgets.by("namespace", new["metadata"]["namespace"]):
                self.queue.add(key_of(budget))

    def sync(self, key: Key) -> None:
        """Count and report."""
        budget = self.budgets.get(key)
        if budget is None or deleting(budget):
            return
        matches = label_selector(budget["spec"].get("selector"))
        pods = [pod for pod in self.context.pods.by("namespace", key[0]) if matches(labels_of(pod)) and pod_active(pod)]
        healthy = sum(pod_ready(pod) for pod in pods)
        expected, wanted = self._wanted(budget, pods)
        allowed = max(0, healthy - wanted) if expected else 0
        status = budget.get("status") or {}
        enough = allowed > 0
        conditions = with_condition(
            status.get("conditions") or [],
            "DisruptionAllowed",
            "True" if enough else "False",
            reason="SufficientPods" if enough else "InsufficientPods",
            message="",
            observedGeneration=budget["metadata"].get("generation", 1),
        )
        fresh: Object = {
            "observedGeneration": budget["metadata"].get("generation", 1),
            "currentHealthy": healthy,
            "desiredHealthy": wanted,
            "expectedPods": expected,
            "disruptionsAllowed": allowed,
            "conditions": conditions,
        }
        self.write_status(budget, fresh)

    def _wanted(self, budget: Object, pods: list[Object]) -> tuple[int, int]:
        """How many pods there should be, and how many of them must stay healthy."""
        spec = budget["spec"]
        if spec.get("maxUnavailable") is not None:
            expected = self._expected(pods)
            return expected, max(0, expected - resolve_percent(spec["maxUnavailable"], expected, up=True))
        least = spec.get("minAvailable", 1)
        if isinstance(least, str):
            expected = self._expected(pods)
            return expected, resolve_percent(least, expected, up=True)
        return len(pods), int(least)

    def _expected(self, pods: list[Object]) -> int:
        scales: dict[str, int] = {}
        for pod in pods:
            owner = self._top_owner(pod)
            uid = owner["metadata"]["uid"] if owner else pod["metadata"]["uid"]
            scales[uid] = owner["spec"].get("replicas", 1) if owner else 1
        return sum(scales.values())

    def _top_owner(self, obj: Object) -> Object | None:
        owner: Object | None = None
        reference = controller_reference(obj)
        while reference is not None and reference["kind"] in self.workloads:
            found = self.workloads[reference["kind"]].get((obj["metadata"]["namespace"], reference["name"]))
            if found is None:
                break
            owner, reference = found, controller_reference(found)
        return owner

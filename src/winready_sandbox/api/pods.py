"""Creates below a pod that store nothing of their own: binding it to a node, evicting it."""

from __future__ import annotations

from winready_sandbox.api.deletion import DeleteOptions
from winready_sandbox.api.errors import ApiError, bad_request, conflict
from winready_sandbox.api.objects import Object, timestamp
from winready_sandbox.api.registry import Call, Registry, Write
from winready_sandbox.api.selectors import matches_labels, selector_requirements
from winready_sandbox.api.store import Entry

SUCCESS: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def install(registry: Registry) -> None:
    """Answer bindings and evictions."""
    actions = PodActions(registry)
    registry.actions["", "pods", "binding"] = actions.bind
    registry.actions["", "bindings", ""] = actions.bind
    registry.actions["", "pods", "eviction"] = actions.evict


class PodActions:
    """Binding and eviction."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._pods = registry.resources.find("pods")
        self._budgets = registry.resources.find("poddisruptionbudgets")

    def bind(self, call: Call) -> Object:
        """Give a pod its node."""
        body_metadata = call.body.get("metadata") or {}
        name = call.name or body_metadata.get("name", "")
        target = call.body.get("target") or {}
        node = target.get("name", "")
        if not name:
            raise bad_request("name is required")
        if not node or target.get("kind", "Node") not in ("", "Node"):
            raise bad_request('a binding needs a target of kind "Node" with a name')
        entry = self._registry.get(self._pods, name, call.namespace)
        pod = entry.obj
        self._check_bindable(pod, name, node, body_metadata.get("uid"))
        metadata = {**pod["metadata"], "resourceVersion": ""}
        for field in ("annotations", "labels"):
            if body_metadata.get(field):
                metadata[field] = {**(metadata.get(field) or {}), **body_metadata[field]}
        condition = {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": timestamp(),
        }
        status = pod.get("status") or {}
        others = [each for each in status.get("conditions") or [] if each.get("type") != "PodScheduled"]
        bound = {
            **pod,
            "metadata": metadata,
            "spec": {**pod["spec"], "nodeName": node},
            "status": {**status, "conditions": [*others, condition]},
        }
        if not call.write.dry_run:
            self._registry.put(self._pods, entry, bound, call.write, "binding")
        return SUCCESS

    def _check_bindable(self, pod: Object, name: str, node: str, uid: str | None) -> None:
        subject = "pods/binding"
        if uid and uid != pod["metadata"]["uid"]:
            detail = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {pod['metadata']['uid']}"
            raise conflict(subject, "", name, detail)
        if "deletionTimestamp" in pod["metadata"]:
            raise conflict(subject, "", name, f"pod {name} is being deleted, cannot be assigned to a host")
        if taken := pod["spec"].get("nodeName"):
            raise conflict(subject, "", name, f'pod {name} is already assigned to node "{taken}"')
        if pod["spec"].get("schedulingGates"):
            raise conflict(subject, "", name, f"pod {name} has non-empty .spec.schedulingGates")

    def evict(self, call: Call) -> Object:
        """Delete a pod if its disruption budget allows."""
        how = call.body.get("deleteOptions") or {}
        options = DeleteOptions.read(how, {"dryRun": "All"} if call.write.dry_run else {})
        entry = self._registry.get(self._pods, call.name, call.namespace)
        phase = (entry.obj.get("status") or {}).get("phase")
        if phase not in ("Succeeded", "Failed", "Pending") and "deletionTimestamp" not in entry.obj["metadata"]:
            self._spend(entry, call.write, options.dry_run)
        if not options.dry_run:
            self._registry.put(self._pods, entry, _disrupted(entry.obj), call.write, "status")
        self._registry.delete(self._pods, call.name, call.namespace, options, call.write)
        return SUCCESS

    def _spend(self, pod: Entry, write: Write, dry_run: bool) -> None:
        labels = pod.obj["metadata"].get("labels")
        budgets = [
            budget
            for budget in self._registry.bucket(self._budgets).select(namespace=pod.key[0])
            if matches_labels(selector_requirements((budget.obj.get("spec") or {}).get("selector")), labels)
        ]
        if len(budgets) > 1:
            message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise ApiError(500, "InternalError", message)
        for budget in budgets:
            status = budget.obj.get("status") or {}
            allowed = status.get("disruptionsAllowed", 0)
            behind = status.get("observedGeneration", 0) < budget.obj["metadata"].get("generation", 0)
            if behind or allowed <= 0:
                raise _over_budget(budget.key[1], status, behind)
            if not dry_run:
                disrupted = {**(status.get("disruptedPods") or {}), pod.key[1]: timestamp()}
                spent = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
                self._registry.put(self._budgets, budget, {**budget.obj, "status": spent}, write, "status")


def _disrupted(pod: Object) -> Object:
    """A pod whose status says that it is evicted, as Jobs may ask for by their failure policy."""
    status = pod.get("status") or {}
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(),
    }
    others = [each for each in status.get("conditions") or [] if each.get("type") != condition["type"]]
    metadata = {**pod["metadata"], "resourceVersion": ""}
    return {**pod, "metadata": metadata, "status": {**status, "conditions": [*others, condition]}}


def _over_budget(name: str, status: Object, behind: bool) -> ApiError:
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    wanted, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    cause = f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently"
    if behind:
        cause = f"The disruption budget {name} is still being processed by the server."
    return ApiError(
        429, "TooManyRequests", message, {"causes": [{"reason": "DisruptionBudget", "message": cause}],
                                          **({"retryAfterSeconds": 10} if behind else {})},
    )  # fmt: skip

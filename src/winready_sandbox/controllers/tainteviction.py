"""Taint-based eviction: NoExecute taints drive pods off a node, at once or after the time they tolerate."""

from __future__ import annotations

from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.objects import Object, timestamp
from winready_sandbox.controllers.controller import Controller
from winready_sandbox.controllers.objects import Key, deleting, either, key_of, pod_finished, uid_of, with_condition
from winready_sandbox.controllers.selecting import tolerates


def patience(taints: list[Object], tolerations: list[Object]) -> float | None:
    """Cluster seconds that a pod may stay on a node with these taints; None is for ever."""
    bearable: list[float] = []
    for taint in taints:
        matching = [toleration for toleration in tolerations if tolerates(toleration, taint)]
        if not matching:
            return 0.0
        limits = [float(t["tolerationSeconds"]) for t in matching if t.get("tolerationSeconds") is not None]
        bearable += limits
    return max(0.0, min(bearable)) if bearable else None


class TaintEvictionController(Controller):
    """Deletes pods that do not, or no longer, tolerate their node."""

    name = "taint-eviction-controller"
    kind = "Pod"
    api_version = "v1"
    resource = "pods"

    def watch(self) -> None:
        """Follow the taints of nodes and the pods on them."""
        self.nodes = self.informers.of("nodes")
        self._since: dict[str, float] = {}
        """Since when a pod, by uid, has stood under taints it bears only for a while."""
        self.context.pods.add_handler(self._pod_changed)
        self.nodes.add_handler(self._node_changed)

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and _taints(old) == _taints(new):
            return
        for pod in self.context.pods.by("node", either(old, new)["metadata"]["name"]):
            self.queue.add(key_of(pod))

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            self._since.pop(uid_of(old or {"metadata": {}}), None)
        elif new["spec"].get("nodeName") and (old is None or old["spec"] != new["spec"]):
            self.queue.add(key_of(new))

    def sync(self, key: Key) -> None:
        """Evict a pod whose time is over, or come back when it is."""
        pod = self.context.pods.get(key)
        if pod is None or deleting(pod) or pod_finished(pod):
            return
        node = self.nodes.get(("", pod["spec"].get("nodeName") or ""))
        taints = _taints(node) if node else []
        allowed = patience(taints, pod["spec"].get("tolerations") or []) if taints else None
        if allowed is None:
            if self._since.pop(uid_of(pod), None) is not None:
                self._tell(pod, "Cancelling deletion of")
            return
        now = self.clock.now()
        since = now if allowed == 0 else self._since.setdefault(uid_of(pod), now)
        if now < since + allowed:
            self.queue.add_after(key, since + allowed - now)
            return
        self._evict(pod)

    def _evict(self, pod: Object) -> None:
        self._tell(pod, "Marking for deletion")
        conditions = (pod.get("status") or {}).get("conditions") or []
        message = "Taint manager: deleting due to NoExecute taint"
        fields = {"lastProbeTime": timestamp(), "reason": "DeletionByTaintManager", "message": message}
        status = {"conditions": with_condition(conditions, "DisruptionTarget", "True", **fields)}
        namespace, name = key_of(pod)
        try:
            self.informers.patch("pods", name, {"status": status}, namespace, subresource="status")
        except ApiError as error:
            if error.code != 404:
                raise
            return
        self.informers.delete("pods", pod)

    def _tell(self, pod: Object, what: str) -> None:
        namespace, name = key_of(pod)
        self.tell(pod, "TaintManagerEviction", f"{what} Pod {namespace}/{name}")


def _taints(node: Object) -> list[Object]:
    return [taint for taint in (node.get("spec") or {}).get("taints") or () if taint["effect"] == "NoExecute"]

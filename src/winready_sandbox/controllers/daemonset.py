"""DaemonSets: one pod on every node that its template allows."""

from __future__ import annotations

from winready_sandbox.api.objects import Object
from winready_sandbox.controllers.controller import Controller
from winready_sandbox.controllers.objects import (
    Key,
    condition,
    deleting,
    key_of,
    labels_of,
    namespaces,
    phase,
    pod_ready,
    resolve_percent,
    uid_of,
)
from winready_sandbox.controllers.pods import claim, create_pod, delete_pod, pod_from_template, selects
from winready_sandbox.controllers.revisions import HASH, Revisions
from winready_sandbox.controllers.selecting import required_node_affinity, untolerated

GENERATION = "pod-template-generation"
ADDED_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
    for name, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
]
ON_HOST_NETWORK = {"key": "node.kubernetes.io/network-unavailable", "operator": "Exists", "effect": "NoSchedule"}

BACKOFF = (1.0, 900.0)
"""Seconds between two replacements of failed pods on one node: the first pause, and the longest."""


class Placement:
    """Where the pods of a set belong."""

    def __init__(self, owner: Object) -> None:
        spec = owner["spec"]["template"]["spec"]
        self._matches = required_node_affinity(spec)
        self._tolerations = _tolerations(spec)

    def tolerates(self, node: Object) -> bool:
        """Whether a pod that is on the node may stay."""
        taints = (node.get("spec") or {}).get("taints") or []
        return self._matches(node) and untolerated(taints, self._tolerations, ("NoExecute",)) is None

    def wants(self, node: Object) -> bool:
        """Whether the node should get a pod."""
        taints = (node.get("spec") or {}).get("taints") or []
        return self.tolerates(node) and untolerated(taints, self._tolerations, ("NoSchedule",)) is None


class DaemonSetController(Controller):
    """Keeps one pod of each DaemonSet on each node it is for."""

    name = "daemonset-controller"
    kind = "DaemonSet"
    api_version = "apps/v1"
    resource = "daemonsets"

    def watch(self) -> None:
        """Follow DaemonSets, pods, revisions, and what nodes offer."""
        self._replaced: dict[tuple[str, str], tuple[float, float]] = {}
        """How long to wait before the next failed pod of a set on a node is replaced, and since when."""
        self.sets = self.informers.of(self.resource)
        self.sets.add_index("namespace", namespaces)
        self.nodes = self.informers.of("nodes")
        self.revisions = Revisions(self)
        self.sets.add_handler(self.enqueue)
        self.context.pods.add_handler(self.enqueue_owner)
        self.context.pods.add_handler(self.enqueue_adopters(selects))
        self.nodes.add_handler(self._node_changed)

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        """Heartbeats concern nobody; labels and taints concern every set."""
        if old is not None and new is not None and _offer(old) == _offer(new):
            return
        for owner in self.sets:
            self.queue.add(key_of(owner))

    def effort(self) -> int:
        """Every node is looked at."""
        return len(self.nodes)

    def sync(self, key: Key) -> None:
        """Create, delete, replace and report."""
        owner = self.sets.get(key)
        if owner is None or deleting(owner):
            return
        update, history = self.revisions.update(owner)
        template_hash = labels_of(update)[HASH]
        by_node: dict[str, list[Object]] = {}
        for pod in claim(self, owner, "pods"):
            by_node.setdefault(_node_of(pod), []).append(pod)
        placement = Placement(owner)
        try:
            for node in self.nodes:
                pods = by_node.setdefault(node["metadata"]["name"], [])
                self._serve(owner, node, pods, placement, template_hash)
            for name, pods in by_node.items():
                if self.nodes.get(("", name)) is None:
                    self._delete(owner, [pod for pod in pods if not pod["spec"].get("nodeName")])
            self._roll(owner, by_node, template_hash)
        finally:
            left = self.context.pods.by("owner", uid_of(owner))
            owner = self._report(owner, left, placement, template_hash)
        self.revisions.prune(owner, history, {labels_of(pod).get(HASH, "") for pod in left} | {template_hash})

    def _serve(self, owner: Object, node: Object, pods: list[Object], placement: Placement, template_hash: str) -> None:
        """One node: its pod if it should have one, no finished ones, none if it should not."""
        failed = [pod for pod in pods if phase(pod) == "Failed" and not deleting(pod)]
        if failed and not self._may_replace(owner, node):
            return
        for pod in failed:
            name, node_name = pod["metadata"]["name"], node["metadata"]["name"]
            namespace = owner["metadata"]["namespace"]
            message = f"Found failed daemon pod {namespace}/{name} on node {node_name}, will try to kill it"
            self.tell(owner, "FailedDaemonPod", message, warning=True)
        self._delete(owner, failed)
        if not placement.tolerates(node):
            self._delete(owner, [pod for pod in pods if not deleting(pod)])
        elif placement.wants(node) and not [pod for pod in pods if self.context.pods.get(key_of(pod)) is not None]:
            pods.append(self._create(owner, node["metadata"]["name"], template_hash))
        else:
            alive = sorted((p for p in pods if not deleting(p) and p not in failed), key=_age)
            current = [pod for pod in alive if labels_of(pod).get(HASH) == template_hash]
            keep = 2 if _surges(owner) and len(current) < len(alive) else 1
            self._delete(owner, alive[keep:])

    def _may_replace(self, owner: Object, node: Object) -> bool:
        """Whether a failed pod goes now: a kubelet that refuses the pods of a set would refuse the next one at once."""
        place, now = (uid_of(owner), node["metadata"]["name"]), self.clock.now()
        pause, since = self._replaced.get(place, (0.0, 0.0))
        if now < since + pause:
            self.queue.add_after(key_of(owner), since + pause - now)
            return False
        quiet = now > since + 2 * BACKOFF[1]
        self._replaced[place] = (BACKOFF[0] if quiet or not pause else min(2 * pause, BACKOFF[1]), now)
        return True

    def _delete(self, owner: Object, pods: list[Object]) -> None:
        for pod in pods:
            delete_pod(self, owner, pod)

    def _create(self, owner: Object, node: str, template_hash: str) -> Object:
        pod = pod_from_template(self, owner, owner["spec"]["template"])
        pod["metadata"]["generateName"] = owner["metadata"]["name"] + "-"
        annotations = owner["metadata"].get("annotations") or {}
        generation = annotations.get("deprecated.daemonset.template.generation")
        pod["metadata"]["labels"][HASH] = template_hash
        if generation:
            pod["metadata"]["labels"][GENERATION] = generation
        spec = pod["spec"]
        spec["tolerations"] = _tolerations(spec)
        affinity = spec["affinity"] = {**(spec.get("affinity") or {})}
        nodes = affinity["nodeAffinity"] = {**(affinity.get("nodeAffinity") or {})}
        by_name = [{"key": "metadata.name", "operator": "In", "values": [node]}]
        nodes["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [{"matchFields": by_name}]}
        return create_pod(self, owner, pod)

    def _roll(self, owner: Object, by_node: dict[str, list[Object]], template_hash: str) -> None:
        """Replace outdated pods: as many at once as may be unavailable, or after their successor when surging."""
        if (owner["spec"].get("updateStrategy") or {}).get("type") == "OnDelete":
            return
        rolling = (owner["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
        serving = {name: pods for name, pods in by_node.items() if pods and self.nodes.get(("", name)) is not None}
        surge = resolve_percent(rolling.get("maxSurge", 0), len(serving), up=True)
        if surge:
            self._roll_with_surge(owner, serving, template_hash, surge)
            return
        budget = max(1, resolve_percent(rolling.get("maxUnavailable", 1), len(serving), up=True))
        outdated = []
        for pods in serving.values():
            pod = max(pods, key=_age)
            available = not deleting(pod) and self._available(owner, pod)
            if labels_of(pod).get(HASH) == template_hash or deleting(pod):
                budget -= 0 if available else 1
            elif available:
                outdated.append(pod)
            else:
                budget -= 1
                self._delete(owner, [pod])
        self._delete(owner, outdated[: max(0, budget)])

    def _roll_with_surge(
        self, owner: Object, serving: dict[str, list[Object]], template_hash: str, budget: int
    ) -> None:
        waiting = []
        for name, pods in serving.items():
            fresh = [pod for pod in pods if labels_of(pod).get(HASH) == template_hash and not deleting(pod)]
            old = [pod for pod in pods if labels_of(pod).get(HASH) != template_hash and not deleting(pod)]
            if not old:
                continue
            if not fresh:
                waiting.append(name)
            elif self._available(owner, fresh[0]):
                self._delete(owner, old)
            else:
                budget -= 1
        for name in waiting[: max(0, budget)]:
            self._create(owner, name, template_hash)

    def _available(self, owner: Object, pod: Object) -> bool:
        wait = self.context.readiness.wait(pod, owner["spec"].get("minReadySeconds") or 0)
        if 0 < wait < float("inf"):
            self.queue.add_after(key_of(owner), wait)
        return pod_ready(pod) and wait == 0

    def _report(self, owner: Object, pods: list[Object], placement: Placement, template_hash: str) -> Object:
        by_node: dict[str, list[Object]] = {}
        for pod in pods:
            if pod["spec"].get("nodeName"):
                by_node.setdefault(pod["spec"]["nodeName"], []).append(pod)
        counts = dict.fromkeys(
            ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"), 0
        )
        updated = available = 0
        for node in self.nodes:
            here = sorted(by_node.get(node["metadata"]["name"], ()), key=_age)
            if not placement.wants(node):
                counts["numberMisscheduled"] += bool(here)
                continue
            counts["desiredNumberScheduled"] += 1
            if not here:
                continue
            counts["currentNumberScheduled"] += 1
            counts["numberReady"] += any(pod_ready(pod) for pod in here)
            available += any(self._available(owner, pod) for pod in here)
            updated += any(labels_of(pod).get(HASH) == template_hash for pod in here)
        status: Object = {**counts, "observedGeneration": owner["metadata"].get("generation", 1)}
        unavailable = counts["desiredNumberScheduled"] - available
        more = {"updatedNumberScheduled": updated, "numberAvailable": available, "numberUnavailable": unavailable}
        status.update({name: count for name, count in more.items() if count})
        return self.write_status(owner, status)


def _tolerations(spec: Object) -> list[Object]:
    added = [*ADDED_TOLERATIONS, ON_HOST_NETWORK] if spec.get("hostNetwork") else ADDED_TOLERATIONS
    own = spec.get("tolerations") or []
    return [*own, *(toleration for toleration in added if toleration not in own)]


def _node_of(pod: Object) -> str:
    """Where a pod is, or is meant to be."""
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    affinity = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    for term in affinity.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field["key"] == "metadata.name":
                return str(field["values"][0])
    return ""


def _surges(owner: Object) -> bool:
    rolling = (owner["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    return rolling.get("maxSurge", 0) not in (0, "0%")


def _age(pod: Object) -> tuple[str, int]:
    meta = pod["metadata"]
    return meta.get("creationTimestamp") or "", 1 if condition(pod, "Ready") is None else 0


def _offer(node: Object) -> object:
    spec = node.get("spec") or {}
    return labels_of(node), spec.get("taints"), spec.get("unschedulable")

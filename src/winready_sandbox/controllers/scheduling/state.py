"""What the scheduler knows of nodes and placed pods, kept up to date change by change, never recomputed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from winready_sandbox.api.objects import Object
from winready_sandbox.controllers.objects import Key, controller_reference, key_of, labels_of, pod_finished
from winready_sandbox.controllers.scheduling.resources import amounts, assumed_requests, pod_requests
from winready_sandbox.controllers.selecting import Predicate, label_selector, node_selector_term, required_node_affinity

HARD = ("NoSchedule", "NoExecute")
HOSTNAME = "kubernetes.io/hostname"
HostPort = tuple[str, str, int]
"""Host address, protocol, port."""


class Term:
    """One pod (anti-)affinity term of one pod."""

    __slots__ = ("everywhere", "key", "matches", "namespace_matches", "namespaces", "pairs", "weight")

    def __init__(self, pod: Object, term: Object, weight: int = 0) -> None:
        self.key: str = term["topologyKey"]
        self.weight = weight
        selector = selector_with_label_keys(term, labels_of(pod))
        self.matches: Predicate = label_selector(selector)
        self.pairs = list(((selector or {}).get("matchLabels") or {}).items())
        names = set(term.get("namespaces") or ())
        chosen = term.get("namespaceSelector")
        self.everywhere = chosen == {}
        self.namespace_matches: Predicate | None = label_selector(chosen) if chosen else None
        if not names and chosen is None:
            names = {pod["metadata"]["namespace"]}
        self.namespaces = names

    def covers(self, namespace: str, labels_of_namespace: Callable[[str], dict[str, str]]) -> bool:
        """Whether the term looks at pods of a namespace."""
        if self.everywhere or namespace in self.namespaces:
            return True
        return self.namespace_matches is not None and self.namespace_matches(labels_of_namespace(namespace))


def selector_with_label_keys(term: Object, labels: dict[str, str]) -> Object | None:
    """The selector with what matchLabelKeys and mismatchLabelKeys add from the pod's own labels."""
    selector: Object | None = term.get("labelSelector")
    more = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in term.get(field) or ()
        if key in labels
    ]
    if selector is None or not more:
        return selector
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *more]}


class PodInfo:
    """What matters of a pod for placing it and others."""

    __slots__ = (
        "affinity", "anti", "assumed", "key", "labels", "node_matches", "node_names", "owner", "pod", "ports",
        "preferred", "preferred_nodes", "requests", "spread", "tolerations",
    )  # fmt: skip

    def __init__(self, pod: Object) -> None:
        spec = pod["spec"]
        self.pod = pod
        self.key: Key = key_of(pod)
        self.labels = labels_of(pod)
        reference = controller_reference(pod)
        self.owner: str = reference["uid"] if reference else ""
        self.requests = pod_requests(spec)
        self.assumed = assumed_requests(spec, self.requests)
        self.ports = list(_host_ports(spec))
        self.tolerations: list[Object] = spec.get("tolerations") or []
        self.node_matches = required_node_affinity(spec)
        self.spread: list[Object] = spec.get("topologySpreadConstraints") or []
        affinity = spec.get("affinity") or {}
        nodes = affinity.get("nodeAffinity") or {}
        self.node_names = _named_nodes(nodes)
        self.preferred_nodes = [
            (entry["weight"], node_selector_term(entry["preference"]))
            for entry in nodes.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        ]
        together, apart = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
        required, preferred = (
            "requiredDuringSchedulingIgnoredDuringExecution",
            "preferredDuringSchedulingIgnoredDuringExecution",
        )
        self.affinity = [Term(pod, term) for term in together.get(required) or ()]
        self.anti = [Term(pod, term) for term in apart.get(required) or ()]
        self.preferred = [
            Term(pod, entry["podAffinityTerm"], sign * entry["weight"])
            for sign, terms in ((1, together), (-1, apart))
            for entry in terms.get(preferred) or ()
        ]


def _host_ports(spec: Object) -> Iterable[HostPort]:
    init = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    for container in [*spec["containers"], *init]:
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"]


def _named_nodes(affinity: Object) -> frozenset[str] | None:
    """The only nodes that required affinity by ``metadata.name`` leaves, as pods of a DaemonSet have it."""
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return None
    names: set[str] = set()
    for term in required.get("nodeSelectorTerms") or ():
        chosen = [f["values"] for f in term.get("matchFields") or () if f["operator"] == "In"]
        if not chosen:
            return None
        names.update(chosen[0])
    return frozenset(names)


class NodeInfo:
    """A node and the sum of what runs on it."""

    __slots__ = (
        "allocatable", "assumed_cpu", "assumed_memory", "hard", "labels", "name", "node", "owners", "pods", "ports",
        "requested", "soft", "unschedulable",
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Object = {}
        self.labels: dict[str, str] = {}
        self.allocatable: dict[str, int] = {}
        self.hard: list[Object] = []
        self.soft: list[Object] = []
        self.unschedulable = False
        self.pods: dict[Key, PodInfo] = {}
        self.requested: Counter[str] = Counter()
        self.assumed_cpu = 0
        self.assumed_memory = 0
        self.ports: Counter[HostPort] = Counter()
        self.owners: Counter[str] = Counter()

    def describe(self, node: Object) -> bool:
        """Take in a node's state; whether anything changed that could let a pod fit."""
        spec = node.get("spec") or {}
        taints = spec.get("taints") or []
        allocatable = amounts((node.get("status") or {}).get("allocatable"))
        unschedulable = bool(spec.get("unschedulable"))
        fresh = (labels_of(node), allocatable, taints, unschedulable)
        changed = not self.node or fresh != (
            self.labels,
            self.allocatable,
            self.hard + self.soft,
            self.unschedulable,
        )
        self.node = node
        self.labels, self.allocatable, _, self.unschedulable = fresh
        self.hard = [taint for taint in taints if taint["effect"] in HARD]
        self.soft = [taint for taint in taints if taint["effect"] not in HARD]
        return changed

    def add(self, pod: PodInfo) -> None:
        """A pod takes its place."""
        self.pods[pod.key] = pod
        self.requested.update(pod.requests)
        self.assumed_cpu += pod.assumed[0]
        self.assumed_memory += pod.assumed[1]
        self.ports.update(pod.ports)
        if pod.owner:
            self.owners[pod.owner] += 1

    def remove(self, pod: PodInfo) -> None:
        """A pod gives its place back."""
        del self.pods[pod.key]
        self.requested.subtract(pod.requests)
        self.assumed_cpu -= pod.assumed[0]
        self.assumed_memory -= pod.assumed[1]
        for port in pod.ports:
            self.ports[port] -= 1
            if not self.ports[port]:
                del self.ports[port]
        if pod.owner:
            self.owners[pod.owner] -= 1
            if not self.owners[pod.owner]:
                del self.owners[pod.owner]


class ClusterState:
    """All nodes and placed pods, with the indexes that affinity needs."""

    def __init__(self) -> None:
        self._infos: dict[str, NodeInfo] = {}
        self.nodes: dict[str, NodeInfo] = {}
        """The nodes that exist; pods may be bound to others."""
        self._hosts: dict[str, dict[str, NodeInfo]] = {}
        """Nodes by their host name, which many pods are tied to."""
        self._placed: dict[Key, tuple[str, PodInfo]] = {}
        self._labelled: dict[tuple[str, str], dict[Key, PodInfo]] = {}
        self.repelling: dict[Key, PodInfo] = {}
        """Placed pods with required anti-affinity."""
        self.attracting: dict[Key, PodInfo] = {}
        """Placed pods with affinity or preferences, which weigh on where others go."""

    def set_node(self, node: Object) -> bool:
        """A node is new or changed; whether that could let a pod fit."""
        name = node["metadata"]["name"]
        info = self._infos.setdefault(name, NodeInfo(name))
        self.nodes[name] = info
        self._move(info, labels_of(node).get(HOSTNAME))
        return info.describe(node)

    def _move(self, info: NodeInfo, host: str | None) -> None:
        before = info.labels.get(HOSTNAME)
        if before is not None and before != host:
            self._hosts.get(before, {}).pop(info.name, None)
        if host is not None:
            self._hosts.setdefault(host, {})[info.name] = info

    def tied(self, pod: PodInfo) -> list[NodeInfo] | None:
        """The only nodes that a pod's selector by host name leaves; None when it has none."""
        host = (pod.pod["spec"].get("nodeSelector") or {}).get(HOSTNAME)
        return None if host is None else list(self._hosts.get(host, {}).values())

    def drop_node(self, name: str) -> None:
        """A node is gone; pods bound to it may still be there."""
        info = self.nodes.pop(name, None)
        if info is not None:
            self._move(info, None)
            info.node, info.labels = {}, {}
            if not info.pods:
                self._infos.pop(name, None)

    def set_pod(self, pod: Object) -> None:
        """A placed pod is new or changed."""
        key, name = key_of(pod), pod["spec"]["nodeName"]
        known = self._placed.get(key)
        if known is not None and not _replaced(known[1].pod, pod):
            known[1].pod = pod
            return
        self.drop_pod(key)
        if pod_finished(pod):
            return
        info = PodInfo(pod)
        self._placed[key] = (name, info)
        self._infos.setdefault(name, NodeInfo(name)).add(info)
        for pair in info.labels.items():
            self._labelled.setdefault(pair, {})[key] = info
        if info.anti:
            self.repelling[key] = info
        if info.affinity or info.preferred:
            self.attracting[key] = info

    def drop_pod(self, key: Key) -> bool:
        """A pod is gone; whether it had a place."""
        known = self._placed.pop(key, None)
        if known is None:
            return False
        name, info = known
        node = self._infos[name]
        node.remove(info)
        if not node.node and not node.pods:
            self._infos.pop(name, None)
        for pair in info.labels.items():
            self._labelled[pair].pop(key)
            if not self._labelled[pair]:
                del self._labelled[pair]
        self.repelling.pop(key, None)
        self.attracting.pop(key, None)
        return True

    def node_of(self, key: Key) -> NodeInfo | None:
        """Where a placed pod is, if that node exists."""
        known = self._placed.get(key)
        return self.nodes.get(known[0]) if known else None

    def matching(self, pairs: list[tuple[str, str]], matches: Predicate) -> Iterable[PodInfo]:
        """Placed pods with these labels; the rarest label is asked first."""
        if pairs:
            found = min((self._labelled.get(pair, {}) for pair in pairs), key=len).values()
            return [info for info in found if matches(info.labels)]
        return [info for _, info in self._placed.values() if matches(info.labels)]


def _replaced(old: Object, new: Object) -> bool:
    """Whether anything changed that the accounts depend on: most changes of a placed pod are status."""
    return (
        old["spec"] != new["spec"]
        or old["metadata"]["uid"] != new["metadata"]["uid"]
        or labels_of(old) != labels_of(new)
        or pod_finished(old) != pod_finished(new)
    )

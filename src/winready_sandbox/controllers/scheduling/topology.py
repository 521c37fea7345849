"""Where a pod may go because of other pods: affinity, anti-affinity and spread, over any topology key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from winready_sandbox.api.objects import Object
from winready_sandbox.controllers.objects import labels_of
from winready_sandbox.controllers.scheduling.filters import Filter, Misfit
from winready_sandbox.controllers.scheduling.state import (
    HARD,
    ClusterState,
    NodeInfo,
    PodInfo,
    Term,
    selector_with_label_keys,
)
from winready_sandbox.controllers.selecting import label_selector, untolerated

Domain = tuple[str, str]
"""Topology key and value."""

EXISTING_ANTI_AFFINITY = Misfit(("node(s) didn't satisfy existing pods anti-affinity rules",))
AFFINITY = Misfit(("node(s) didn't match pod affinity rules",), True)
ANTI_AFFINITY = Misfit(("node(s) didn't match pod anti-affinity rules",))
SPREAD = Misfit(("node(s) didn't match pod topology spread constraints",))
SPREAD_LABEL = Misfit(("node(s) didn't match pod topology spread constraints (missing required label)",), True)


class Relations:
    """What placed pods mean for others."""

    def __init__(self, state: ClusterState, namespace_labels: Callable[[str], dict[str, str]]) -> None:
        self.state = state
        self.namespace_labels = namespace_labels

    def filters(self, pod: PodInfo) -> list[Filter]:
        """The filters that apply to a pod; none for most."""
        found = [self._spread(pod, c) for c in pod.spread if c.get("whenUnsatisfiable") != "ScheduleAnyway"]
        affinity = self._affinity(pod)
        return [*found, affinity] if affinity else found

    def _domains(self, term: Term) -> Counter[str]:
        """How many pods that a term selects are in each domain of its key."""
        counts: Counter[str] = Counter()
        for other in self.state.matching(term.pairs, term.matches):
            if not term.covers(other.key[0], self.namespace_labels):
                continue
            node = self.state.node_of(other.key)
            if node is not None and term.key in node.labels:
                counts[node.labels[term.key]] += 1
        return counts

    def selects(self, term: Term, pod: PodInfo) -> bool:
        """Whether a term selects a pod."""
        return term.matches(pod.labels) and term.covers(pod.key[0], self.namespace_labels)

    def _affinity(self, pod: PodInfo) -> Filter | None:
        forbidden: set[Domain] = set()
        for other in self.state.repelling.values():
            for term in other.anti:
                if self.selects(term, pod):
                    node = self.state.node_of(other.key)
                    if node is not None and term.key in node.labels:
                        forbidden.add((term.key, node.labels[term.key]))
        if not forbidden and not pod.affinity and not pod.anti:
            return None
        together = [(term.key, self._domains(term)) for term in pod.affinity]
        apart = [(term.key, self._domains(term)) for term in pod.anti]
        first = pod.affinity and not any(counts for _, counts in together)
        founder = first and all(self.selects(term, pod) for term in pod.affinity)

        def check(info: NodeInfo) -> Misfit | None:
            labels = info.labels
            if together:
                if not all(key in labels for key, _ in together):
                    return AFFINITY
                if not founder and not all(counts[labels[key]] for key, counts in together):
                    return AFFINITY
            if any(key in labels and counts[labels[key]] for key, counts in apart):
                return ANTI_AFFINITY
            if any(labels.get(key) == value for key, value in forbidden):
                return EXISTING_ANTI_AFFINITY
            return None

        return check

    def spread_counts(self, pod: PodInfo, constraint: Object) -> Counter[str]:
        """Matching pods per domain, of the nodes that the constraint's policies include; empty domains count 0."""
        key = constraint["topologyKey"]
        selector = selector_with_label_keys(constraint, labels_of(pod.pod))
        matches = label_selector(selector)
        counts: Counter[str] = Counter()
        for info in self.state.nodes.values():
            if key in info.labels and self._included(pod, info, constraint):
                counts.setdefault(info.labels[key], 0)
        pairs = list(((selector or {}).get("matchLabels") or {}).items())
        for other in self.state.matching(pairs, matches):
            node = self.state.node_of(other.key)
            if (
                other.key[0] == pod.key[0]
                and node is not None
                and node.labels.get(key) in counts
                and not other.pod["metadata"].get("deletionTimestamp")
                and self._included(pod, node, constraint)
            ):
                counts[node.labels[key]] += 1
        return counts

    @staticmethod
    def _included(pod: PodInfo, info: NodeInfo, constraint: Object) -> bool:
        if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not pod.node_matches(info.node):
            return False
        if constraint.get("nodeTaintsPolicy", "Ignore") == "Honor":
            return untolerated(info.hard, pod.tolerations, HARD) is None
        return True

    def _spread(self, pod: PodInfo, constraint: Object) -> Filter:
        key = constraint["topologyKey"]
        counts = self.spread_counts(pod, constraint)
        least = min(counts.values(), default=0)
        if len(counts) < (constraint.get("minDomains") or 1):
            least = 0
        itself = 1 if label_selector(constraint.get("labelSelector"))(pod.labels) else 0
        most = constraint["maxSkew"]

        def check(info: NodeInfo) -> Misfit | None:
            value = info.labels.get(key)
            if value is None:
                return SPREAD_LABEL
            return SPREAD if counts[value] + itself - least > most else None

        return check

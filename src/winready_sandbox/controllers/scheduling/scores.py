"""Which of the nodes that fit is best: the real scheduler's scores and weights, as far as they matter here."""

from __future__ import annotations

from collections import Counter

from winready_sandbox.controllers.scheduling.state import NodeInfo, PodInfo
from winready_sandbox.controllers.scheduling.topology import Relations
from winready_sandbox.controllers.selecting import tolerated

TAINTS, NODE_AFFINITY, SPREAD, POD_AFFINITY = 3.0, 2.0, 2.0, 2.0


def best(pod: PodInfo, nodes: list[NodeInfo], relations: Relations, turn: int) -> NodeInfo:
    """The node with the highest score; among equals they take turns."""
    if len(nodes) == 1:
        return nodes[0]
    scores = [_room(pod, info) for info in nodes]
    _blend(scores, [float(-info.owners[pod.owner]) if pod.owner else 0.0 for info in nodes], SPREAD)
    if any(info.soft for info in nodes):
        _blend(scores, [float(-sum(not tolerated(pod.tolerations, t) for t in info.soft)) for info in nodes], TAINTS)
    if pod.preferred_nodes:
        wanted = [float(sum(w for w, test in pod.preferred_nodes if test(info.node))) for info in nodes]
        _blend(scores, wanted, NODE_AFFINITY)
    _blend(scores, _spread(pod, nodes, relations), SPREAD)
    _blend(scores, _attraction(pod, nodes, relations), POD_AFFINITY)
    top = max(scores)
    equals = [info for info, score in zip(nodes, scores, strict=True) if score == top]
    return equals[turn % len(equals)]


def _room(pod: PodInfo, info: NodeInfo) -> float:
    """Least allocated plus balanced allocation, each 0 to 100."""
    cpu, memory = info.allocatable.get("cpu", 0), info.allocatable.get("memory", 0)
    if not cpu or not memory:
        return 0.0
    used_cpu = min(1.0, (info.assumed_cpu + pod.assumed[0]) / cpu)
    used_memory = min(1.0, (info.assumed_memory + pod.assumed[1]) / memory)
    free = ((1 - used_cpu) + (1 - used_memory)) * 50
    return free + 100 - abs(used_cpu - used_memory) * 50


def _blend(scores: list[float], raw: list[float], weight: float) -> None:
    """Add a score stretched to 0..100; one that is the same everywhere says nothing."""
    low, high = min(raw), max(raw)
    if low == high:
        return
    for position, value in enumerate(raw):
        scores[position] += weight * 100 * (value - low) / (high - low)


def _spread(pod: PodInfo, nodes: list[NodeInfo], relations: Relations) -> list[float]:
    raw = [0.0] * len(nodes)
    for constraint in pod.spread:
        if constraint.get("whenUnsatisfiable") != "ScheduleAnyway":
            continue
        counts, key = relations.spread_counts(pod, constraint), constraint["topologyKey"]
        for position, info in enumerate(nodes):
            raw[position] -= counts[info.labels.get(key, "")]
    return raw


def _attraction(pod: PodInfo, nodes: list[NodeInfo], relations: Relations) -> list[float]:
    """What the pod prefers of others, and what placed pods prefer of it."""
    weights: Counter[tuple[str, str]] = Counter()
    state = relations.state
    for term in pod.preferred:
        for other in state.matching(term.pairs, term.matches):
            node = state.node_of(other.key)
            if node is not None and term.key in node.labels and relations.selects(term, other):
                weights[term.key, node.labels[term.key]] += term.weight
    for other in state.attracting.values():
        node = state.node_of(other.key)
        if node is None:
            continue
        for term in (*other.preferred, *other.affinity):
            if term.key in node.labels and relations.selects(term, pod):
                weights[term.key, node.labels[term.key]] += term.weight or 1
    if not weights:
        return [0.0] * len(nodes)
    return [
        float(sum(weight for (key, value), weight in weights.items() if info.labels.get(key) == value))
        for info in nodes
    ]

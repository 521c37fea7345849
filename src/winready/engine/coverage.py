"""Which nodes a run looks at, and what of the cluster it therefore says nothing about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import msgspec

from winready.cluster.inventory import Inventory, Node

ZONE = "topology.kubernetes.io/zone"
POOLS = (
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "eks.amazonaws.com/nodegroup",
    "alpha.eksctl.io/nodegroup-name",
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "machine.openshift.io/cluster-api-machineset",
    "node-pool",
    "nodepool",
    "pool",
)
"""Labels by which the large vendors, and many others, name a group of equal machines."""
MACHINE = "node.kubernetes.io/instance-type"


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """Which nodes a verdict is about."""

    judged: list[str]
    not_judged: dict[str, str]
    """Windows nodes and why nothing is known of them."""
    skipped: list[str]
    """Those of them that could have been judged."""
    chosen_by: str = ""
    """The option that narrowed the run down, where one did."""
    linux_not_judged: dict[str, str] = {}
    """Linux nodes on which nothing of the run was, and why. Verdicts do not count them: two are enough to judge Windows
    nodes, and what is wrong with another one stays unseen."""

    def __str__(self) -> str:
        """As a verdict says it; empty when all were judged."""
        if not self.not_judged:
            return ""
        total = len(self.judged) + len(self.not_judged)
        words = f"{len(self.judged)} of {total} Windows nodes judged"
        return f"{words}, chosen by {self.chosen_by}" if self.chosen_by else words


def cover(
    inventory: Inventory | None, judged: Collection[str], left_out: dict[str, str], linux: Sequence[str]
) -> Coverage:
    """What is known by the inventory and the plan; all of it can be computed again from a journal."""
    judged = frozenset(judged)
    windows = [node for node in inventory.nodes if node.windows] if inventory else []
    others = [node for node in windows if node.name not in judged]
    beside = [node for node in inventory.nodes if node.os == "linux" and node.name not in linux] if inventory else []
    return Coverage(
        judged=[node.name for node in windows if node.name in judged],
        not_judged={node.name: left_out.get(node.name) or why_not(node) for node in others},
        skipped=[node.name for node in others if not node.unusable],
        chosen_by="--node-selector" if any(node.left_out for node in others) else "",
        linux_not_judged={node.name: left_out.get(node.name) or why_not(node) for node in beside},
    )


def why_not(node: Node) -> str:
    """Why a node takes no part, as far as it is the node's own matter."""
    return node.unusable or node.left_out


def choose(nodes: Sequence[Node], most: int | None) -> list[Node]:
    """As many nodes, spread over builds, zones, pools, kinds of machines and versions, in the order of their names.

    The same nodes always give the same choice.
    """
    if most is None or len(nodes) <= most:
        return list(nodes)
    left = sorted(nodes, key=lambda node: node.name)
    seen: Counter[tuple[int, str]] = Counter()
    chosen: list[Node] = []
    while len(chosen) < most:
        best = min(left, key=lambda node: _likeness(node, seen))
        left.remove(best)
        chosen.append(best)
        seen.update(enumerate(_traits(best)))
    return sorted(chosen, key=lambda node: node.name)


def _traits(node: Node) -> list[str]:
    """What tells nodes apart, the most telling first."""
    pool = next((node.labels[key] for key in POOLS if key in node.labels), "")
    versions = f"{node.kubelet} {node.runtime}"
    return [node.build, node.labels.get(ZONE, ""), pool, node.labels.get(MACHINE, ""), versions]


def _likeness(node: Node, seen: Counter[tuple[int, str]]) -> tuple[int, list[int], str]:
    """How much a node is like those that are chosen already: what shows most that is new comes first."""
    counts = [seen[trait] for trait in enumerate(_traits(node))]
    return -counts.count(0), counts, node.name

"""The nodes of a cluster: those that failures lead to one by one, those that are alike together."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from winready.cluster.inventory import Node
from winready.report.folding import ranges
from winready.report.record import Record

EACH = 12
"""So many nodes are still shown one by one."""
MOST = 40
"""And so many that failures lead to."""
_WORD = re.compile(r"[\w.-]+")


@dataclass(frozen=True)
class Row:
    """One node, or several that differ in nothing but name and address."""

    names: str
    count: int
    node: Node
    part: str
    """What part they take in the run."""
    failures: list[str]
    """Failed requirements whose next step leads there."""

    @property
    def one(self) -> bool:
        """Whether it is a single node."""
        return self.count == 1


def make_nodes(record: Record) -> list[Row]:
    """A row for each node, or for each kind of them where there are many."""
    nodes = record.cluster.nodes if record.cluster else []
    led = leading(record, {node.name for node in nodes})
    groups: dict[tuple[str, ...], list[Node]] = {}
    for node in nodes:
        part = _part(record, node)
        alone = node.name if len(nodes) <= EACH or (node.name in led and len(led) <= MOST) else ""
        failures = ",".join(led.get(node.name, ()))
        key = (alone, failures, node.os, node.os_image, node.build, node.kubelet, node.runtime, part)
        groups.setdefault(key, []).append(node)
    rows = [
        Row(
            names=ranges((node.name for node in same), MOST),
            count=len(same),
            node=same[0],
            part=_part(record, same[0]),
            failures=led.get(same[0].name, []),
        )
        for same in groups.values()
    ]
    return sorted(rows, key=lambda row: (-len(row.failures), row.count if len(nodes) > EACH else 0))


def leading(record: Record, names: Collection[str]) -> dict[str, list[str]]:
    """Failed requirements by the nodes that their next steps lead to."""
    found: dict[str, list[str]] = {}
    for item in record.requirements:
        if item.outcome == "failed":
            for word in dict.fromkeys(match.rstrip(".") for match in _WORD.findall(item.next_step)):
                if word in names:
                    found.setdefault(word, []).append(item.id)
    return found


def _part(record: Record, node: Node) -> str:
    if why := node.unusable or node.left_out:
        return f"not used: {why}"
    if record.plan and node.name in record.plan.nodes_left_out:
        return f"left out: {record.plan.nodes_left_out[node.name]}"
    return "judged" if node.windows else "counterpart"

"""What rules and workloads are judged by, gathered from a run's events: the run itself judges by it, and so does
whoever reads the journal later.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from winready.cluster.inventory import Inventory, Node
from winready.engine import events
from winready.engine.coverage import cover
from winready.engine.sights import Sights
from winready.engine.terms import Terms
from winready.engine.workloads import Step, Workload


@dataclass
class Facts:
    """A run as far as its rules and workloads are concerned."""

    terms: Terms | None = None
    """None: a journal from before the terms were written down; its rules cannot be judged again."""
    inventory: Inventory | None = None
    judged_nodes: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    planned: bool = False
    sights: Sights = field(default_factory=Sights)
    workloads: list[Workload] = field(default_factory=list)
    """What the run is to answer for besides its verdict."""
    tried: list[tuple[tuple[str, ...], Step]] = field(default_factory=list)
    """How far pods of workloads came, by workload."""

    def apply(self, event: events.AnyEvent) -> None:
        """Take in one more event."""
        match event:
            case events.RunStarted():
                self.terms = event.terms
            case events.InventoryTaken():
                self.inventory = event.inventory
            case events.PlanMade():
                self.planned = True
                self.judged_nodes, self.left_out = event.plan.windows_nodes, event.plan.nodes_left_out
            case events.PodsSeen():
                self.sights = self.sights.plus(event.sights)
            case events.WorkloadsRead():
                self.workloads = event.workloads
            case events.WorkloadTried():
                self.tried.append(((event.path, event.kind, event.namespace, event.name), event.step))
            case _:
                pass

    @property
    def windows_nodes(self) -> list[Node]:
        """The Windows nodes that are judged."""
        return [node for node in self.nodes if node.name in self.judged_nodes]

    @property
    def nodes(self) -> list[Node]:
        """All nodes of the cluster."""
        return self.inventory.nodes if self.inventory else []

    @property
    def coverage(self) -> str:
        """How many of the Windows nodes are judged; empty when all are, or when it never came to a plan."""
        return str(cover(self.inventory, self.judged_nodes, self.left_out, ())) if self.planned else ""


def gather(happened: Iterable[events.AnyEvent]) -> Facts:
    """The facts in a journal."""
    facts = Facts()
    for event in happened:
        facts.apply(event)
    return facts

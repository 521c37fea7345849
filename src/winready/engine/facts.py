"""What the rules look at, gathered from a run's events: the run itself judges by it, and so does whoever reads the
journal later.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from winready.cluster.inventory import Inventory, Node
from winready.engine import events
from winready.engine.coverage import cover
from winready.engine.sights import Sights
from winready.engine.terms import Terms


@dataclass
class Facts:
    """A run as far as its rules are concerned."""

    terms: Terms | None = None
    """None: a journal from before the terms were written down; its rules cannot be judged again."""
    inventory: Inventory | None = None
    judged_nodes: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    planned: bool = False
    sights: Sights = field(default_factory=Sights)

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
            case _:
                pass

    @property
    def windows_nodes(self) -> list[Node]:
        """The Windows nodes that are judged."""
        nodes = self.inventory.nodes if self.inventory else []
        return [node for node in nodes if node.name in self.judged_nodes]

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

"""How one fault is seen: the same probe before, during and after, on the broken node and on one that is not."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.faults.bench import Probe


@dataclass(frozen=True)
class Case:
    """A fault, what shows it, and what that looks like."""

    fault: str
    probe: Probe
    healthy: str
    broken: str
    number: int = 1
    """Of the node that is broken; number 2 of its OS must stay as it is."""
    beside: tuple[Probe, str] | None = None
    """For faults of the whole cluster: what must stay as it is."""

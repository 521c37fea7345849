"""What a fault is: a small named object that changes one behaviour of one part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Where = Literal["windows", "linux", "cluster"]


@dataclass(frozen=True)
class Fault:
    """One defect of a real cluster."""

    name: str
    description: str
    """What is broken, in a sentence for people."""
    part: str
    """The part whose behaviour changes, such as ``network.proxy``: the root, then the field of its defects."""
    changes: dict[str, Any]
    """Fields of that part's defects and the values that break it."""
    where: Where = "windows"
    """Which nodes can have it; ``cluster`` faults belong to the control plane."""
    after_reboot: bool = False
    """The node is well until it has been rebooted: only then do the changes come into force."""
    everywhere: bool = False
    """Breaks every such node unless a node is named; otherwise the first one."""
    fact: str = ""
    """Where in the facts about Windows this comes from."""

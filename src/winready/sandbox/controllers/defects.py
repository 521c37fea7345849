"""What can be wrong with the controllers of a cluster; everything is healthy unless a fault sets it."""

from __future__ import annotations

from dataclasses import dataclass, field

LOOK_AGAIN = 5.0
"""Cluster seconds after which a controller that a fault holds back looks whether it is healed."""


@dataclass
class ControllerDefects:
    """Defects of the scheduler and of the controllers."""

    overcommitted: set[str] = field(default_factory=set)
    """Nodes on which the scheduler places pods without looking at the room there is."""
    endpoints_frozen: bool = False
    """EndpointSlices and Endpoints stay as they are, whatever becomes of services and pods."""
    lost_replicas: bool = False
    """A pod that a ReplicaSet loses is not replaced."""

"""What can be wrong with the controllers of a cluster; everything is healthy unless a fault sets it."""

from __future__ import annotations

from dataclasses import dataclass

LOOK_AGAIN = 5.0
"""Cluster seconds after which a controller that a fault holds back looks whether it is healed."""


@dataclass
class ControllerDefects:
    """Defects of the controllers."""

    endpoints_frozen: bool = False
    """EndpointSlices and Endpoints stay as they are, whatever becomes of services and pods."""
    lost_replicas: bool = False
    """A pod that a ReplicaSet loses is not replaced."""


@dataclass
class PlacementDefects:
    """Defects of the scheduler where it concerns one node."""

    overcommitted: bool = False
    """Pods are placed there without looking at the room there is."""

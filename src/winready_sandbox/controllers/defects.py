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
    endpoints_lag: float = 0.0
    """Cluster seconds by which the endpoints of a service are late whose pods came and went often (0: none)."""
    lost_replicas: bool = False
    """A pod that a ReplicaSet loses is not replaced."""


@dataclass
class PlacementDefects:
    """Defects of the scheduler where it concerns one node."""

    overcommitted: bool = False
    """Pods are placed there without looking at the room there is."""
    uncounted: str = ""
    """A resource that is not counted there, such as ``cpu``."""
    others_uncounted: bool = False
    """What the pods there have already is not counted: each new one is measured alone."""
    patience: float = 0.0
    """Cluster seconds after which a pod that fits nowhere is placed there all the same (0: never)."""

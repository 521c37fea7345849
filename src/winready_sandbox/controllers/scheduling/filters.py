"""Why a pod does not fit a node, in the real scheduler's order and words; the first filter to object speaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from winready_sandbox.api.objects import Object
from winready_sandbox.controllers.defects import PlacementDefects
from winready_sandbox.controllers.scheduling.state import HARD, NodeInfo, PodInfo
from winready_sandbox.controllers.selecting import tolerated, untolerated

UNSCHEDULABLE_TAINT: Object = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
ANY_ADDRESS = ("0.0.0.0", "")


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why one node does not do, and whether evicting pods from it could help."""

    reasons: tuple[str, ...]
    hopeless: bool = False


Filter = Callable[[NodeInfo], Misfit | None]

UNSCHEDULABLE = Misfit(("node(s) were unschedulable",), True)
NODE_NAME = Misfit(("node(s) didn't match the requested node name",), True)
NODE_AFFINITY = Misfit(("node(s) didn't match Pod's node affinity/selector",), True)
HEALTHY = PlacementDefects()
PORTS = Misfit(("node(s) didn't have free ports for the requested pod ports",))


def node_filters(
    pod: PodInfo, minor: int, placement: Mapping[str, PlacementDefects] | None = None, waited: float = 0.0
) -> Filter:
    """What a pod demands of a node by itself: everything but its relation to other pods and volumes.

    ``waited`` is for how many cluster seconds it has been waiting for a place.
    """
    defective = placement or {}
    matches, tolerations, requests, ports = pod.node_matches, pod.tolerations, pod.requests, pod.ports
    constrained = bool(pod.pod["spec"].get("nodeSelector") or pod.pod["spec"].get("affinity"))

    def check(info: NodeInfo) -> Misfit | None:
        if info.unschedulable and not tolerated(tolerations, UNSCHEDULABLE_TAINT):
            return UNSCHEDULABLE
        if info.hard:
            taint = untolerated(info.hard, tolerations, HARD)
            if taint is not None:
                return Misfit((taint_text(taint, minor),), True)
        if constrained and not matches(info.node):
            return NODE_AFFINITY
        if ports and info.ports and any(_taken(info, port) for port in ports):
            return PORTS
        defects = defective.get(info.name, HEALTHY)
        if defects.overcommitted or 0 < defects.patience <= waited:
            return None
        return _room(info, requests, minor, defects)

    return check


def taint_text(taint: Object, minor: int) -> str:
    """The reason for a taint: taints are no longer named since 1.34's later releases."""
    if minor >= 34:
        return "node(s) had untolerated taint(s)"
    text = f"{{{taint['key']}: {taint.get('value') or ''}}}"
    if minor >= 24:
        return f"node(s) had untolerated taint {text}"
    return f"node(s) had taint {text}, that the pod didn't tolerate"


def _taken(info: NodeInfo, port: tuple[str, str, int]) -> bool:
    address, protocol, number = port
    if address in ANY_ADDRESS:
        return any(used[1:] == (protocol, number) for used in info.ports)
    return port in info.ports or ("0.0.0.0", protocol, number) in info.ports


def _room(info: NodeInfo, requests: dict[str, int], minor: int, defects: PlacementDefects) -> Misfit | None:
    allocatable, requested = info.allocatable, {} if defects.others_uncounted else info.requested
    reasons: list[str] = []
    hopeless = False
    if len(info.pods) + 1 > allocatable.get("pods", 0):
        reasons.append("Too many pods")
    for name, amount in requests.items():
        capacity = allocatable.get(name, 0)
        if name == defects.uncounted:
            continue
        if amount > capacity - requested.get(name, 0):
            reasons.append(f"Insufficient {name}")
            hopeless = hopeless or (minor >= 32 and amount > capacity)
    return Misfit(tuple(reasons), hopeless) if reasons else None

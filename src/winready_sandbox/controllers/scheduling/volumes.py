"""Volumes that bind a pod to certain nodes: claims must exist and be bound, and their volume must be reachable."""

from __future__ import annotations

from winready_sandbox.api.objects import Object
from winready_sandbox.controllers.informer import Informer
from winready_sandbox.controllers.objects import deleting
from winready_sandbox.controllers.scheduling.filters import Filter, Misfit
from winready_sandbox.controllers.scheduling.state import NodeInfo, PodInfo
from winready_sandbox.controllers.selecting import node_selector

NODE_CONFLICT = Misfit(("node(s) didn't match PersistentVolume's node affinity",), True)
LOST = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


class Volumes:
    """What claims mean for a pod."""

    def __init__(self, claims: Informer, volumes: Informer) -> None:
        self.claims = claims
        self.volumes = volumes

    def objection(self, pod: PodInfo) -> str:
        """Why no node at all would do, or nothing."""
        for name in _claim_names(pod.pod):
            claim = self.claims.get((pod.key[0], name))
            if claim is None:
                return f'persistentvolumeclaim "{name}" not found'
            if deleting(claim):
                return f'persistentvolumeclaim "{name}" is being deleted'
            if (claim.get("status") or {}).get("phase") != "Bound":
                return UNBOUND
        return ""

    def filters(self, pod: PodInfo) -> list[Filter]:
        """The node affinity of each bound volume."""
        found = []
        for name in _claim_names(pod.pod):
            claim = self.claims.get((pod.key[0], name))
            volume = self.volumes.get(("", claim["spec"].get("volumeName") or "")) if claim else None
            if volume is None:
                found.append(_always(Misfit((LOST,), True)))
                continue
            required = (volume["spec"].get("nodeAffinity") or {}).get("required")
            if required:
                found.append(_reachable(required))
        return found


def _claim_names(pod: Object) -> list[str]:
    names = []
    for volume in pod["spec"].get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            names.append(volume["persistentVolumeClaim"]["claimName"])
        elif volume.get("ephemeral"):
            names.append(f"{pod['metadata']['name']}-{volume['name']}")
    return names


def _always(misfit: Misfit) -> Filter:
    return lambda info: misfit


def _reachable(required: Object) -> Filter:
    matches = node_selector(required.get("nodeSelectorTerms") or [])

    def check(info: NodeInfo) -> Misfit | None:
        return None if matches(info.node) else NODE_CONFLICT

    return check

"""Network policies: what the policy engine of one node lets in and out of the pods it hosts.

Policies are evaluated on pod addresses, after services were translated, at both ends of a flow: the source's node
judges egress, the destination's node ingress. A change takes effect some seconds after the API saw it, and only for
new flows: neither OS cuts what is established.
"""

from __future__ import annotations

import asyncio
import ipaddress
import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from winready_sandbox.clock import Clock
from winready_sandbox.network.defects import PolicyDefects
from winready_sandbox.network.selectors import matches
from winready_sandbox.network.stack import PodIdentity, Stack
from winready_sandbox.network.view import ClusterView, Key, Obj

Direction = Literal["ingress", "egress"]
DELAY = {"linux": (0.3, 1.0), "windows": (1.0, 5.0)}
"""Cluster seconds between a change and its effect (fact 1.9: policy 1-10 s)."""


@dataclass(frozen=True)
class Peer:
    """The other side of a flow, as the packet shows it."""

    ip: str
    namespace: str = ""
    labels: Mapping[str, str] | None = None
    """None when the address is no pod's."""
    first_labels: Mapping[str, str] | None = None
    """Those that it started with."""
    local: bool = False
    """Whether it is on the node of the pod that is judged."""


class PolicyEngine:
    """The policies in force on one node."""

    def __init__(
        self,
        os: str,
        view: ClusterView,
        clock: Clock,
        defects: PolicyDefects,
        rng: random.Random,
        pods: Callable[[], Collection[Stack]],
    ) -> None:
        """``pods``: those that the node has now."""
        self._os = os
        self._pods = pods
        self._view = view
        self._clock = clock
        self._defects = defects
        self._rng = rng
        self._active: dict[Key, Obj] = {}
        self._present: dict[Key, set[str]] = {}
        """Pods that were there when a policy came into force, by their uids."""
        self._leaving: dict[Key, float] = {}
        """When policies that were deleted go, by the cluster's clock."""
        self._since: dict[Key, float] = {}
        """When each came into force as it is now."""
        self._timer: asyncio.TimerHandle | None = None
        self._removal: asyncio.TimerHandle | None = None
        self._agents = 0
        self.running = True
        """False once the last policy agent has ended: what is in force stays, changes wait."""
        view.on_policies(self._changed)

    def close(self) -> None:
        """Stop following changes."""
        self._view.forget(self._changed)
        for timer in (self._timer, self._removal):
            if timer is not None:
                timer.cancel()
        self._timer = self._removal = None

    def start(self) -> None:
        """A policy agent came up."""
        self._agents += 1
        self.running = True
        self._changed()

    def stop(self) -> None:
        """A policy agent is gone."""
        self._agents -= 1
        self.running = self._agents > 0

    def _changed(self) -> None:
        if self._timer is None:
            delay = self._clock.wall(self._rng.uniform(*DELAY[self._os]) + self._defects.late)
            self._timer = asyncio.get_running_loop().call_later(delay, self.sync)

    def sync(self) -> None:
        """Put what the API says now in force."""
        self._timer = None
        if not self.running:
            return
        wanted = dict(self._view.objects["networkpolicies"])
        if self._defects.updates_missed:
            wanted |= {
                key: old for key, old in self._active.items() if key in wanted and _uid(old) == _uid(wanted[key])
            }
        kept = self._active if self._defects.never_removed else self._going(wanted)
        before, self._active = self._active, {**kept, **wanted}
        same = {key for key, policy in self._active.items() if policy is before.get(key)}
        self._since = {key: self._since[key] if key in same else self._clock.now() for key in self._active}
        now = {stack.pod.uid for stack in self._pods() if stack.pod is not None}
        self._present = {key: self._present.get(key, now) for key in self._active}

    def _going(self, wanted: Mapping[Key, Obj]) -> dict[Key, Obj]:
        """Policies that were deleted and are still in force."""
        if self._removal is not None:
            self._removal.cancel()
            self._removal = None
        late, now = self._defects.removed_late, self._clock.now()
        gone = [key for key in self._active if key not in wanted] if late else []
        self._leaving = {key: self._leaving.get(key, now + late) for key in gone}
        staying = {key: until for key, until in self._leaving.items() if now < until}
        if staying:
            delay = self._clock.wall(min(staying.values()) - now)
            self._removal = asyncio.get_running_loop().call_later(delay, self.sync)
        return {key: self._active[key] for key in staying}

    def _lost(self, key: Key) -> bool:
        """Whether what was programmed for a policy is no longer there."""
        return 0 < self._defects.lost_after < self._clock.now() - self._since[key]

    def allows(
        self,
        direction: Direction,
        pod: PodIdentity,
        labels: Mapping[str, str],
        peer: Peer,
        port: int,
        protocol: str,
        named_ports: Mapping[tuple[str, str], int],
    ) -> bool:
        """Whether a pod of this node may exchange with a peer; ``named_ports`` are the destination's."""
        if self._defects.not_enforced or not self._active:
            return True
        if (self._defects.same_node_let_in and peer.local) or (self._defects.egress_ignored and direction == "egress"):
            return True
        selected, namespace = False, pod.namespace
        for key, policy in self._active.items():
            spec = policy.get("spec", {})
            if key[0] != namespace or direction.capitalize() not in _types(spec):
                continue
            if not matches(spec.get("podSelector") or {}, dict(labels)):
                continue
            if self._lost(key) or (self._defects.later_pods_missed and pod.uid not in self._present[key]):
                continue
            selected = True
            if self._defects.block_all:
                continue
            for rule in spec.get(direction) or []:
                if self._rule_allows(direction, rule, namespace, peer, port, protocol, named_ports):
                    return True
        return not selected

    def _rule_allows(
        self,
        direction: Direction,
        rule: Obj,
        namespace: str,
        peer: Peer,
        port: int,
        protocol: str,
        named_ports: Mapping[tuple[str, str], int],
    ) -> bool:
        ports = rule.get("ports") or []
        if ports and not any(_port_matches(item, port, protocol, named_ports) for item in ports):
            return False
        peers = rule.get("from" if direction == "ingress" else "to") or []
        return not peers or any(self._peer_matches(item, namespace, peer) for item in peers)

    def _peer_matches(self, item: Obj, namespace: str, peer: Peer) -> bool:
        if block := item.get("ipBlock"):
            return _in_block(block, peer.ip)
        if peer.labels is None:
            return False
        if (selector := item.get("namespaceSelector")) is not None:
            found = self._view.objects["namespaces"].get(("", peer.namespace), {})
            labels = {"kubernetes.io/metadata.name": peer.namespace, **(found.get("metadata", {}).get("labels") or {})}
            if self._defects.namespaces_unknown:
                return False
            if not self._defects.namespaces_ignored and not matches(selector, labels):
                return False
        elif peer.namespace != namespace and not self._defects.namespaces_ignored:
            return False
        if (selector := item.get("podSelector")) is None or self._defects.pods_ignored:
            return True
        known = peer.first_labels if self._defects.labels_stale else peer.labels
        return not self._defects.pods_unknown and matches(selector, dict(known or {}))


def _uid(policy: Obj) -> str:
    return str(policy["metadata"].get("uid", ""))


def _types(spec: dict[str, Any]) -> list[str]:
    """Policy types with the API server's default, for objects that were not defaulted."""
    return list(spec.get("policyTypes") or (["Ingress", "Egress"] if "egress" in spec else ["Ingress"]))


def _port_matches(item: Obj, port: int, protocol: str, named_ports: Mapping[tuple[str, str], int]) -> bool:
    if item.get("protocol", "TCP") != protocol:
        return False
    wanted = item.get("port")
    if isinstance(wanted, int):
        return wanted <= port <= int(item.get("endPort", wanted))
    return wanted is None or named_ports.get((wanted, protocol)) == port


def _in_block(block: Obj, ip: str) -> bool:
    address = ipaddress.ip_address(ip)
    if address not in ipaddress.ip_network(block["cidr"], strict=False):
        return False
    return not any(address in ipaddress.ip_network(cidr, strict=False) for cidr in block.get("except") or [])

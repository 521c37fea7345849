"""Where a new flow goes: service translation, policies, wires and firewalls between two stacks.

One function tells the whole way of a first packet, in the order in which a real one meets these things. It only
decides; `pod_endpoint` lets the time pass and makes the connection.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from winready_sandbox.network.policy import Peer
from winready_sandbox.network.proxy import Rule
from winready_sandbox.network.services import Backend
from winready_sandbox.network.stack import PortListener, Stack
from winready_sandbox.network.world import RESOLVER

if TYPE_CHECKING:
    from winready_sandbox.network.fabric import Fabric, NodeNetwork

SAME_NODE, OTHER_NODE, OUTSIDE = 0.0002, 0.001, 0.02
"""One-way latencies in cluster seconds."""
LINK_LOCAL = "169.254."
"""Addresses that a packet never leaves the node for: what listens there, listens on the node itself."""
NEIGHBOUR_TIMEOUT = 3.0
"""How long Linux looks for the owner of an address before it says that there is no route to it."""


@dataclass(frozen=True)
class Path:
    """How a first packet fares."""

    outcome: Literal["deliver", "refuse", "drop", "unreachable"]
    latency: float = SAME_NODE
    listener: PortListener | None = None
    target: tuple[str, int] = ("", 0)
    """The receiving address and port after translation."""
    source: str = ""
    """The sender as the receiver sees it."""
    extra_delay: float = 0.0
    max_payload: int = 0
    """Of a packet of the sender; 0 without a limit."""
    max_answer: int = 0
    """Of a packet of the receiver."""
    lossy: tuple[NodeNetwork, ...] = ()
    """Nodes over whose wires it goes."""
    cut_after: float = 0.0
    """Cluster seconds after which a connection is reset; 0: it stays."""
    stalls_after: float = 0.0
    """Cluster seconds after which nothing of it arrives any more."""
    outside: bool = False


DROP = Path("drop")
REFUSE = Path("refuse")


def is_loopback(address: str) -> bool:
    """Whether packets to it never leave the stack."""
    return address == "::1" or address.startswith("127.")


def route(fabric: Fabric, src: Stack, address: str, port: int, protocol: str) -> Path:
    """The way of the first packet of a flow."""
    if is_loopback(address):
        if src.node is not None and not src.is_pod and (goal := _host_port(src.node, address, port, protocol)):
            return _deliver(fabric, src, src.addresses[0], goal[0].addresses[0], goal[1], protocol)
        return _local(src, address, address, port, protocol)
    source = src.source_for(address)
    if source is None:
        return Path("unreachable")
    if not src.up:
        return DROP
    node = src.node
    if node is not None and (rule := node.proxy.vip(address, port, protocol)) is not None:
        if node.defects.proxy.host_service_ips_dead and not src.is_pod:
            return DROP
        if node.defects.proxy.new_pods_left_out and src.is_pod and src.new:
            return DROP
        return _to_backend(fabric, src, source, node, rule, protocol, external=False)
    if address.startswith(LINK_LOCAL) and node is not None and node.os == "linux":
        return _local(node.host, source, address, port, protocol)
    target_node = fabric.node_with(address)
    if target_node is not None and (rule := target_node.proxy.node_port(port, protocol)) is not None:
        return _to_node_port(fabric, src, source, target_node, rule, protocol)
    if target_node is not None and (goal := _host_port(target_node, address, port, protocol)) is not None:
        inside = goal[0].source_for(address) or goal[0].addresses[0]
        return _deliver(fabric, src, source, inside, goal[1], protocol, hop=target_node.host)
    if address in src.addresses and len(fabric.stacks.get(address, ())) == 1:
        return _local(src, source, address, port, protocol)
    return _deliver(fabric, src, source, address, port, protocol)


def _host_port(node: NodeNetwork, address: str, port: int, protocol: str) -> tuple[Stack, int] | None:
    """The pod that a port of the node belongs to, as a port mapping of the pod network makes it."""
    found = node.host_ports
    return found.get((protocol, address, port)) or found.get((protocol, "", port)) if found else None


def _local(src: Stack, source: str, address: str, port: int, protocol: str) -> Path:
    listener = src.find(protocol, address, port)
    return Path("deliver", SAME_NODE, listener, (address, port), source) if listener is not None else REFUSE


def _to_node_port(fabric: Fabric, src: Stack, source: str, node: NodeNetwork, rule: Rule, protocol: str) -> Path:
    """To a NodePort: translated at the node that was addressed, not at the sender's."""
    own = src.node is node
    if node.os == "windows":
        # Fact 1.5: a Windows node forwards only while a pod runs on it.
        if not node.pods:
            return DROP
        if own and node.defects.proxy.own_node_port_dead:
            return DROP
    elif own and node.defects.proxy.own_node_port_dead:
        return DROP
    if not node.host.up or node.proxy.node_port_verdict(protocol, 6 if ":" in source else 4) is not None:
        return DROP
    target = node.host.source_for(source) or source
    asked = f"{rule.state.key} on {node.name}"
    if not own and (blocked := _wire(fabric, src, node.host, target, asked, protocol)) is not None:
        return blocked
    return _to_backend(fabric, src, source, node, rule, protocol, external=True)


def _to_backend(
    fabric: Fabric, src: Stack, source: str, node: NodeNetwork, rule: Rule, protocol: str, *, external: bool
) -> Path:
    """Through the tables of a node to one of the endpoints of a service."""
    family = 6 if ":" in source else 4
    backend = node.proxy.pick(rule, source, family=family, external=external)
    if not isinstance(backend, Backend):
        return DROP if backend == "drop" else REFUSE
    seen = source
    if backend.ip in src.addresses and src.is_pod:
        if node.os == "windows":
            return DROP  # fact 1.5: with DSR the self-pick times out
        seen = node.host.source_for(backend.ip) or source
    elif external and not rule.state.external_local:
        seen = node.host.source_for(backend.ip) or source
    hop = node.host if external else src
    path = _deliver(fabric, src, seen, backend.ip, backend.port, protocol, hop=hop, asked=str(rule.state.key))
    if most := node.defects.proxy.max_payload:
        path = replace(
            path, max_payload=min(path.max_payload or most, most), max_answer=min(path.max_answer or most, most)
        )
    return replace(path, stalls_after=after) if (after := node.defects.proxy.forgets_after) else path


def _deliver(
    fabric: Fabric,
    src: Stack,
    seen: str,
    address: str,
    port: int,
    protocol: str,
    *,
    hop: Stack | None = None,
    asked: str = "",
) -> Path:
    """To the owner of an address, past the policies of both ends.

    ``hop`` is the node that forwards, if one does, and ``asked`` the service that the sender meant, if it meant one.
    """
    hop = hop or src
    dst = fabric.stack_at(address)
    pod = src.pod
    if pod is not None and src.node is not None and dst is not src:
        named = fabric.named_ports(dst.pod) if dst is not None and dst.pod is not None else {}
        labels = fabric.labels_of(pod)
        peer = _peer(fabric, address, dst, src.node)
        if not src.node.policies.allows("egress", pod, labels, peer, port, protocol, named):
            return DROP
    if dst is None:
        return _to_nobody(fabric, src, address, port, protocol)
    if (blocked := _wire(fabric, hop, dst, address, asked, protocol)) is not None:
        return blocked
    if dst.pod is not None and dst.node is not None and dst is not src and seen not in dst.node.host.addresses:
        peer = _peer(fabric, seen, fabric.stack_at(seen), dst.node)
        labels, named = fabric.labels_of(dst.pod), fabric.named_ports(dst.pod)
        if not dst.node.policies.allows("ingress", dst.pod, labels, peer, port, protocol, named):
            return DROP
    windows_host = dst.os == "windows" and not dst.is_pod
    if not dst.is_pod and dst.node is not None and dst is not src and not dst.node.admits(protocol, port):
        return DROP
    listener = dst.find(protocol, address, port)
    if listener is None:
        # Windows Firewall's stealth mode does not say that a port of the host is closed.
        return DROP if windows_host and dst is not src else REFUSE
    nodes = {stack.node.name: stack.node for stack in (src, hop, dst) if stack.node is not None}
    same = src.node is dst.node and len(nodes) <= 1
    wires = () if same else tuple(nodes.values())
    return Path(
        "deliver",
        SAME_NODE if same else OTHER_NODE,
        listener,
        (address, port),
        seen,
        sum(node.delay() for node in wires),
        _largest(src, dst, wires, protocol),
        _largest(dst, src, wires, protocol),
        wires,
        min((node.defects.link.cut_after for node in wires if node.defects.link.cut_after), default=0.0),
    )


def _largest(src: Stack, dst: Stack, wires: tuple[NodeNetwork, ...], protocol: str) -> int:
    """Payload bytes of the largest packet that gets from one stack to another over these nodes; 0 without a limit."""
    limits = []
    for node in wires:
        link = node.defects.link
        way = link.mtu_way
        # A node that only forwards has the packet coming in and going out.
        passes = way == "both" or (way == "out" and dst.node is not node) or (way == "in" and src.node is not node)
        if link.mtu_black_hole and passes:
            limits.append(link.mtu_black_hole)
        if link.largest_datagram and protocol == "UDP":
            limits.append(link.largest_datagram)
    return min(limits, default=0)


def _peer(fabric: Fabric, ip: str, stack: Stack | None, node: NodeNetwork) -> Peer:
    """The other side as the policy engine of a node knows it."""
    if stack is None or stack.pod is None:
        return Peer(ip)
    return Peer(ip, stack.pod.namespace, fabric.labels_of(stack.pod), stack.pod.labels, stack.node is node)


def _wire(fabric: Fabric, src: Stack, dst: Stack, address: str, asked: str = "", protocol: str = "") -> Path | None:
    """What the wires between two stacks do to a new flow."""
    if not dst.up or (dst.node is not None and not dst.node.host.up):
        # Machines share one wire: the neighbour does not answer for its address, and Linux says so.
        alone = not src.is_pod and not dst.is_pod and src.os == "linux"
        return Path("unreachable", NEIGHBOUR_TIMEOUT) if alone else DROP
    nodes = [stack.node for stack in (src, dst) if stack.node is not None]
    if ":" in address and any(node.defects.link.ipv6_dead for node in nodes):
        return DROP
    if src.node is dst.node:
        return None
    if src.node is not None and src.node.defects.link.one_way == "out":
        return DROP
    if dst.node is not None and dst.node.defects.link.one_way == "in":
        return DROP
    if protocol == "UDP" and any(node.defects.link.udp_dead for node in nodes):
        return DROP
    if dst.node is not None and dst.is_pod and dst.node.hides(dst):
        return DROP
    if protocol == "TCP" and src.node is not None and src.is_pod and dst.is_pod and src.node.keeps_in(src):
        return DROP
    if dst.node is not None and dst.is_pod and src.node is not None:
        stale = dst.node.defects.link.stale_routes
        if stale and stale in ("everywhere", src.os):
            return DROP
    lost = [node for node in nodes if node.loses_flow(src.name, asked or address)]
    return DROP if lost else None


def _to_nobody(fabric: Fabric, src: Stack, address: str, port: int, protocol: str) -> Path:
    """To an address that no stack has: the outside world, or nowhere."""
    if src.node is not None and (src.node.loses_flow(src.name, address) or src.node.defects.link.one_way == "out"):
        return DROP
    if ":" in address and src.node is not None and src.node.defects.link.ipv6_dead:
        return DROP
    if address == RESOLVER and protocol == "UDP" and port == 53:
        return Path("deliver", OUTSIDE, target=(address, port), source=address, outside=True)
    if fabric.world.hosts_address(address):
        open_port = protocol == "TCP" and fabric.world.accepts(address, port)
        return Path("deliver", OUTSIDE, target=(address, port), outside=True) if open_port else DROP
    ip = ipaddress.ip_address(address)
    if src.os == "linux" and any(ip in network for network in fabric.networks()):
        return Path("unreachable", NEIGHBOUR_TIMEOUT)
    return DROP


def answers_ping(fabric: Fabric, src: Stack, address: str) -> Path:
    """The way of an ICMP echo request (fact 1.5: pod network yes, service addresses never, NAT not from Windows)."""
    if is_loopback(address) or address in src.addresses:
        return Path("deliver", SAME_NODE)
    source = src.source_for(address)
    if source is None:
        return Path("unreachable")
    dst = fabric.stack_at(address)
    if dst is None:
        if fabric.world.hosts_address(address) and src.os == "linux":
            return Path("deliver", OUTSIDE)
        path = _to_nobody(fabric, src, address, 0, "ICMP")
        return path if path.outcome == "unreachable" else DROP
    if not dst.up and not src.is_pod and not dst.is_pod:
        return Path("unreachable", NEIGHBOUR_TIMEOUT)
    if (blocked := _wire(fabric, src, dst, address)) is not None:
        return blocked
    icmp = "ICMPv6" if ":" in address else "ICMPv4"
    if not dst.is_pod and dst.node is not None and dst is not src and not dst.node.admits(icmp, 0):
        return DROP
    for stack, direction, other in ((src, "egress", address), (dst, "ingress", source)):
        if stack.pod is None or stack.node is None or other in stack.node.host.addresses:
            continue
        peer = _peer(fabric, other, fabric.stack_at(other), stack.node)
        labels = fabric.labels_of(stack.pod)
        way: Literal["ingress", "egress"] = "egress" if direction == "egress" else "ingress"
        if not stack.node.policies.allows(way, stack.pod, labels, peer, 0, "ICMP", {}):
            return DROP
    delays = [stack.node.delay() for stack in (src, dst) if stack.node is not None]
    same = src.node is dst.node
    return Path("deliver", SAME_NODE if same else OTHER_NODE, extra_delay=0.0 if same else sum(delays))

"""What can be broken in the network of one node. Everything is healthy unless a fault says otherwise.

Each field is read at exactly one place, so that a fault changes one behaviour and healing it changes it back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass
class ProxyDefects:
    """Of the service proxy of a node."""

    stopped: bool = False
    """Changes are no longer programmed; what is in the tables stays."""
    not_programmed: bool = False
    """The tables are empty, whatever kube-proxy believes."""
    stale_after_recreate: bool = False
    """A service deleted and created again keeps the rules of its first life."""
    stale_endpoints: bool = False
    """Backends that a service once had are never taken out again."""
    partial_backends: bool = False
    """Only half of the backends (at least one is missing) get into the tables."""
    node_port_dead: bool = False
    """NodePorts of this node do not forward."""
    wrong_backend: bool = False
    """Connections land on a backend of another service."""
    udp_dead: bool = False
    """UDP to services is not translated."""
    affinity_ignored: bool = False
    """Session affinity has no effect."""
    host_service_ips_dead: bool = False
    """Service addresses do not work from the node's own network; from its pods they do."""
    own_node_port_dead: bool = False
    """The node does not reach NodePorts on its own address; others do."""


@dataclass
class DnsDefects:
    """Of name resolution in the pods of a node."""

    dead: bool = False
    """No query of a pod is answered."""
    no_suffix: bool = False
    """Search suffixes are not applied."""
    ignore_dns_config: bool = False
    """The static DNS settings of the CNI configuration win over the pod's own."""
    ignore_host_aliases: bool = False
    """The hosts file is not consulted."""
    external_dead: bool = False
    """Names outside the cluster are not resolved."""
    wrong_answers: bool = False
    """Cluster names are answered with addresses that belong to nobody."""


@dataclass
class LinkDefects:
    """Of the wire between a node and the rest."""

    loss: float = 0.0
    """Share of new flows to and from other nodes that vanish, spread evenly."""
    latency: float = 0.0
    """Cluster seconds added to each way of each packet to and from other nodes."""
    one_way: Literal["", "in", "out"] = ""
    """New flows are dropped in this direction only."""
    ipv6_dead: bool = False
    """No IPv6 packet gets through."""
    mtu_black_hole: int = 0
    """Packets with more payload bytes than this vanish without a word (0: none do)."""
    duplicate_ip: bool = False
    """New pods get an address that another pod of the node has already."""


@dataclass
class PolicyDefects:
    """Of the network policy engine of a node."""

    not_enforced: bool = False
    """Policies have no effect on the pods of this node."""
    block_all: bool = False
    """A pod that any policy selects is cut off altogether."""
    namespaces_ignored: bool = False
    """Namespace selectors count as met by every namespace."""
    pods_ignored: bool = False
    """Pod selectors of peers count as met by every pod."""
    never_removed: bool = False
    """A policy that was deleted stays in force."""


@dataclass
class NetworkDefects:
    """Everything network-like that can be wrong with one node."""

    proxy: ProxyDefects = field(default_factory=ProxyDefects)
    dns: DnsDefects = field(default_factory=DnsDefects)
    link: LinkDefects = field(default_factory=LinkDefects)
    policy: PolicyDefects = field(default_factory=PolicyDefects)

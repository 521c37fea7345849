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
    partial_datagrams: bool = False
    """The same for UDP ports alone."""
    partial_second_ports: bool = False
    """The same for TCP ports besides the first port of a service."""
    unready_too: bool = False
    """Endpoints that are not ready get into the tables as well."""
    first_slice_only: bool = False
    """Of several EndpointSlices of a service only the first gets into the tables."""
    node_port_dead: bool = False
    """NodePorts of this node do not forward."""
    wrong_backend: bool = False
    """Connections land on a backend of another service."""
    udp_dead: bool = False
    """UDP to services is not translated."""
    external_policy_ignored: bool = False
    """NodePorts forward to pods of other nodes although externalTrafficPolicy is Local."""
    internal_policy_ignored: bool = False
    """Cluster IPs forward to pods of other nodes although internalTrafficPolicy is Local."""
    affinity_ignored: bool = False
    """Session affinity has no effect."""
    host_service_ips_dead: bool = False
    """Service addresses do not work from the node's own network; from its pods they do."""
    new_pods_left_out: bool = False
    """Service addresses do not work from pods that are new on this node; from those that were started again they do."""
    own_node_port_dead: bool = False
    """The node does not reach NodePorts on its own address; others do."""
    udp_node_port_dead: bool = False
    """NodePorts of this node forward no datagrams; connections they do."""
    node_port_local_only: bool = False
    """NodePorts of this node forward to pods of this node only."""
    stale_node_ports: bool = False
    """NodePorts of services that were deleted go on forwarding."""
    stale_second_ports: bool = False
    """Cluster IPs of services that were deleted go on forwarding TCP ports besides the first."""
    stale_udp_node_ports: bool = False
    """NodePorts of services that were deleted go on forwarding datagrams; connections they do not."""
    first_port_only: bool = False
    """Of a service with several ports only the first is programmed."""
    lost_after: float = 0.0
    """Cluster seconds after which the rules of a service that is new on this node are gone (0: they stay)."""
    drop_every: int = 0
    """Of the connections to services every so-many-th vanishes (0: none does)."""
    refuse_every: int = 0
    """Of the connections to services every so-many-th is refused (0: none is)."""
    stale_if_as_many: bool = False
    """Backends that changed without becoming more or fewer are not programmed."""
    lost_with_neighbour: bool = False
    """A service that is deleted takes its backends away from other services that have them, too."""
    most_backends: int = 0
    """Of more backends than this the rest is left out (0: as many as the kernel takes)."""
    sync_delay: float = 0.0
    """Cluster seconds that each change takes longer."""
    always_sticky: bool = False
    """A client is led to the same backend for ever, whether or not the service wants that."""
    stale_datagrams: bool = False
    """Datagrams still go to backends that went away as well; connections do not."""
    max_payload: int = 0
    """Packets with more payload bytes than this vanish on the way through a service (0: none do)."""
    forgets_after: float = 0.0
    """Cluster seconds after which packets of a connection through a service vanish (0: they never do)."""
    ipv4_only: bool = False
    """Only backends of IPv4 get into the tables."""
    second_family_missing: bool = False
    """Of a service with addresses of both families only the first gets into the tables."""
    ipv6_node_port_dead: bool = False
    """NodePorts of this node do not forward IPv6."""
    ipv6_cluster_ip_dead: bool = False
    """Cluster IPs do not forward IPv6 on this node."""


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
    other_service: bool = False
    """The name of a service is answered with the address of another one."""
    keeps_answers: float = 0.0
    """Cluster seconds for which Windows repeats an answer, however short its time to live."""
    keeps_misses: float = 0.0
    """Cluster seconds for which Windows remembers that a name was missing."""
    lost_every: int = 0
    """Each datagram with this number, or a multiple of it, is lost."""
    failed_every: int = 0
    """Each answer with this number, or a multiple of it, is a server failure."""
    wrong_every: int = 0
    """Each answer with this number, or a multiple of it, has an address that belongs to nobody."""
    one_address_more: bool = False
    """Answers for cluster names have an address of nobody behind the right ones."""
    delay: float = 0.0
    """Cluster seconds that each answer takes."""
    dead_after: float = 0.0
    """Cluster seconds after its start from which a pod gets no answer any more."""
    tcp_dead: bool = False
    """Questions in a stream are not answered, so that large answers do not arrive."""
    ipv6_unanswered: bool = False
    """Questions for IPv6 addresses are not answered, so that each look-up lasts as long as Windows is patient."""
    headless_missing: bool = False
    """Pods behind a headless service have no names of their own."""
    headless_merged: bool = False
    """Names of pods behind a headless service all lead to the first pod by name."""
    invents_names: bool = False
    """Cluster names that do not exist are answered."""
    node_servers_too: bool = False
    """The node's own nameservers stand behind those of the pod."""
    first_server_only: bool = False
    """When the first nameserver does not answer, no other one is asked."""
    first_suffix_only: bool = False
    """Of several search suffixes only the first one is there."""
    suffix_of_default: bool = False
    """Bare names get the suffix of the namespace ``default``, whatever the pod's namespace is."""
    hosts_in_first_container: bool = False
    """Only the first container of a pod gets the hosts file."""
    first_alias_only: bool = False
    """Of several names of a host alias only the first one is written."""
    hosts_of_first_pod: bool = False
    """Every pod gets the hosts file of the first pod on the node."""


@dataclass
class LinkDefects:
    """Of the wire between a node and the rest."""

    loss: float = 0.0
    """Share of new flows to and from other nodes that vanish, spread evenly."""
    down_every: float = 0.0
    """Each time so many cluster seconds have passed, the link is down for a while (0: it stays up)."""
    down_for: float = 0.0
    """Cluster seconds for which new flows to and from other nodes vanish then."""
    latency: float = 0.0
    """Cluster seconds added to each way of each packet to and from other nodes."""
    one_way: Literal["", "in", "out"] = ""
    """New flows are dropped in this direction only."""
    ipv6_dead: bool = False
    """No IPv6 packet gets through."""
    mtu_black_hole: int = 0
    """Packets with more payload bytes than this vanish without a word (0: none do)."""
    mtu_way: Literal["both", "in", "out"] = "both"
    """In which direction they do."""
    largest_datagram: int = 0
    """Datagrams with more bytes than this vanish without a word (0: none do); connections know no such limit."""
    packet_loss: float = 0.0
    """Share of packets to and from other nodes that vanish, spread evenly; who sends them tries again, or not."""
    jitter: float = 0.0
    """Up to so many cluster seconds are added to each way of each flow to and from other nodes, more or less."""
    udp_dead: bool = False
    """No datagram gets to or from other nodes."""
    cut_after: float = 0.0
    """Cluster seconds after which a connection to or from another node is reset (0: it stays)."""
    first_pod_only: bool = False
    """Flows from other nodes reach only the pod that has been on this node for the longest time."""
    newest_pod_only: bool = False
    """Flows from other nodes reach only the pod that came to this node last."""
    first_pod_gets_out: bool = False
    """Connections to pods on other nodes leave only from the pod that has been on this node for the longest time."""
    pods_lost_after: float = 0.0
    """Cluster seconds after which flows from other nodes no longer reach a pod (0: they do)."""
    cut_off_after: int = 0
    """From this pod on, flows from other nodes do not reach every third new one (0: they do)."""
    foreign_ip: bool = False
    """New pods get an address that a pod of another node has already."""
    stale_routes: Literal["", "everywhere", "windows"] = ""
    """Other nodes (or only those with Windows) send packets for the pods of this node where it no longer is."""
    duplicate_ip: bool = False
    """New pods get an address that another pod of the node has already."""
    pods_without_ipv6: bool = False
    """New pods get an IPv4 address only."""


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
    same_node_let_in: bool = False
    """Pods of one node exchange whatever they like."""
    egress_ignored: bool = False
    """What policies say of outgoing connections has no effect."""
    pods_unknown: bool = False
    """Pod selectors of peers are met by no pod."""
    namespaces_unknown: bool = False
    """Namespace selectors are met by no namespace."""
    late: float = 0.0
    """Cluster seconds that a change takes longer."""
    removed_late: float = 0.0
    """Cluster seconds for which a policy that was deleted stays in force."""
    lost_after: float = 0.0
    """Cluster seconds after which a policy that was made or changed is no longer in force (0: it stays)."""
    later_pods_missed: bool = False
    """Pods that start after a policy came into force are not covered by it."""
    labels_stale: bool = False
    """Peers keep the labels that they started with."""
    updates_missed: bool = False
    """A policy that was changed stays in force as it was."""


@dataclass
class AddressDefects:
    """Of the part of the network plug-in that hands out pod addresses."""

    reused_after: int = 0
    """From this pod on, new pods get the address of the newest pod that lives (0: none do)."""
    leaked_until: int = 0
    """Addresses of pods that are gone stay taken, and there are only so many (0: they come back)."""


@dataclass
class NetworkDefects:
    """Everything network-like that can be wrong with one node."""

    proxy: ProxyDefects = field(default_factory=ProxyDefects)
    dns: DnsDefects = field(default_factory=DnsDefects)
    link: LinkDefects = field(default_factory=LinkDefects)
    policy: PolicyDefects = field(default_factory=PolicyDefects)
    addresses: AddressDefects = field(default_factory=AddressDefects)

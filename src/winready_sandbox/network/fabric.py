"""The fabric: all nodes, machines and pods of the sandbox's network, and their addresses.

A node brings its host stack, a pod subnet, a service proxy and a policy engine; pods attach to it. Machines outside
the nodes (the control plane) join with `add_machine`; `bridge` leads to a real port of this computer.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from winready_sandbox.clock import Clock
from winready_sandbox.network.addresses import AddressPool, NoAddressLeft
from winready_sandbox.network.defects import NetworkDefects
from winready_sandbox.network.pod_endpoint import NetworkEndpoint
from winready_sandbox.network.policy import PolicyEngine
from winready_sandbox.network.proxy import ServiceProxy, knows_both_families
from winready_sandbox.network.resolver import DnsConfig
from winready_sandbox.network.services import ServiceCatalog
from winready_sandbox.network.stack import PodIdentity, Serve, Stack
from winready_sandbox.network.view import ClusterView
from winready_sandbox.network.world import RESOLVER, OutsideWorld
from winready_sandbox.streams import Connection

CLUSTER_DNS = "10.96.0.10"
NODE_LOCAL_DNS = "169.254.20.10"
"""Where the DNS cache of a Linux node listens, on every one of them."""
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class NodeNetwork:
    """What one node contributes to the network."""

    def __init__(
        self, fabric: Fabric, name: str, os: str, build: int, addresses: Sequence[str], pod_cidrs: Sequence[str]
    ) -> None:
        self.name = name
        self.os = os
        self.build = build
        self.defects = NetworkDefects()
        self.admits: Callable[[str, int], bool] = lambda protocol, port: True
        """The host's firewall: whether an inbound packet of a protocol (TCP, UDP, ICMPv4 ...) to a port gets in."""
        self.host = Stack(name, os, list(addresses), self, None)
        self.pods: dict[Stack, float] = {}
        """Since when each has been here, the oldest first."""
        self.had = 0
        """How many pods were here so far."""
        self.uids: set[str] = set()
        """Of those pods: one that is started again after a reboot is not new."""
        self.first_hosts_file = ""
        """What the first pod of the node found in its hosts file."""
        # The CNI keeps the first addresses: gateway on both, and a host endpoint and source VIP on Windows.
        first = 4 if os == "windows" else 2
        self.pools = [AddressPool(cidr, first) for cidr in pod_cidrs]
        self._handed_out: list[list[str]] = []
        """Addresses of pods in the order of their start: of those that live, or of all where a defect counts them."""
        self.host_ports: dict[tuple[str, str, int], tuple[Stack, int]] = {}
        """Ports of the node that lead to a pod, by protocol, address (none: any) and number: the pod and its port."""
        self._fabric = fabric
        self._flows: Counter[tuple[str, str]] = Counter()
        self._packets: Counter[tuple[str, str]] = Counter()
        self._rng = random.Random(f"{fabric.seed}/{name}")
        self._program()

    def _program(self) -> None:
        fabric = self._fabric
        self.proxy = ServiceProxy(
            self.name,
            self.os,
            self.build,
            fabric.view,
            fabric.catalog,
            fabric.clock,
            self.defects.proxy,
            self._rng,
            has_local=self._has_pod,
        )
        self.policies = PolicyEngine(
            self.os, fabric.view, fabric.clock, self.defects.policy, self._rng, lambda: self.pods
        )

    def _has_pod(self, ip: str) -> bool:
        return any(stack in self.pods for stack in self._fabric.stacks.get(ip, ()))

    def pod_addresses(self) -> list[str]:
        """Addresses for a new pod, one per family."""
        taken = sorted((stack.name, stack.addresses) for stack in self.pods)
        if self.defects.link.duplicate_ip and taken:
            return list(taken[0][1])
        if self.defects.link.foreign_ip and (foreign := self._foreign_addresses()):
            return foreign
        living = [addresses for addresses in self._handed_out if any(a in self._fabric.stacks for a in addresses)]
        after, most = self.defects.addresses.reused_after, self.defects.addresses.leaked_until
        if after and len(self._handed_out) >= after and living:
            return living[-1]
        if most and len(self._handed_out) >= most:
            raise NoAddressLeft("no available addresses")
        one = self.defects.link.pods_without_ipv6 or not knows_both_families(self.os, self.build)
        addresses = [pool.take() for pool in self.pools if not one or pool.network.version == 4]
        self._handed_out = [*(self._handed_out if after or most else living), addresses]
        return addresses

    def _foreign_addresses(self) -> list[str]:
        """What a pod of another node of this OS has, and none of this node yet: two nodes with one subnet do so."""
        own = {address for stack in self.pods for address in stack.addresses}
        others = [node for node in self._fabric.nodes.values() if node is not self and node.os == self.os]
        found = (stack.addresses for node in others for stack in node.pods if own.isdisjoint(stack.addresses))
        return list(next(found, []))

    def hides(self, pod: Stack) -> bool:
        """Whether flows from other nodes do not find this pod here."""
        link = self.defects.link
        if link.first_pod_only and pod is not next(iter(self.pods)):
            return True
        if link.newest_pod_only and pod is not next(reversed(self.pods)):
            return True
        if 0 < link.cut_off_after < pod.number and pod.number % 3 == 0:
            return True
        return 0 < link.pods_lost_after < self._fabric.clock.now() - self.pods.get(pod, math.inf)

    def keeps_in(self, pod: Stack) -> bool:
        """Whether connections of this pod to pods on other nodes do not leave."""
        return self.defects.link.first_pod_gets_out and pod is not next(iter(self.pods))

    def delay(self) -> float:
        """Cluster seconds that this node's wire adds to one way of a flow."""
        link = self.defects.link
        return link.latency + (self._rng.uniform(0, link.jitter) if link.jitter else 0.0)

    def loses_flow(self, source: str, target: str) -> bool:
        """Whether the next new flow over this node's link vanishes.

        Of what a source sends to an address, or to all that is behind a service, the exact share is lost, evenly
        spread and beginning early: who tries ten times does not depend on luck.
        """
        link = self.defects.link
        if link.down_every and self._fabric.clock.now() % link.down_every < link.down_for:
            return True
        return _lost(self._flows, (source, target), link.loss)

    def loses_packet(self, source: str, target: str) -> bool:
        """The same for the next packet of any flow."""
        return _lost(self._packets, (source, target), self.defects.link.packet_loss)

    def go_down(self) -> None:
        """The machine is off: nobody answers, kernel tables are gone. Pods are the kubelet's to detach."""
        self.host.up = False
        self.host.shut()
        self.proxy.close()
        self.policies.close()

    def come_up(self) -> None:
        """The machine booted: proxy and policy engine start from nothing."""
        self.host.up = True
        self._program()
        self.proxy.refresh()
        self.policies.sync()


def _lost(counts: Counter[tuple[str, str]], way: tuple[str, str], share: float) -> bool:
    """Whether the next of a way is among the share that is lost."""
    if share <= 0:
        if counts:
            counts.clear()
        return False
    counts[way] += 1
    return int((counts[way] + 2) * share) > int((counts[way] + 1) * share)


class Fabric:
    """All of the simulated network."""

    def __init__(
        self,
        clock: Clock,
        *,
        domain: str = "cluster.local",
        cluster_dns: Sequence[str] = (CLUSTER_DNS,),
        node_local_dns: bool = False,
        seed: int = 0,
    ) -> None:
        self.clock = clock
        self.domain = domain
        self.seed = seed
        self.view = ClusterView()
        self.catalog = ServiceCatalog(self.view)
        self.world = OutsideWorld()
        self.node_dns = DnsConfig((RESOLVER,), ())
        """What the nodes themselves resolve with."""
        self.cni_dns = DnsConfig(tuple(cluster_dns), (f"svc.{domain}",))
        """The static settings in the CNI configuration of Windows nodes."""
        self._node_local_dns = node_local_dns
        self.nodes: dict[str, NodeNetwork] = {}
        self.stacks: dict[str, list[Stack]] = defaultdict(list)
        self._nodes_by_ip: dict[str, NodeNetwork] = {}
        self._fights = random.Random(f"{seed}/addresses")
        self._outside_tasks: set[asyncio.Task[None]] = set()

    def add_node(
        self, name: str, os: str, addresses: Sequence[str], pod_cidrs: Sequence[str], *, build: int = 0
    ) -> NodeNetwork:
        """A node joins with its addresses and pod subnets; ``build`` is the Windows build number."""
        if name in self.nodes:
            raise ValueError(f"node {name} is part of the network already")
        node = NodeNetwork(self, name, os, build, addresses, pod_cidrs)
        self.nodes[name] = node
        for address in addresses:
            self.stacks[address].append(node.host)
            self._nodes_by_ip[address] = node
        if self.catalog.keys():
            node.proxy.refresh()
        if self.view.objects["networkpolicies"]:
            node.policies.sync()
        return node

    def remove_node(self, name: str) -> None:
        """A node leaves for good."""
        node = self.nodes.pop(name)
        for stack in list(node.pods):
            self._drop(stack)
        node.go_down()
        self._drop(node.host)
        for address in node.host.addresses:
            self._nodes_by_ip.pop(address, None)

    def add_machine(self, name: str, addresses: Sequence[str], os: str = "linux") -> NetworkEndpoint:
        """A machine that is no node, such as the control plane's."""
        stack = Stack(name, os, list(addresses), None, None)
        for address in addresses:
            self.stacks[address].append(stack)
        return NetworkEndpoint(self, stack, self.node_dns)

    def host(self, node: str, dns: DnsConfig | None = None) -> NetworkEndpoint:
        """The endpoint of a node itself."""
        return NetworkEndpoint(self, self.nodes[node].host, dns or self.node_dns)

    def attach(
        self,
        node: str,
        *,
        namespace: str,
        name: str,
        uid: str,
        labels: dict[str, str] | None = None,
        host_network: bool = False,
        dns: DnsConfig | None = None,
    ) -> NetworkEndpoint:
        """Give a pod its network: the host's, or a stack with addresses of its own."""
        if host_network:
            return self.host(node, dns)
        home = self.nodes[node]
        addresses = home.pod_addresses()
        stack = Stack(f"{namespace}/{name}", home.os, addresses, home, PodIdentity(namespace, name, uid, labels or {}))
        home.pods[stack] = self.clock.now()
        home.had += 1
        stack.number = home.had
        stack.new = uid not in home.uids
        home.uids.add(uid)
        for address in addresses:
            self.stacks[address].append(stack)
        return NetworkEndpoint(self, stack, dns or self.cluster_dns_for(namespace, home.os))

    def kubelet_dns(self, os: str) -> tuple[str, ...]:
        """The nameservers that kubelets of an OS give their pods."""
        return (NODE_LOCAL_DNS,) if self._node_local_dns and os == "linux" else self.cni_dns.nameservers

    def cluster_dns_for(self, namespace: str, os: str) -> DnsConfig:
        """The settings of a pod with dnsPolicy ClusterFirst."""
        searches = (f"{namespace}.svc.{self.domain}", f"svc.{self.domain}", self.domain)
        return DnsConfig(self.kubelet_dns(os), searches, (("ndots", "5"),))

    def detach(self, endpoint: NetworkEndpoint) -> None:
        """Take a pod off the network; host network pods leave the host as it is."""
        if endpoint.stack.is_pod:
            self._drop(endpoint.stack)

    def _drop(self, stack: Stack) -> None:
        stack.up = False
        stack.shut()
        for address in stack.addresses:
            owners = self.stacks[address]
            if stack in owners:
                owners.remove(stack)
            if not owners:
                del self.stacks[address]
                for pool in stack.node.pools if stack.node is not None else []:
                    pool.release(address)
        if stack.node is not None:
            stack.node.pods.pop(stack, None)
            stack.node.host_ports = {key: goal for key, goal in stack.node.host_ports.items() if goal[0] is not stack}

    def stack_at(self, address: str) -> Stack | None:
        """The owner of an address; of two who fight over it any may have it at a moment, as with ARP entries."""
        owners = self.stacks.get(address)
        if not owners:
            return None
        if len(owners) == 1:
            return owners[0]
        return self._fights.choice(owners)

    def node_with(self, address: str) -> NodeNetwork | None:
        """The node that has this address itself."""
        return self._nodes_by_ip.get(address)

    def networks(self) -> list[Network]:
        """The subnets that belong to the cluster's pods."""
        return [pool.network for node in self.nodes.values() for pool in node.pools]

    def labels_of(self, pod: PodIdentity) -> dict[str, str]:
        """The labels that a pod has now."""
        found = self.view.objects["pods"].get((pod.namespace, pod.name))
        return (found["metadata"].get("labels") or {}) if found is not None else pod.labels

    def named_ports(self, pod: PodIdentity) -> dict[tuple[str, str], int]:
        """Container ports of a pod by name and protocol."""
        found = self.view.objects["pods"].get((pod.namespace, pod.name), {})
        ports = [port for c in found.get("spec", {}).get("containers", []) for port in c.get("ports", [])]
        return {(p["name"], p.get("protocol", "TCP")): p["containerPort"] for p in ports if p.get("name")}

    def refresh(self) -> None:
        """Let every proxy and policy engine look again, after defects were set or healed."""
        for node in self.nodes.values():
            node.proxy.refresh()
            node.policies.sync()

    def serve_outside(self, connection: Connection) -> None:
        """A connection that left the cluster."""
        task = asyncio.ensure_future(self.world.serve(connection))
        self._outside_tasks.add(task)
        task.add_done_callback(self._outside_tasks.discard)

    def close(self) -> None:
        """End everything that is open."""
        for name in list(self.nodes):
            self.remove_node(name)
        for stack in [stack for owners in self.stacks.values() for stack in owners]:
            stack.shut()
        for task in self._outside_tasks:
            task.cancel()


def bridge(host: str, port: int) -> Serve:
    """Serve simulated connections from a real port, such as the API server's."""

    async def serve(connection: Connection) -> None:
        try:
            reader, writer = await asyncio.open_connection(host, port)
        except OSError:
            connection.close()
            return

        async def outwards() -> None:
            while data := await connection.read():
                writer.write(data)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()

        async def inwards() -> None:
            while data := await reader.read(65536):
                connection.write(data)
            connection.close_write()

        try:
            await asyncio.gather(outwards(), inwards())
        except ConnectionError:
            connection.close()
        finally:
            writer.close()

    return serve

"""Pod networks of nodes: each gets a slice of every cluster CIDR, and gives it back when it goes."""

from __future__ import annotations

import ipaddress

from winready_sandbox.api.objects import Object
from winready_sandbox.controllers.controller import Controller
from winready_sandbox.controllers.objects import Key

PREFIX = {4: 24, 6: 64}


class NodeIpamController(Controller):
    """Writes ``spec.podCIDR`` and ``spec.podCIDRs``."""

    name = "node-ipam-controller"
    kind = "Node"
    api_version = "v1"
    resource = "nodes"

    def watch(self) -> None:
        """Follow nodes."""
        self._networks = [ipaddress.ip_network(text) for text in self.context.pod_networks]
        self._taken: dict[str, str] = {}
        self._next: dict[int, int] = {}
        """By IP family, where the next free slice is looked for first."""
        self.nodes = self.informers.of("nodes")
        self.nodes.add_handler(self._changed)

    def _changed(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            for cidr in _cidrs(old or {}):
                self._taken.pop(cidr, None)
            return
        for cidr in _cidrs(new):
            self._taken[cidr] = new["metadata"]["name"]
        if not _cidrs(new):
            self.enqueue(old, new)

    def sync(self, key: Key) -> None:
        """Give a node its networks."""
        node = self.nodes.get(key)
        if node is None or _cidrs(node):
            return
        chosen = [self._free(network) for network in self._networks]
        if not all(chosen):
            message = f"Node {key[1]} status is now: CIDRNotAvailable"
            self.tell(node, "CIDRNotAvailable", message)
            return
        self.informers.patch("nodes", key[1], {"spec": {"podCIDR": chosen[0], "podCIDRs": chosen}})

    def _free(self, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> str:
        prefix = max(PREFIX[network.version], network.prefixlen)
        step = 1 << (network.max_prefixlen - prefix)
        first = int(network.network_address)
        total, begin = 1 << min(prefix - network.prefixlen, 16), self._next.get(network.version, 0)
        for number in range(total):
            slot = (begin + number) % total
            base = type(network.network_address)(first + slot * step)
            cidr = f"{base}/{prefix}"
            if cidr not in self._taken:
                self._next[network.version] = slot + 1
                return cidr
        return ""


def _cidrs(node: Object) -> list[str]:
    spec = node.get("spec") or {}
    return list(spec.get("podCIDRs") or ([spec["podCIDR"]] if spec.get("podCIDR") else []))

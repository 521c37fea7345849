"""Addresses and ports of services: who has which, what is free, and what a service needs by its type and families.

Only what is stored counts as taken, so a write that fails later gives nothing away and leaks nothing.
"""

from __future__ import annotations

import ipaddress
import random

from winready_sandbox.api.errors import FieldError, invalid, not_supported, unprocessable
from winready_sandbox.api.objects import Object
from winready_sandbox.api.registry import Admission
from winready_sandbox.api.resources import Resource
from winready_sandbox.api.store import Entry

NODE_PORTS = range(30000, 32768)
STATIC_PORTS = 86
STATIC_ADDRESSES = 256
"""The low end of each range, left to those who ask for a certain value."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Holder = tuple[str, str]


class ServiceAddresses:
    """Admission of services in a cluster with one or two service networks."""

    def __init__(self, networks: tuple[str, ...]) -> None:
        self.networks: dict[str, Network] = {}
        for text in networks:
            network = ipaddress.ip_network(text)
            self.networks[f"IPv{network.version}"] = network
        self._addresses: dict[str, Holder] = {}
        self._ports: dict[tuple[str, int], Holder] = {}
        self._held: dict[Holder, tuple[set[str], set[tuple[str, int]]]] = {}

    def committed(self, resource: Resource, entry: Entry, gone: bool) -> None:
        """Note what a stored service holds, and what a deleted one gives back."""
        if resource.storage != ("", "services"):
            return
        addresses, ports = self._held.pop(entry.key, (set(), set()))
        for address in addresses:
            del self._addresses[address]
        for port in ports:
            del self._ports[port]
        if gone:
            return
        spec = entry.obj.get("spec") or {}
        addresses = {ip for ip in spec.get("clusterIPs") or () if ip not in ("", "None")}
        ports = {(_protocol(port), port["nodePort"]) for port in spec.get("ports") or () if port.get("nodePort")}
        if spec.get("healthCheckNodePort"):
            ports.add(("TCP", spec["healthCheckNodePort"]))
        self._held[entry.key] = (addresses, ports)
        self._addresses.update(dict.fromkeys(addresses, entry.key))
        self._ports.update(dict.fromkeys(ports, entry.key))

    def admit(self, admission: Admission) -> None:
        """Complete a service that is created or changed, or refuse it."""
        if admission.resource.storage != ("", "services") or admission.subresource or admission.operation == "DELETE":
            return
        spec = admission.obj.get("spec")
        if not isinstance(spec, dict):
            return
        spec.setdefault("type", "ClusterIP")
        if admission.old is not None:
            _keep(spec, admission.old["spec"])
        key = (admission.namespace, admission.name)
        errors: list[FieldError] = []
        if spec["type"] == "ExternalName":
            for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
                spec.pop(name, None)
        else:
            errors += self._families(spec) or self._cluster_ips(spec, key)
        errors += self._node_ports(spec, key)
        if errors:
            raise unprocessable("Service", "", admission.name, errors)

    def _families(self, spec: Object) -> list[FieldError]:
        """Which families a service has, and in which order."""
        known = list(self.networks)
        policy = spec.get("ipFamilyPolicy")
        ips = [ip for ip in spec.get("clusterIPs") or [spec.get("clusterIP") or ""] if ip]
        families = list(spec.get("ipFamilies") or [])
        for position, ip in enumerate(ip for ip in ips if ip != "None"):
            family = _family(ip)
            if family and len(families) <= position:
                families.append(family)
        unheard = [n for n, family in enumerate(families) if family not in ("IPv4", "IPv6")]
        if unheard:
            where = f"spec.ipFamilies[{unheard[0]}]"
            return [not_supported(where, families[unheard[0]], ["IPv4", "IPv6"])]
        bare = "None" in ips and not spec.get("selector")
        if policy is None:
            policy = "RequireDualStack" if bare else "SingleStack"
        errors = []
        if policy == "SingleStack":
            text = "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified"
            for what, several in (("cluster IPs", ips), ("IP families", spec.get("ipFamilies") or ())):
                if len(several) > 1:
                    errors.append(invalid("spec.ipFamilyPolicy", policy, text.format(what)))
        if not errors and not bare:
            if policy == "RequireDualStack" and len(known) < 2:
                text = "this cluster is not configured for dual-stack services"
                errors.append(invalid("spec.ipFamilyPolicy", policy, text))
            errors += [
                invalid(f"spec.ipFamilies[{n}]", family, "not configured on this cluster")
                for n, family in enumerate(families)
                if family not in known
            ]
        if errors:
            return errors
        families = families or [known[0]]
        everything = ["IPv4", "IPv6"] if bare else known
        if policy != "SingleStack":
            families += [family for family in everything if family not in families]
        spec["ipFamilyPolicy"] = policy
        spec["ipFamilies"] = families[:1] if policy == "SingleStack" else families
        return []

    def _cluster_ips(self, spec: Object, key: Holder) -> list[FieldError]:
        ips = [ip for ip in spec.get("clusterIPs") or [spec.get("clusterIP") or ""] if ip]
        if "None" in ips:
            spec["clusterIP"], spec["clusterIPs"] = "None", ["None"]
            return []
        chosen: list[str] = []
        for position, family in enumerate(spec.get("ipFamilies") or ()):
            network = self.networks[family]
            if position >= len(ips):
                chosen.append(self._free_address(network))
                continue
            ip = ips[position]
            problem = self._objection(ip, network, key)
            if problem:
                text = f'Invalid value: ["{ip}"]: failed to allocate IP {ip}: {problem}'
                return [FieldError("spec.clusterIPs", text)]
            chosen.append(ip)
        if chosen:
            spec["clusterIP"], spec["clusterIPs"] = chosen[0], chosen
        return []

    def _objection(self, ip: str, network: Network, key: Holder) -> str:
        address = _parse(ip)
        if address is None or address not in network:
            return f"the provided IP ({ip}) is not in the valid range. The range of valid IPs is {network}"
        return "provided IP is already allocated" if self._addresses.get(ip, key) != key else ""

    def _free_address(self, network: Network) -> str:
        size = min(network.num_addresses, 1 << 16)
        static = min(max(16, size // 16), STATIC_ADDRESSES)
        first = int(network.network_address)
        for _ in range(64):
            found = str(type(network.network_address)(first + random.randrange(static + 1, size - 1)))
            if found not in self._addresses:
                return found
        everything = (str(type(network.network_address)(first + n)) for n in range(static + 1, size - 1))
        return next(ip for ip in everything if ip not in self._addresses)

    def _node_ports(self, spec: Object, key: Holder) -> list[FieldError]:
        kind = spec["type"]
        needed = kind == "NodePort" or (
            kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False
        )
        taken_here: set[tuple[str, int]] = set()
        errors = []
        for position, port in enumerate(spec.get("ports") or ()):
            wanted = port.get("nodePort")
            if wanted and (needed or kind == "LoadBalancer"):
                problem = self._port_problem((_protocol(port), wanted), key, taken_here)
                if problem:
                    errors.append(invalid(f"spec.ports[{position}].nodePort", wanted, problem))
                taken_here.add((_protocol(port), wanted))
        for port in spec.get("ports") or ():
            if needed and not port.get("nodePort"):
                port["nodePort"] = self._free_port(_protocol(port), taken_here, _twin(spec, port))
                taken_here.add((_protocol(port), port["nodePort"]))
        local = kind == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"
        if local and not spec.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = self._free_port("TCP", taken_here, 0)
        elif local:
            problem = self._port_problem(("TCP", spec["healthCheckNodePort"]), key, taken_here)
            if problem:
                errors.append(invalid("spec.healthCheckNodePort", spec["healthCheckNodePort"], problem))
        return errors

    def _port_problem(self, port: tuple[str, int], key: Holder, taken_here: set[tuple[str, int]]) -> str:
        if port[1] not in NODE_PORTS:
            last = NODE_PORTS.stop - 1
            return f"provided port is not in the valid range. The range of valid ports is {NODE_PORTS.start}-{last}"
        taken = port in taken_here or self._ports.get(port, key) != key
        return "provided port is already allocated" if taken else ""

    def _free_port(self, protocol: str, taken_here: set[tuple[str, int]], preferred: int) -> int:
        def free(number: int) -> bool:
            return (protocol, number) not in self._ports and (protocol, number) not in taken_here

        if preferred and free(preferred):
            return preferred
        for _ in range(64):
            number = random.randrange(NODE_PORTS.start + STATIC_PORTS, NODE_PORTS.stop)
            if free(number):
                return number
        return next(number for number in NODE_PORTS if free(number))


def _twin(spec: Object, port: Object) -> int:
    """The node port of the same port in the other protocol: DNS over TCP and UDP share one."""
    return next(
        (o["nodePort"] for o in spec["ports"] if o is not port and o["port"] == port["port"] and o.get("nodePort")), 0
    )


def _keep(spec: Object, old: Object) -> None:
    """What an update leaves out stays as it was allocated, while the service's type still needs it."""
    if spec["type"] != "ExternalName" and old.get("type") != "ExternalName":
        for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if not spec.get(name) and old.get(name):
                spec[name] = old[name]
        if spec.get("ipFamilyPolicy") == "SingleStack":
            for name in ("clusterIPs", "ipFamilies"):
                spec[name] = list(spec.get(name) or [])[:1]
    ports = {(_protocol(port), port["port"]): port.get("nodePort") for port in old.get("ports") or ()}
    exposed = spec["type"] in ("NodePort", "LoadBalancer")
    for port in spec.get("ports") or ():
        before = ports.get((_protocol(port), port.get("port")))
        if exposed and not port.get("nodePort") and before:
            port["nodePort"] = before
        elif not exposed and port.get("nodePort") and port["nodePort"] == before:
            del port["nodePort"]
    local = spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"
    if local and old.get("healthCheckNodePort"):
        spec.setdefault("healthCheckNodePort", old["healthCheckNodePort"])
    elif not local and spec.get("healthCheckNodePort") == old.get("healthCheckNodePort"):
        spec.pop("healthCheckNodePort", None)
    if not exposed and spec.get("externalTrafficPolicy") == old.get("externalTrafficPolicy"):
        spec.pop("externalTrafficPolicy", None)


def _protocol(port: Object) -> str:
    return str(port.get("protocol") or "TCP")


def _parse(ip: str) -> Address | None:
    try:
        return ipaddress.ip_address(ip)
    except ValueError:
        return None


def _family(ip: str) -> str:
    address = _parse(ip)
    return f"IPv{address.version}" if address else ""

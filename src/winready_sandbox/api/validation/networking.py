"""Services, their endpoints, and network policies."""

from __future__ import annotations

from winready_sandbox.api.errors import duplicate, forbidden_field, invalid, not_supported, required, too_many
from winready_sandbox.api.gates import on
from winready_sandbox.api.validation.containers import PROTOCOLS
from winready_sandbox.api.validation.formats import (
    Errors,
    at,
    cidr,
    dns_label,
    dns_subdomain,
    endpoint_ip,
    immutable,
    ip,
    ip_address,
    labels,
    network,
    port,
    port_name,
    port_number,
    qualified_name,
    selector,
)
from winready_sandbox.api.validation.reading import Object, children, items, section

NODE_PORTS = range(30000, 32768)
_TYPES = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]
_MAX_ENDPOINTS, _MAX_ADDRESSES, _MAX_PORTS = 1000, 100, 20000


def service(obj: Object, old: Object | None, minor: int) -> Errors:
    """A Service."""
    spec = section(obj, "spec")
    if old is not None:
        yield from _kept_addresses(spec, section(old, "spec"))
    kind = spec.get("type", "ClusterIP")
    headless = spec.get("clusterIP") == "None"
    if not children(spec, "ports") and not headless and kind != "ExternalName":
        yield required("spec.ports")
    yield from _type(spec, str(kind), headless)
    yield from _ports(spec)
    yield from labels(spec.get("selector"), "spec.selector")
    affinity = spec.get("sessionAffinity", "None")
    if affinity not in ("ClientIP", "None"):
        yield not_supported("spec.sessionAffinity", affinity, ["ClientIP", "None"])
    elif affinity == "ClientIP":
        yield from _affinity_timeout(spec)
    yield from _addresses(spec)
    if kind not in _TYPES:
        yield not_supported("spec.type", kind, _TYPES)
    yield from _node_ports(spec, str(kind))
    yield from _policies(spec, str(kind))
    spread = spec.get("trafficDistribution")
    more = ["PreferSameZone", "PreferSameNode"] if on("PreferSameTrafficDistribution", minor) else []
    allowed = ["PreferClose", *more]
    if spread is not None and spread not in allowed:
        yield not_supported("spec.trafficDistribution", spread, allowed)


def _type(spec: Object, kind: str, headless: bool) -> Errors:
    if headless and kind in ("LoadBalancer", "NodePort"):
        yield invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind != "ExternalName":
        return
    for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(name):
            yield forbidden_field(f"spec.{name}", "may not be set for ExternalName services")
    target = str(spec.get("externalName") or "").removesuffix(".")
    if not target:
        yield required("spec.externalName")
    else:
        yield from at("spec.externalName", target, dns_subdomain(target))


def _ports(spec: Object) -> Errors:
    entries = children(spec, "ports")
    names: set[str] = set()
    taken: set[tuple[object, object]] = set()
    for i, entry in enumerate(entries):
        here = f"spec.ports[{i}]"
        name = str(entry.get("name") or "")
        if name:
            yield from at(f"{here}.name", name, dns_label(name))
            if name in names:
                yield duplicate(f"{here}.name", name)
            names.add(name)
        elif len(entries) > 1:
            yield required(f"{here}.name")
        yield from at(f"{here}.port", entry.get("port") or 0, port_number(entry.get("port")))
        protocol = entry.get("protocol", "TCP")
        if protocol not in PROTOCOLS:
            yield not_supported(f"{here}.protocol", protocol, PROTOCOLS)
        if entry.get("targetPort") is not None:
            yield from port(entry["targetPort"], f"{here}.targetPort")
        if entry.get("appProtocol"):
            yield from at(f"{here}.appProtocol", entry["appProtocol"], qualified_name(str(entry["appProtocol"])))
        key = (str(protocol), str(entry.get("port")))
        if key in taken:
            shown = {"Name": "", "Protocol": protocol, "AppProtocol": None, "Port": entry.get("port") or 0}
            yield duplicate(here, shown | {"TargetPort": 0, "NodePort": 0})
        taken.add(key)


def _affinity_timeout(spec: Object) -> Errors:
    seconds = section(section(spec, "sessionAffinityConfig"), "clientIP").get("timeoutSeconds")
    if isinstance(seconds, int) and not 0 < seconds <= 86400:
        here = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
        yield invalid(here, seconds, "must be greater than 0 and less than 86400")


def _addresses(spec: Object) -> Errors:
    for i, address in enumerate(items(spec, "clusterIPs") or [spec["clusterIP"]] if spec.get("clusterIP") else []):
        if address != "None":
            yield from at(f"spec.clusterIPs[{i}]", address, ip(address))
    first = (items(spec, "clusterIPs") or [None])[0]
    if spec.get("clusterIP") and first and spec["clusterIP"] != first:
        yield invalid("spec.clusterIPs", items(spec, "clusterIPs"), "first value must match `clusterIP`")
    for i, address in enumerate(items(spec, "externalIPs")):
        yield from at(f"spec.externalIPs[{i}]", address, endpoint_ip(str(address)))
    families = items(spec, "ipFamilies")
    for i, family in enumerate(families):
        if family not in ("IPv4", "IPv6"):
            yield not_supported(f"spec.ipFamilies[{i}]", family, ["IPv4", "IPv6"])
        if family in families[:i]:
            yield duplicate(f"spec.ipFamilies[{i}]", family)
    policy = spec.get("ipFamilyPolicy")
    allowed = ["PreferDualStack", "RequireDualStack", "SingleStack"]
    if policy is not None and policy not in allowed:
        yield not_supported("spec.ipFamilyPolicy", policy, allowed)


def _node_ports(spec: Object, kind: str) -> Errors:
    taken: set[tuple[str, str]] = set()
    for i, entry in enumerate(children(spec, "ports")):
        number = entry.get("nodePort")
        if not number:
            continue
        here = f"spec.ports[{i}].nodePort"
        if kind == "ClusterIP":
            yield forbidden_field(here, "may not be used when `type` is 'ClusterIP'")
        elif number not in NODE_PORTS:
            detail = "provided port is not in the valid range. The range of valid ports is 30000-32767"
            yield invalid(here, number, detail)
        key = (str(entry.get("protocol", "TCP")), str(number))
        if key in taken:
            yield duplicate(here, number)
        taken.add(key)


def _policies(spec: Object, kind: str) -> Errors:
    external, outside = spec.get("externalTrafficPolicy"), kind in ("NodePort", "LoadBalancer")
    if external is not None:
        if not outside and not spec.get("externalIPs"):
            detail = "may only be set for externally-accessible services"
            yield invalid("spec.externalTrafficPolicy", external, detail)
        elif external not in ("Cluster", "Local"):
            yield not_supported("spec.externalTrafficPolicy", external, ["Cluster", "Local"])
    internal = spec.get("internalTrafficPolicy")
    if internal not in (None, "Cluster", "Local"):
        yield not_supported("spec.internalTrafficPolicy", internal, ["Cluster", "Local"])
    if kind != "LoadBalancer":
        for name in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if spec.get(name) is not None:
                yield forbidden_field(f"spec.{name}", "may only be used when `type` is 'LoadBalancer'")
    if spec.get("loadBalancerSourceRanges") and kind != "LoadBalancer":
        yield forbidden_field("spec.LoadBalancerSourceRanges", "may only be used when `type` is 'LoadBalancer'")
    for i, block in enumerate(items(spec, "loadBalancerSourceRanges")):
        yield from at(f"spec.LoadBalancerSourceRanges[{i}]", block, cidr(str(block).strip()))


def _kept_addresses(spec: Object, before: Object) -> Errors:
    if "ExternalName" in (spec.get("type"), before.get("type")):
        return
    new, old = items(spec, "clusterIPs"), items(before, "clusterIPs")
    if not new and spec.get("clusterIP"):
        new = [spec["clusterIP"]]
    if old and not new:
        yield invalid("spec.clusterIPs[0]", new, "primary clusterIP can not be unset")
    elif old and new[0] != old[0]:
        yield invalid("spec.clusterIPs[0]", new, "may not change once set")
    elif len(new) == len(old) == 2 and new[1] != old[1]:
        yield invalid("spec.clusterIPs[1]", new, "may not change once set")


def endpoint_slice(obj: Object, old: Object | None, minor: int) -> Errors:
    """An EndpointSlice."""
    kind = obj.get("addressType")
    if not kind:
        yield required("addressType")
    elif kind not in ("FQDN", "IPv4", "IPv6"):
        yield not_supported("addressType", kind, ["FQDN", "IPv4", "IPv6"])
    entries = children(obj, "endpoints")
    if len(entries) > _MAX_ENDPOINTS:
        yield too_many("endpoints", len(entries), _MAX_ENDPOINTS)
    for i, endpoint in enumerate(entries[:_MAX_ENDPOINTS]):
        yield from _endpoint(endpoint, str(kind), f"endpoints[{i}]")
    names: set[str] = set()
    ports = children(obj, "ports")
    if len(ports) > _MAX_PORTS:
        yield too_many("ports", len(ports), _MAX_PORTS)
    for i, entry in enumerate(ports):
        name = str(entry.get("name") or "")
        if name:
            yield from at(f"ports[{i}].name", name, dns_label(name))
        if name in names:
            yield duplicate(f"ports[{i}].name", name)
        names.add(name)
        if entry.get("protocol", "TCP") not in PROTOCOLS:
            yield not_supported(f"ports[{i}].protocol", entry.get("protocol"), PROTOCOLS)
    if old is not None:
        yield from immutable(kind, old.get("addressType"), "addressType")


def _endpoint(endpoint: Object, kind: str, here: str) -> Errors:
    addresses = items(endpoint, "addresses")
    if not addresses:
        yield required(f"{here}.addresses", "must contain at least 1 address")
    elif len(addresses) > _MAX_ADDRESSES:
        yield too_many(f"{here}.addresses", len(addresses), _MAX_ADDRESSES)
    for i, text in enumerate(addresses):
        path = f"{here}.addresses[{i}]"
        if kind == "FQDN":
            yield from at(path, text, dns_subdomain(str(text)))
            continue
        address = ip_address(text)
        if address is None:
            yield from at(path, text, ip(text))
            continue
        if kind != f"IPv{address.version}":
            yield invalid(f"{here}.addresses", text, f"must be an {kind} address")
        yield from at(path, text, endpoint_ip(str(text)))
    if endpoint.get("nodeName"):
        yield from at(f"{here}.nodeName", endpoint["nodeName"], dns_subdomain(str(endpoint["nodeName"])))
    if endpoint.get("hostname"):
        yield from at(f"{here}.hostname", endpoint["hostname"], dns_label(str(endpoint["hostname"])))


def endpoints(obj: Object, old: Object | None, minor: int) -> Errors:
    """An Endpoints object."""
    for i, subset in enumerate(children(obj, "subsets")):
        here = f"subsets[{i}]"
        if not children(subset, "addresses") and not children(subset, "notReadyAddresses"):
            yield required(here, "must specify `addresses` or `notReadyAddresses`")
        for kind in ("addresses", "notReadyAddresses"):
            for j, address in enumerate(children(subset, kind)):
                text = str(address.get("ip") or "")
                yield from at(f"{here}.{kind}[{j}].ip", text, endpoint_ip(text))
        entries = children(subset, "ports")
        for j, entry in enumerate(entries):
            if len(entries) > 1 and not entry.get("name"):
                yield required(f"{here}.ports[{j}].name")
            yield from at(f"{here}.ports[{j}].port", entry.get("port") or 0, port_number(entry.get("port")))


def network_policy(obj: Object, old: Object | None, minor: int) -> Errors:
    """A NetworkPolicy."""
    spec = section(obj, "spec")
    yield from selector(spec.get("podSelector"), "spec.podSelector")
    for direction, side in (("ingress", "from"), ("egress", "to")):
        for i, rule in enumerate(children(spec, direction)):
            here = f"spec.{direction}[{i}]"
            for j, entry in enumerate(children(rule, "ports")):
                yield from _policy_port(entry, f"{here}.ports[{j}]")
            for j, peer in enumerate(children(rule, side)):
                yield from _peer(peer, f"{here}.{side}[{j}]")
    types = items(spec, "policyTypes")
    if len(types) > 2:
        yield invalid("spec.policyTypes", types, "may not specify more than two policyTypes")
        return
    for i, kind in enumerate(types):
        if kind not in ("Ingress", "Egress"):
            yield not_supported(f"spec.policyTypes[{i}]", kind, ["Ingress", "Egress"])


def _policy_port(entry: Object, here: str) -> Errors:
    protocol, number, end = entry.get("protocol", "TCP"), entry.get("port"), entry.get("endPort")
    if protocol not in PROTOCOLS:
        yield not_supported(f"{here}.protocol", protocol, ["TCP", "UDP", "SCTP"])
    if number is None:
        if end is not None:
            yield invalid(f"{here}.endPort", end, "may not be specified when `port` is not specified")
    elif isinstance(number, str):
        if end is not None:
            yield invalid(f"{here}.endPort", end, "may not be specified when `port` is non-numeric")
        yield from at(f"{here}.port", number, port_name(number))
    else:
        yield from at(f"{here}.port", number, port_number(number))
        if isinstance(end, int) and isinstance(number, int):
            if end < number:
                yield invalid(f"{here}.endPort", number, "must be greater than or equal to `port`")
            yield from at(f"{here}.endPort", end, port_number(end))


def _peer(peer: Object, here: str) -> Errors:
    given = [name for name in ("podSelector", "namespaceSelector", "ipBlock") if isinstance(peer.get(name), dict)]
    for name in given:
        if name == "ipBlock":
            yield from _block(peer["ipBlock"], f"{here}.ipBlock")
        else:
            yield from selector(peer[name], f"{here}.{name}")
    if not given:
        yield required(here, "must specify a peer")
    elif len(given) > 1 and "ipBlock" in given:
        yield forbidden_field(here, "may not specify both ipBlock and another peer")


def _block(block: Object, here: str) -> Errors:
    text = str(block.get("cidr") or "")
    if not text:
        yield required(f"{here}.cidr")
        return
    yield from at(f"{here}.cidr", text, cidr(text))
    whole = network(text)
    for i, hole in enumerate(items(block, "except")):
        path = f"{here}.except[{i}]"
        yield from at(path, hole, cidr(hole))
        part = network(hole)
        if whole is None or part is None:
            continue
        inside = part.version == whole.version and part.network_address in whole and part.prefixlen > whole.prefixlen
        if not inside:
            yield invalid(path, hole, "must be a strict subset of `cidr`")

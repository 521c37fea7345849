"""What would keep a Windows machine from joining or working, found before anybody touches the machine."""

from __future__ import annotations

import datetime
import ipaddress
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

from winready.cluster.client import Client, Object
from winready.cluster.errors import ApiError, ClusterError, ConfigError
from winready.cluster.inventory import read_node
from winready.cluster.resources import CONFIG_MAPS, NODES, SERVICES
from winready.node import applying
from winready.node.addons import has_network, objects
from winready.node.discovery import Findings
from winready.node.findings import Finding, Level
from winready.node.flannel import flannel_findings
from winready.node.images import image_findings
from winready.node.joining import cluster_info, list_tokens
from winready.node.parameters import Parameters, ParametersError
from winready.node.skew import check_release, plain_release
from winready.spec.builds import load_builds
from winready.spec.windows import build_number

SOON = datetime.timedelta(minutes=5)
NETBIOS = 15
_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True)
class Machine:
    """What is known about the machine to come."""

    build: int | None = None
    name: str = ""


@dataclass
class Cluster:
    """What the cluster says about itself."""

    found: Findings
    nodes: list[Object] = field(default_factory=list)


async def examine(
    client: Client, parameters: Parameters, found: Findings, machine: Machine, *, registries: bool = True
) -> list[Finding]:
    """Look at everything; what may not be looked at is unknown, and nothing is changed."""
    cluster = Cluster(found, await client.list(NODES))
    result = [
        *_versions(parameters, cluster),
        *_ranges(parameters, cluster),
        *_machine(parameters, cluster, machine),
        *await image_findings(parameters, _builds(parameters, cluster, machine), ask=registries),
        *flannel_findings(parameters, found.flannel),
    ]
    for subject, look in (
        ("addresses", _services(client, parameters)),
        ("joining", _joinable(client, parameters)),
        ("tokens", _tokens(client)),
        ("add-ons", _addons(client, parameters)),
    ):
        try:
            result += [item async for item in look]
        except ApiError as error:
            remedy = "'winready rbac --for node' prints the rights for it" if error.code == 403 else error.remedy
            result.append(Finding(subject, "unknown", error.message, remedy))
    return result


def _versions(parameters: Parameters, cluster: Cluster) -> Iterator[Finding]:
    server = cluster.found.server
    try:
        check_release(parameters.kubernetes, server)
    except ParametersError as error:
        yield Finding("versions", "problem", error.message, error.remedy)
    else:
        yield Finding("versions", "ok", f"a kubelet {parameters.kubernetes} fits the API server ({server})")
    for raw in cluster.nodes:
        node = read_node(raw)
        if not node.windows:
            continue
        try:
            check_release(plain_release(node.kubelet), server)
        except ParametersError as error:
            yield Finding("versions", "note", f"node {node.name}: {error.message}", error.remedy)


def _ranges(parameters: Parameters, cluster: Cluster) -> Iterator[Finding]:
    network = parameters.network
    try:
        ranges = [("pods", ipaddress.ip_network(cidr)) for cidr in network.pod_cidrs]
        ranges += [("services", ipaddress.ip_network(cidr)) for cidr in network.service_cidrs]
    except ValueError as error:
        yield Finding("addresses", "problem", str(error), "write ranges like 10.244.0.0/16")
        return
    wrong = False
    for index, (whose, one) in enumerate(ranges):
        for other_whose, other in ranges[index + 1 :]:
            if one.version == other.version and one.overlaps(other):
                wrong = True
                text = f"the addresses of {whose} ({one}) and of {other_whose} ({other}) overlap"
                yield Finding("addresses", "problem", text, "every address must belong to one of them")
    for whose, said, real in (
        ("pods", network.pod_cidrs, cluster.found.pod_cidrs),
        ("services", network.service_cidrs, cluster.found.service_cidrs),
    ):
        if real and sorted(said) != sorted(real):
            wrong = True
            text = f"the addresses of {whose} are {', '.join(real)} in the cluster, not {', '.join(said)}"
            yield Finding("addresses", "problem", text, "make the bundle anew, or correct the options")
    for raw in cluster.nodes:
        for whose, address, cidr in _node_clashes(raw, ranges):
            wrong = True
            name = raw["metadata"]["name"]
            text = f"the address {address} of node {name} is one of the cluster's {whose} ({cidr})"
            yield Finding("addresses", "problem", text, "nodes need addresses of their own; choose other ranges")
        for cidr in _strange_pods(raw, network.pod_cidrs):
            wrong = True
            text = f"node {raw['metadata']['name']} has the pod range {cidr}, outside of {', '.join(network.pod_cidrs)}"
            yield Finding("addresses", "problem", text, "give the cluster's own range of pods")
    if not wrong:
        shown = f"pods {', '.join(network.pod_cidrs)}, services {', '.join(network.service_cidrs)}"
        yield Finding("addresses", "ok", f"{shown}; no overlap, also with nodes")


Ranges = list[tuple[str, ipaddress.IPv4Network | ipaddress.IPv6Network]]


def _node_clashes(raw: Object, ranges: Ranges) -> Iterator[tuple[str, str, str]]:
    for address in read_node(raw).addresses:
        for whose, cidr in ranges:
            if ipaddress.ip_address(address) in cidr:
                yield whose, address, str(cidr)


def _strange_pods(raw: Object, said: list[str]) -> Iterator[str]:
    for text in (raw.get("spec") or {}).get("podCIDRs") or []:
        own = ipaddress.ip_network(text)
        same = [cidr for cidr in map(ipaddress.ip_network, said) if cidr.version == own.version]
        if same and not any(own.subnet_of(cidr) for cidr in same):  # type: ignore[arg-type]
            yield text


def _machine(parameters: Parameters, cluster: Cluster, machine: Machine) -> Iterator[Finding]:
    if machine.name:
        if not _NODE_NAME.fullmatch(machine.name) or len(machine.name) > 253:
            todo = "use small letters, digits, dots and hyphens"
            yield Finding("machine", "problem", f"{machine.name!r} cannot be the name of a node", todo)
        elif any(raw["metadata"]["name"] == machine.name for raw in cluster.nodes):
            todo = f"choose another name, or 'winready node remove {machine.name}' if that machine is gone"
            yield Finding("machine", "problem", f"there is a node {machine.name} already", todo)
        elif len(machine.name) > NETBIOS:
            text = f"{machine.name} is longer than the {NETBIOS} characters that Windows keeps of a computer's name"
            yield Finding("machine", "note", text, "a shorter name is the same everywhere")
        else:
            yield Finding("machine", "ok", f"the name {machine.name} is free")
    if machine.build is None:
        return
    builds = load_builds()
    text = f"10.0.{machine.build}"
    if machine.build < parameters.minimum_build:
        todo = f"use a machine with build {parameters.minimum_build} or newer"
        yield Finding("machine", "problem", f"{builds.name(text)} is too old for the scripts of the bundle", todo)
    elif text not in builds.lists["current"].builds:
        todo = "'winready run' judges nodes by the list of builds; see --windows-builds"
        yield Finding("machine", "note", f"{builds.name(text)} is not on the standard's current list of builds", todo)
    else:
        yield Finding("machine", "ok", f"{builds.name(text)} is on the standard's current list of builds")


def _builds(parameters: Parameters, cluster: Cluster, machine: Machine) -> list[int]:
    """The machine's build, or where nobody named it those of the cluster and the oldest one that can join."""
    if machine.build:
        return [machine.build]
    return sorted({build for raw in cluster.nodes if (build := _build(raw))} | {parameters.minimum_build})


def _build(raw: Object) -> int | None:
    node = read_node(raw)
    return build_number(node.kernel_build) if node.windows else None


async def _services(client: Client, parameters: Parameters) -> AsyncIterator[Finding]:
    network = parameters.network
    api = await client.find(SERVICES, "kubernetes", "default")
    address = ((api or {}).get("spec") or {}).get("clusterIP")
    if address and not any(ipaddress.ip_address(address) in ipaddress.ip_network(c) for c in network.service_cidrs):
        text = f"the service of the API server has the address {address}, outside of {', '.join(network.service_cidrs)}"
        yield Finding("addresses", "problem", text, "give the cluster's own range of services")
    dns = await client.find(SERVICES, "kube-dns", "kube-system")
    address = ((dns or {}).get("spec") or {}).get("clusterIP")
    if address and address not in network.dns_servers:
        text = f"cluster DNS has the address {address}, pods would ask {', '.join(network.dns_servers)}"
        level: Level = "note" if _local(network.dns_servers) else "problem"
        yield Finding("addresses", level, text, f"use {address} as the DNS server")


def _local(servers: list[str]) -> bool:
    """A node-local cache, which does not exist for Windows, but may be meant."""
    return all(ipaddress.ip_address(server).is_link_local for server in servers)


async def _joinable(client: Client, parameters: Parameters) -> AsyncIterator[Finding]:
    try:
        info = await cluster_info(client)
    except ConfigError as error:
        yield Finding("joining", "problem", error.message, error.remedy)
        return
    said = str(parameters.endpoint)
    host = parameters.endpoint.host
    if host in ("localhost", "::1") or host.startswith("127."):
        text = f"the API server is {said}: every machine would ask itself"
        yield Finding("joining", "problem", text, "give an address that other machines reach with --endpoint")
    elif said != info.endpoint:
        text = f"the bundle names the API server {said}, cluster-info names {info.endpoint}"
        yield Finding("joining", "note", text, "both must lead to it, with a certificate for either name")
    for name in ("kubeadm-config", "kubelet-config"):
        if await client.find(CONFIG_MAPS, name, "kube-system") is None:
            text = f"there is no ConfigMap {name} in kube-system, which 'kubeadm join' reads"
            yield Finding("joining", "problem", text, "'kubeadm init phase upload-config all' on the control plane")
            return
    yield Finding("joining", "ok", f"machines can join at {info.endpoint}")


async def _tokens(client: Client) -> AsyncIterator[Finding]:
    now = datetime.datetime.now(datetime.UTC)
    good = 0
    for token in await list_tokens(client):
        left = None if token.expires is None else token.expires - now
        if left is None:
            text = f"the token {token.identifier} never ends"
            yield Finding(
                "tokens",
                "note",
                text,
                "'kubeadm token delete' removes it",
            )
            good += token.joins_nodes
        elif left <= datetime.timedelta():
            text = f"the token {token.identifier} has expired and is still there"
            yield Finding("tokens", "note", text, "look whether the controller manager runs the token cleaner")
        elif left < SOON:
            text = f"the token {token.identifier} ends in {int(left.total_seconds())} s"
            yield Finding("tokens", "note", text, "'winready node join-command' makes another one")
        else:
            good += token.joins_nodes
    if good:
        yield Finding("tokens", "ok", f"{good} token{'s' if good > 1 else ''} can join machines")
    else:
        yield Finding("tokens", "note", "no token can join a machine", "'winready node join-command' makes one")


async def _addons(client: Client, parameters: Parameters) -> AsyncIterator[Finding]:
    if not has_network(parameters):
        return
    wanted = objects(parameters)
    try:
        await applying.check_alone(client, wanted)
    except ConfigError as error:
        yield Finding("add-ons", "note", error.message, "'winready node addons' is not needed then")
        return
    try:
        found = await applying.differences(client, wanted)
    except ApiError:
        raise
    except ClusterError as error:
        yield Finding("add-ons", "note", error.message, "'winready node addons diff' shows it")
        return
    if all(item.change == "unchanged" for item in found):
        yield Finding("add-ons", "ok", "kube-proxy and the pod network for Windows are on the cluster")
    elif all(item.change == "created" for item in found):
        text = "nothing brings kube-proxy and the pod network to Windows nodes: they would stay NotReady"
        yield Finding("add-ons", "problem", text, "'winready node addons apply' does")
    else:
        text = "the add-ons on the cluster are not the ones of these parameters"
        yield Finding("add-ons", "note", text, "'winready node addons diff' shows how they differ")

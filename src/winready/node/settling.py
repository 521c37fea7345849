"""From what was asked for and what the cluster says to parameters that hold together."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from typing import TypeVar

from winready.node.discovery import Findings
from winready.node.parameters import (
    HOST_PROCESS_IMAGE,
    HOST_PROCESS_REGISTRY,
    PAUSE_IMAGE,
    REGISTRY,
    VXLAN_PORT,
    VXLAN_VNI,
    Cni,
    Containerd,
    Endpoint,
    Images,
    Kubelet,
    Mode,
    Network,
    Parameters,
    ParametersError,
    Paths,
    Proxy,
    RegistryMirror,
)
from winready.node.registries import parse_reference
from winready.node.skew import check_release, join_api, kubelet_flags, removed_flags
from winready.node.sources import CONTAINERD, OLDEST_CONTAINERD
from winready.spec.versions import is_release, release_order

Value = TypeVar("Value")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")
_REGISTRY = re.compile(r"[a-z0-9][a-z0-9.-]*(?::\d+)?(?:/[a-z0-9][a-z0-9._-]*)*")
_MIRROR_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?")
_MIRROR_URL = re.compile(r"https?://[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::(\d{1,5}))?(?:/[A-Za-z0-9._~-]+)*/?")
_PROXY = re.compile(r"https?://[^\s/@'\"]+/?")
_LABEL = re.compile(r"([A-Za-z0-9./_-]+)=([A-Za-z0-9._-]*)")
_TAINT = re.compile(r"[A-Za-z0-9./_-]{1,317}(?:=[A-Za-z0-9._-]{0,63})?:(?:NoSchedule|PreferNoSchedule|NoExecute)")


@dataclass
class Wishes:
    """What the operator gave; empty: take it from the cluster, or the default."""

    kubernetes: str = ""
    containerd: str = ""
    cni: Cni = "flannel"
    mode: Mode = "overlay"
    registry: str = ""
    registry_mirrors: list[str] = field(default_factory=list)
    pause_image: str = ""
    endpoint: str = ""
    pod_cidrs: list[str] = field(default_factory=list)
    service_cidrs: list[str] = field(default_factory=list)
    dns_servers: list[str] = field(default_factory=list)
    dns_domain: str = ""
    interface: str = ""
    network_name: str = ""
    http_proxy: str = ""
    https_proxy: str = ""
    no_proxy: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    taints: list[str] = field(default_factory=list)
    hyperv: bool = False

    @property
    def complete(self) -> bool:
        """Whether no cluster has to be asked."""
        return all((self.kubernetes, self.endpoint, self.pod_cidrs, self.service_cidrs, self.dns_servers))


def settle(wishes: Wishes, found: Findings, release: str) -> Parameters:
    """Parameters without files; raises `ParametersError` for whatever cannot be."""
    check_release(release, found.server)
    network = _network(wishes, found)
    endpoint = parse_endpoint(
        _known(wishes.endpoint or found.endpoint, "the API server's address", "--endpoint", found)
    )
    _check_endpoint(endpoint, network)
    images = _images(wishes)
    paths = Paths()
    labels = dict(sorted(_labels(wishes.labels).items()))
    taints = [_matching(_TAINT, taint, "taint", "KEY=VALUE:EFFECT") for taint in wishes.taints]
    return Parameters(
        kubernetes=release,
        server=found.server or release,
        containerd=_containerd(wishes),
        endpoint=endpoint,
        network=network,
        registry=wishes.registry or REGISTRY,
        images=images,
        proxy=_proxy(wishes, endpoint, network),
        paths=paths,
        kubelet=Kubelet(
            flags=kubelet_flags(release, paths, images.pause, labels, taints),
            removed_flags=removed_flags(release),
            labels=labels,
            taints=taints,
        ),
        join_api=join_api(release),
        hyperv=wishes.hyperv,
    )


def check_fits(parameters: Parameters, found: Findings) -> None:
    """Refuse a bundle that was made for another cluster, or for one that has changed since."""
    check_release(parameters.kubernetes, found.server)
    for whose, said, real in (
        ("pods", parameters.network.pod_cidrs, found.pod_cidrs),
        ("services", parameters.network.service_cidrs, found.service_cidrs),
    ):
        if real and sorted(said) != sorted(real):
            raise ParametersError(
                f"the addresses of {whose} are {', '.join(real)} in this cluster, {', '.join(said)} in the bundle",
                "make the bundle anew from this cluster",
            )


def parse_endpoint(text: str) -> Endpoint:
    """``host``, ``host:port`` or ``[address]:port``."""
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/\[\]]+))(?::(\d{1,5}))?", text.strip())
    if match is None or (match[2] and not _HOST.fullmatch(match[2])) or not 0 < int(match[3] or 6443) < 65536:
        raise ParametersError(f"{text!r} is not the address of an API server", "write it like api.example.com:6443")
    return Endpoint(host=match[1] or match[2], port=int(match[3] or 6443))


def _network(wishes: Wishes, found: Findings) -> Network:
    pods = wishes.pod_cidrs or found.pod_cidrs
    services = wishes.service_cidrs or found.service_cidrs
    servers = wishes.dns_servers or found.dns_servers
    _known(pods, "the addresses of pods", "--pod-cidr", found)
    _known(services, "the addresses of services", "--service-cidr", found)
    _known(servers, "the cluster's DNS server", "--dns", found)
    _check_ranges([("pods", cidr) for cidr in pods] + [("services", cidr) for cidr in services])
    for server in servers:
        try:
            ipaddress.ip_address(server)
        except ValueError:
            raise ParametersError(f"{server!r} is no IP address of a DNS server", "write it like 10.96.0.10") from None
    domain = wishes.dns_domain or found.dns_domain or "cluster.local"
    if not _HOST.fullmatch(domain):
        raise ParametersError(f"{domain!r} is not a DNS domain", "write it like cluster.local")
    if re.search(r"[\"'`$;\x00-\x1f]", wishes.interface):
        raise ParametersError(f"{wishes.interface!r} is not the name of a network adapter")
    if wishes.network_name and (wishes.cni != "none" or not re.fullmatch(r"[\w.-]+", wishes.network_name)):
        raise ParametersError(
            f"{wishes.network_name!r} cannot be the name of the pod network",
            "--network-name goes with --cni none: letters, digits, dots and dashes, as in Calico",
        )
    vni = _flannel_vni(wishes, found)
    return Network(
        cni=wishes.cni,
        mode=wishes.mode,
        pod_cidrs=pods,
        service_cidrs=services,
        dns_servers=servers,
        dns_domain=domain,
        vni=vni,
        interface=wishes.interface,
        name=wishes.network_name or (f"flannel.{vni}" if wishes.mode == "overlay" else "cbr0"),
    )


def _flannel_vni(wishes: Wishes, found: Findings) -> int:
    """The identifier of the Linux side, when Windows can be part of it."""
    backend = found.flannel.get("Backend")
    if wishes.cni != "flannel" or not isinstance(backend, dict):
        return VXLAN_VNI
    kind = str(backend.get("Type") or "")
    wanted = {"overlay": "vxlan", "l2bridge": "host-gw"}[wishes.mode]
    if kind and kind != wanted:
        other = "l2bridge" if kind == "host-gw" else "overlay"
        raise ParametersError(
            f"Flannel on the Linux side works as {kind!r}, which --mode {wishes.mode} cannot talk to",
            f"choose --mode {other}" if kind in ("vxlan", "host-gw") else f"change Flannel's backend to {wanted}",
        )
    if wanted != "vxlan":
        return VXLAN_VNI
    vni, port = backend.get("VNI", 1), backend.get("Port", 8472)
    if not isinstance(vni, int) or vni < VXLAN_VNI or port != VXLAN_PORT:
        raise ParametersError(
            f"Flannel on the Linux side uses VNI {vni} and UDP port {port}; Windows needs a VNI from {VXLAN_VNI} on "
            f"and port {VXLAN_PORT}, on all nodes",
            'set "VNI": 4096 and "Port": 4789 in net-conf.json of ConfigMap kube-flannel-cfg and restart Flannel',
        )
    return vni


def _check_ranges(ranges: list[tuple[str, str]]) -> None:
    read: list[tuple[str, ipaddress.IPv4Network | ipaddress.IPv6Network]] = []
    for whose, text in ranges:
        try:
            read.append((whose, ipaddress.ip_network(text)))
        except ValueError as error:
            raise ParametersError(
                f"{text!r} is no range of addresses for {whose}: {error}", "as in 10.244.0.0/16"
            ) from None
    for index, (whose, one) in enumerate(read):
        for other_whose, other in read[index + 1 :]:
            if one.version == other.version and one.overlaps(other):
                raise ParametersError(
                    f"the addresses of {whose} ({one}) and of {other_whose} ({other}) overlap",
                    "every address must belong to one of them",
                )


def _check_endpoint(endpoint: Endpoint, network: Network) -> None:
    try:
        address = ipaddress.ip_address(endpoint.host)
    except ValueError:
        return
    for whose, cidrs in (("services", network.service_cidrs), ("pods", network.pod_cidrs)):
        if any(address in ipaddress.ip_network(cidr) for cidr in cidrs):
            raise ParametersError(
                f"the API server's address {address} is one of the cluster's {whose}, which a machine reaches only "
                f"after it has joined",
                "give an address that is reached from outside with --endpoint HOST:PORT",
            )


def _containerd(wishes: Wishes) -> Containerd:
    version = _containerd_version(wishes.containerd)
    mirrors = [_registry_mirror(text) for text in wishes.registry_mirrors]
    if mirrors and not version:
        raise ParametersError(
            "--registry-mirror is for the containerd that the bundle installs, and --containerd none installs none",
            "tell the machine's own runtime, or leave one of the two out",
        )
    return Containerd(version=version, mirrors=list(dict.fromkeys(mirrors)))


def _registry_mirror(text: str) -> RegistryMirror:
    host, _, endpoint = text.partition("=")
    url = _MIRROR_URL.fullmatch(endpoint)
    if not _MIRROR_HOST.fullmatch(host) or url is None or not 0 < int(url[1] or 443) < 65536:
        shown = "a mirror with a name or password" if "@" in text else repr(text)
        raise ParametersError(
            f"{shown} cannot be: a mirror is HOST=URL, a registry as images name it and http(s)://HOST[:PORT][/PATH]; "
            f"node.json is no place for secrets",
            "write it like docker.io=https://mirror.example.com",
        )
    return RegistryMirror(host=host, endpoint=endpoint.rstrip("/"))


def _containerd_version(text: str) -> str:
    if text == "none":
        return ""
    version = (text or CONTAINERD).removeprefix("v")
    if not is_release(version):
        raise ParametersError(f"{text!r} is not a release of containerd", f"write it like {CONTAINERD}, or none")
    if release_order(version)[:2] < OLDEST_CONTAINERD:
        raise ParametersError(
            f"containerd {version} is too old: HostProcess containers need 1.7", "choose 1.7 or newer"
        )
    return version


def _images(wishes: Wishes) -> Images:
    registry = wishes.registry.rstrip("/")
    if registry and not _REGISTRY.fullmatch(registry):
        raise ParametersError(f"{wishes.registry!r} is not a registry", "write it like registry.example.com/mirror")
    pause = wishes.pause_image or f"{registry or REGISTRY}/{PAUSE_IMAGE}"
    if parse_reference(pause) is None:
        # Whatever stands before an @ could be a password.
        shown = repr(pause) if "@" not in pause else "what --pause-image says"
        raise ParametersError(f"{shown} is not the name of an image", "write it like registry.k8s.io/pause:3.10.2")
    return Images(pause=pause, host_process=f"{registry or HOST_PROCESS_REGISTRY}/{HOST_PROCESS_IMAGE}")


def _proxy(wishes: Wishes, endpoint: Endpoint, network: Network) -> Proxy:
    for text in (wishes.http_proxy, wishes.https_proxy):
        if text and not _PROXY.fullmatch(text):
            raise ParametersError(
                "a proxy is given as http://HOST:PORT, without name and password: node.json is no place for secrets"
            )
    if not wishes.http_proxy and not wishes.https_proxy:
        return Proxy()
    inside = [endpoint.host, "localhost", "127.0.0.1", ".svc", f".{network.dns_domain}"]
    outside = [*inside, *network.pod_cidrs, *network.service_cidrs, *wishes.no_proxy]
    return Proxy(http=wishes.http_proxy, https=wishes.https_proxy, no_proxy=list(dict.fromkeys(outside)))


def _labels(texts: list[str]) -> dict[str, str]:
    labels = {}
    for text in texts:
        match = _LABEL.fullmatch(text)
        if match is None:
            raise ParametersError(f"{text!r} is not a label", "write it like KEY=VALUE")
        labels[match[1]] = match[2]
    return labels


def _matching(form: re.Pattern[str], text: str, what: str, example: str) -> str:
    if not form.fullmatch(text):
        raise ParametersError(f"{text!r} is not a {what}", f"write it like {example}")
    return text


def _known(value: Value, what: str, option: str, found: Findings) -> Value:
    if not value:
        why = f" ({found.refused})" if found.refused else ""
        raise ParametersError(f"{what}: neither given nor told by the cluster{why}", f"give it with {option}")
    return value

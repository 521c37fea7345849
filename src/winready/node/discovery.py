"""What the cluster says about itself that a new worker must be told."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import yaml

from winready.cluster.client import Client
from winready.cluster.errors import ApiError
from winready.cluster.resources import CONFIG_MAPS, SERVICES, Resource
from winready.node.skew import plain_release

SERVICE_CIDRS = Resource("networking.k8s.io/v1", "ServiceCIDR", "servicecidrs", namespaced=False)
FLANNEL_CONFIG = (("kube-flannel", "kube-flannel-cfg"), ("kube-system", "kube-flannel-cfg"))


@dataclass
class Findings:
    """Empty where the cluster does not say."""

    server: str = ""
    endpoint: str = ""
    pod_cidrs: list[str] = field(default_factory=list)
    service_cidrs: list[str] = field(default_factory=list)
    dns_servers: list[str] = field(default_factory=list)
    dns_domain: str = ""
    flannel: dict[str, Any] = field(default_factory=dict)
    """What Flannel on the Linux side was told (``net-conf.json``)."""
    refused: str = ""
    """The first refusal, in the API server's words; where rights are missing, a cluster tells less than it knows."""


async def look(client: Client) -> Findings:
    """Ask for everything; what may not be read, or is not there, stays empty and is asked of the operator."""
    asked = _Asked(client)
    found = Findings(server=plain_release((await client.version()).get("gitVersion") or ""))
    kubeadm = _yaml((await asked.data("kube-system", "kubeadm-config")).get("ClusterConfiguration"))
    networking = _mapping(kubeadm.get("networking"))
    found.pod_cidrs = _ranges(networking.get("podSubnet"))
    found.service_cidrs = _ranges(networking.get("serviceSubnet")) or await asked.service_ranges()
    found.dns_domain = str(networking.get("dnsDomain") or "")
    for namespace, name in FLANNEL_CONFIG:
        if text := (await asked.data(namespace, name)).get("net-conf.json"):
            found.flannel = _json(text)
            break
    found.pod_cidrs = found.pod_cidrs or _ranges(found.flannel.get("Network"))
    kubelet = _yaml((await asked.data("kube-system", "kubelet-config")).get("kubelet"))
    servers = kubelet.get("clusterDNS")
    found.dns_servers = [str(one) for one in servers] if isinstance(servers, list) else await asked.dns_service()
    found.dns_domain = found.dns_domain or str(kubelet.get("clusterDomain") or "")
    found.endpoint = (
        await asked.public_endpoint()
        or str(kubeadm.get("controlPlaneEndpoint") or "")
        or urlsplit(client.transport.target.server).netloc
    )
    found.refused = asked.refused
    return found


class _Asked:
    """Questions whose refusal is remembered instead of raised."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.refused = ""

    async def public_endpoint(self) -> str:
        """What machines that join are told: the server in ``cluster-info``."""
        clusters = _yaml((await self.data("kube-public", "cluster-info")).get("kubeconfig")).get("clusters")
        if not isinstance(clusters, list) or not clusters:
            return ""
        return urlsplit(str(_mapping(_mapping(clusters[0]).get("cluster")).get("server") or "")).netloc

    async def service_ranges(self) -> list[str]:
        """The ranges that the API server itself works with, where it has objects for them."""
        try:
            objects = await self.client.list(SERVICE_CIDRS)
        except ApiError:
            return []
        return [str(cidr) for item in objects for cidr in _mapping(item.get("spec")).get("cidrs") or []]

    async def dns_service(self) -> list[str]:
        """The address of the DNS service, by the name that all distributions use."""
        service = await self._find(SERVICES, "kube-system", "kube-dns")
        address = _mapping(service.get("spec")).get("clusterIP")
        return [str(address)] if address and address != "None" else []

    async def data(self, namespace: str, name: str) -> dict[str, str]:
        """The content of a config map; empty when there is none."""
        return (await self._find(CONFIG_MAPS, namespace, name)).get("data") or {}

    async def _find(self, resource: Resource, namespace: str, name: str) -> dict[str, Any]:
        try:
            return await self.client.find(resource, name, namespace) or {}
        except ApiError as error:
            self.refused = self.refused or error.message
            return {}


def _ranges(value: Any) -> list[str]:
    return [part.strip() for part in str(value or "").split(",") if part.strip()]


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _yaml(text: str | None) -> dict[str, Any]:
    try:
        return _mapping(yaml.safe_load(text or ""))
    except yaml.YAMLError:
        return {}


def _json(text: str) -> dict[str, Any]:
    try:
        return _mapping(json.loads(text))
    except (ValueError, RecursionError):
        return {}

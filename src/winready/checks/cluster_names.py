"""How the cluster's own names are made, as seen from inside: its domain, and the service that answers for it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from winready.cluster.commands import dig, lines, read_file, read_replies
from winready.cluster.errors import ClusterError
from winready.cluster.failures import CheckBlocked
from winready.cluster.pods import Pod
from winready.cluster.resources import ENDPOINT_SLICES, SERVICES

if TYPE_CHECKING:
    from winready.checks.world import World

SERVICE_LABEL = "kubernetes.io/service-name"
DNS_SERVICES = (
    ("kube-system", "k8s-app=kube-dns"),
    ("kube-system", "k8s-app=coredns"),
    ("openshift-dns", "dns.operator.openshift.io/owning-dns=default"),
)
"""Where distributions keep cluster DNS, and the label that its service has there."""


@dataclass(frozen=True)
class DnsService:
    """The service that answers for the cluster's names."""

    namespace: str
    name: str
    addresses: tuple[str, ...]
    pods: tuple[str, ...]
    """Addresses of the pods behind it."""


class ClusterNames:
    """Found on first use, for all checks of a run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lock = asyncio.Lock()
        self._domain = ""

    async def domain(self) -> str:
        """The DNS domain of the cluster: what kubelets append to ``svc`` in the search list of Linux pods."""
        async with self._lock:
            self._domain = self._domain or await self._find_domain()
            return self._domain

    async def _find_domain(self) -> str:
        pods = await self._world.fixtures.clients("linux")
        found = {pod.node.name: await _suffix(pod) for pod in pods}
        found = {node: domain for node, domain in found.items() if domain}
        if not found:
            found = {pod.node.name: domain for pod in pods if (domain := await self._configured(pod.node.name))}
        candidates = list(dict.fromkeys(found.values()))
        if len(candidates) == 1:
            return candidates[0]
        if not candidates:
            raise CheckBlocked(
                f"the cluster's DNS domain is not known: no Linux pod has the search suffix of its namespace "
                f"('{pods[0].namespace}.svc.DOMAIN'), and no kubelet's configuration tells it",
                next_step="look at clusterDomain of the kubelets; to let winready read it, grant 'get nodes/proxy' "
                "('winready rbac' prints the role)",
            )
        return await _that_resolves(pods[0], found, candidates)

    async def _configured(self, node: str) -> str:
        try:
            document = await self._world.client.node_proxy(node, "configz", key="kubeletconfig")
            return str(document["kubeletconfig"]["clusterDomain"])
        except (ClusterError, KeyError, TypeError):
            # Reading it is a right that not every operator has.
            return ""

    async def dns_service(self) -> DnsService | None:
        """The service of cluster DNS as it is now; None where it cannot be found or may not be read."""
        client = self._world.client
        try:
            for namespace, labels in DNS_SERVICES:
                for service in await client.list(SERVICES, namespace, labels=labels):
                    spec, name = service["spec"], service["metadata"]["name"]
                    addresses = tuple(spec.get("clusterIPs") or [spec.get("clusterIP")])
                    if addresses[0] in (None, "", "None"):
                        continue
                    slices = await client.list(ENDPOINT_SLICES, namespace, labels=f"{SERVICE_LABEL}={name}")
                    ends = [end for each in slices for end in each.get("endpoints") or []]
                    pods = tuple(address for end in ends for address in end["addresses"])
                    return DnsService(namespace, name, addresses, pods)
        except ClusterError:
            return None
        return None


async def _suffix(pod: Pod) -> str:
    result = await pod.run(read_file("linux", "/etc/resolv.conf"))
    searches = [word for line in lines(result.stdout) if line.startswith("search") for word in line.split()[1:]]
    own = f"{pod.namespace}.svc."
    return next((word.removeprefix(own).rstrip(".") for word in searches if word.startswith(own)), "")


async def _that_resolves(pod: Pod, found: dict[str, str], candidates: list[str]) -> str:
    """The one of several domains in which the API server has a name."""
    result = await pod.run(dig([f"kubernetes.default.svc.{domain}" for domain in candidates]))
    replies = read_replies(result.stdout)
    known = [domain for domain, reply in zip(candidates, replies, strict=False) if reply.addresses]
    if len(known) == 1:
        return known[0]
    said = ", ".join(f"node {node}: {domain}" for node, domain in sorted(found.items()))
    raise CheckBlocked(
        f"Linux nodes disagree about the cluster's DNS domain ({said}), and 'kubernetes.default.svc' has an address in "
        f"{'each' if known else 'none'} of them",
        next_step="give all kubelets the same clusterDomain, the one that cluster DNS answers for",
    )

"""What every usable cluster has beside its control plane: DNS, service proxies and a network with policies.

They are ordinary objects that the cluster's own controllers turn into pods. CoreDNS really answers queries from its
pod, and the proxies and policy engines of a node act only while their pods' processes have not been stopped.
"""

from __future__ import annotations

import contextlib
from importlib import resources
from string import Template
from typing import Any

import yaml

from winready_sandbox.apiclient import ApiClient, Conflict
from winready_sandbox.machine.machine import HYPER_V_ISOLATION

_PLURALS = {
    "ServiceAccount": "serviceaccounts",
    "ConfigMap": "configmaps",
    "Deployment": "deployments",
    "Service": "services",
    "DaemonSet": "daemonsets",
}


def objects(*, version: str, domain: str = "cluster.local", dns: str = "10.96.0.10") -> list[dict[str, Any]]:
    """The objects of a cluster of that Kubernetes version (``v1.36.0``)."""
    text = resources.files("winready_sandbox").joinpath("addons.yaml").read_text("utf-8")
    return list(yaml.load_all(Template(text).substitute(version=version, domain=domain, dns=dns), yaml.CSafeLoader))


async def cache_dns_on_nodes(client: ApiClient, *, dns: str = "10.96.0.10") -> None:
    """NodeLocal DNSCache on Linux nodes, as kube-proxy in IPVS mode needs it: at its own address alone."""
    text = resources.files("winready_sandbox").joinpath("node_local_dns.yaml").read_text("utf-8")
    await _create(client, list(yaml.load_all(Template(text).substitute(dns=dns), yaml.CSafeLoader)))


async def install(
    client: ApiClient,
    *,
    version: str,
    domain: str = "cluster.local",
    dns: str = "10.96.0.10",
    host_process: bool = True,
) -> None:
    """Create what is not there yet. Without HostProcess pods, the agents of Windows nodes are services of Windows."""
    wanted = objects(version=version, domain=domain, dns=dns)
    await _create(client, [obj for obj in wanted if host_process or not _on_windows_hosts(obj)])


def _on_windows_hosts(obj: dict[str, Any]) -> bool:
    security = obj.get("spec", {}).get("template", {}).get("spec", {}).get("securityContext") or {}
    return bool((security.get("windowsOptions") or {}).get("hostProcess"))


async def _create(client: ApiClient, wanted: list[dict[str, Any]]) -> None:
    for obj in wanted:
        try:
            await client.create(_PLURALS[obj["kind"]], obj, obj["metadata"]["namespace"])
        except Conflict:
            continue


async def offer_isolation(client: ApiClient) -> None:
    """The class of pods that run in a virtual machine of their own, under the name that upstream's tests know."""
    selector = {"nodeSelector": {"kubernetes.io/os": "windows"}}
    obj = {"metadata": {"name": HYPER_V_ISOLATION}, "handler": HYPER_V_ISOLATION, "scheduling": selector}
    with contextlib.suppress(Conflict):
        await client.create("runtimeclasses", obj)

"""What a fresh cluster holds before anybody writes to it: namespaces, roles, priority classes, the API service."""

from __future__ import annotations

from typing import Any, Protocol

from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.roles import cluster_role_bindings, cluster_roles

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
PRIORITIES = {
    "system-cluster-critical": (
        2000000000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
    "system-node-critical": (
        2000001000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
}

Object = dict[str, Any]


class Creator(Protocol):
    """Whoever can create objects; the in-process client can."""

    def create(self, resource: str, obj: Object, namespace: str = "") -> Object:
        """Store a new object."""


def fill(client: Creator, *, service_ip: str, server_ip: str, server_port: int, ca: bytes) -> None:
    """Write what every cluster starts with."""
    for name in NAMESPACES:
        _create(client, "namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for role in cluster_roles():
        _create(client, "clusterroles", role)
    for binding in cluster_role_bindings():
        _create(client, "clusterrolebindings", binding)
    for name, (value, description) in PRIORITIES.items():
        priority = {"metadata": {"name": name}, "value": value, "description": description}
        kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        _create(client, "priorityclasses", {**kind, **priority})
    _create(client, "services", _api_service(service_ip), "default")
    _create(client, "endpointslices", _api_endpoints(server_ip, server_port), "default")
    _create(client, "configmaps", _authentication_config(ca), "kube-system")


def _create(client: Creator, resource: str, obj: Object, namespace: str = "") -> None:
    try:
        client.create(resource, obj, namespace)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise


def _api_service(service_ip: str) -> Object:
    labels = {"component": "apiserver", "provider": "kubernetes"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "spec": {
            "type": "ClusterIP",
            "clusterIP": service_ip,
            "clusterIPs": [service_ip],
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
        },
    }


def _api_endpoints(server_ip: str, server_port: int) -> Object:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [server_ip], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": server_port, "protocol": "TCP"}],
    }


def _authentication_config(ca: bytes) -> Object:
    """What extension API servers read to trust client certificates of this cluster."""
    metadata = {"name": "extension-apiserver-authentication", "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"client-ca-file": ca.decode()}}

"""What the network knows of the cluster: one shared, trimmed copy of the objects that shape traffic.

Every node's proxy, policy engine and the DNS server read this copy instead of watching on their own: a hundred
simulated nodes would otherwise hold a hundred copies. What differs between nodes is when they act on a change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Literal

Obj = dict[str, Any]
Key = tuple[str, str]
"""Namespace and name."""
Kind = Literal["services", "endpointslices", "networkpolicies", "namespaces", "pods"]
KINDS: tuple[Kind, ...] = ("services", "endpointslices", "networkpolicies", "namespaces", "pods")
SERVICE_NAME_LABEL = "kubernetes.io/service-name"


def key_of(obj: Obj) -> Key:
    """Namespace and name of an object."""
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _trim_pod(pod: Obj) -> Obj:
    """The fields of a pod that traffic depends on; two thousand whole pods would be a lot of memory."""
    metadata, spec, status = pod["metadata"], pod.get("spec", {}), pod.get("status", {})
    containers = spec.get("containers", []) + [
        c for c in spec.get("initContainers", []) if c.get("restartPolicy") == "Always"
    ]
    return {
        "metadata": {k: metadata[k] for k in ("name", "namespace", "uid", "labels") if k in metadata},
        "spec": {
            **{k: spec[k] for k in ("nodeName", "hostname", "subdomain", "hostNetwork") if k in spec},
            "containers": [{"ports": c["ports"]} for c in containers if c.get("ports")],
        },
        "status": {k: status[k] for k in ("phase", "podIP", "podIPs") if k in status},
    }


def pod_addresses(pod: Obj) -> list[str]:
    """The addresses that are the pod's own: none on the host network, none once it has finished."""
    status = pod.get("status", {})
    if pod.get("spec", {}).get("hostNetwork") or status.get("phase") in ("Succeeded", "Failed"):
        return []
    return [item["ip"] for item in status.get("podIPs", []) if item.get("ip")]


class ClusterView:
    """Objects by kind and key, with subscriptions; fed by `watch.follow` or, in tests, by hand."""

    def __init__(self) -> None:
        self.objects: dict[Kind, dict[Key, Obj]] = {kind: {} for kind in KINDS}
        self.slices_of: dict[Key, dict[Key, Obj]] = defaultdict(dict)
        self.pods_by_ip: dict[str, Obj] = {}
        self.services_by_ip: dict[str, Key] = {}
        self._service_listeners: list[Callable[[Key], None]] = []
        self._policy_listeners: list[Callable[[], None]] = []

    def on_services(self, listener: Callable[[Key], None]) -> None:
        """Call with the key of each service whose definition or endpoints change."""
        self._service_listeners.append(listener)

    def on_policies(self, listener: Callable[[], None]) -> None:
        """Call when any network policy changes."""
        self._policy_listeners.append(listener)

    def forget(self, listener: Callable[..., None]) -> None:
        """Drop a subscription."""
        self._service_listeners = [item for item in self._service_listeners if item != listener]
        self._policy_listeners = [item for item in self._policy_listeners if item != listener]

    def put(self, kind: Kind, obj: Obj) -> None:
        """An object was added or changed."""
        key = key_of(obj)
        if kind == "pods":
            obj = _trim_pod(obj)
        old = self.objects[kind].get(key)
        self.objects[kind][key] = obj
        self._index(kind, key, old, obj)

    def remove(self, kind: Kind, namespace: str, name: str) -> None:
        """An object is gone."""
        key = (namespace, name)
        old = self.objects[kind].pop(key, None)
        if old is not None:
            self._index(kind, key, old, None)

    def replace(self, kind: Kind, objects: Iterable[Obj]) -> None:
        """The whole truth about a kind, after a new list."""
        kept = {key_of(obj): obj for obj in objects}
        for namespace, name in [key for key in self.objects[kind] if key not in kept]:
            self.remove(kind, namespace, name)
        for obj in kept.values():
            self.put(kind, obj)

    def _index(self, kind: Kind, key: Key, old: Obj | None, new: Obj | None) -> None:
        match kind:
            case "services":
                for ip in _cluster_ips(old):
                    if self.services_by_ip.get(ip) == key:
                        del self.services_by_ip[ip]
                for ip in _cluster_ips(new):
                    self.services_by_ip[ip] = key
                self._tell_services(key)
            case "endpointslices":
                before, after = _service_of(old), _service_of(new)
                if before is not None and before != after:
                    self.slices_of[before].pop(key, None)
                    self._tell_services(before)
                if after is not None and new is not None:
                    self.slices_of[after][key] = new
                    self._tell_services(after)
            case "networkpolicies":
                for listener in self._policy_listeners:
                    listener()
            case "pods":
                for ip in pod_addresses(old) if old else []:
                    if key_of(self.pods_by_ip.get(ip, old or {})) == key:
                        self.pods_by_ip.pop(ip, None)
                for ip in pod_addresses(new) if new else []:
                    self.pods_by_ip[ip] = new or {}
            case "namespaces":
                pass

    def _tell_services(self, key: Key) -> None:
        for listener in self._service_listeners:
            listener(key)


def _cluster_ips(service: Obj | None) -> list[str]:
    spec = service.get("spec", {}) if service else {}
    ips = spec.get("clusterIPs") or [spec.get("clusterIP", "")]
    return [ip for ip in ips if ip and ip != "None"]


def _service_of(endpoint_slice: Obj | None) -> Key | None:
    if endpoint_slice is None:
        return None
    metadata = endpoint_slice["metadata"]
    name = (metadata.get("labels") or {}).get(SERVICE_NAME_LABEL)
    return (metadata.get("namespace", ""), name) if name else None

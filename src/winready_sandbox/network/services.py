"""Services and their EndpointSlices, compiled once into what every node's proxy programs from."""

from __future__ import annotations

from dataclasses import dataclass

from winready_sandbox.network.view import ClusterView, Key, Obj


@dataclass(frozen=True)
class Backend:
    """One endpoint of a service port."""

    ip: str
    port: int
    node: str = ""


@dataclass(frozen=True)
class ServicePort:
    """One port of a service with the endpoints behind it."""

    port: int
    protocol: str
    node_port: int
    backends: tuple[Backend, ...]
    unready: tuple[Backend, ...] = ()
    """Endpoints that no sound proxy sends anything to."""
    first_slice: tuple[Backend, ...] = ()
    """Those of the backends that are in the first EndpointSlice that has any."""


@dataclass(frozen=True)
class ServiceState:
    """A service as a proxy sees it."""

    key: Key
    uid: str
    vips: tuple[str, ...]
    """Cluster IPs, external IPs and load balancer addresses."""
    ports: tuple[ServicePort, ...]
    affinity_seconds: float
    """How long a client sticks to a backend; 0 without affinity."""
    external_local: bool
    internal_local: bool


class ServiceCatalog:
    """Compiles services on demand and remembers the result until they change."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._compiled: dict[Key, ServiceState | None] = {}
        view.on_services(self._forget)

    def _forget(self, key: Key) -> None:
        self._compiled.pop(key, None)

    def keys(self) -> list[Key]:
        """All services there are."""
        return list(self._view.objects["services"])

    def get(self, key: Key) -> ServiceState | None:
        """The service, or None when there is none (or nothing to proxy for it)."""
        if key not in self._compiled:
            service = self._view.objects["services"].get(key)
            self._compiled[key] = _compile(service, self._view.slices_of.get(key, {})) if service else None
        return self._compiled[key]


def _compile(service: Obj, slices: dict[Key, Obj]) -> ServiceState | None:
    spec = service.get("spec", {})
    if spec.get("type") == "ExternalName" or spec.get("clusterIP") in ("None", "", None):
        return None
    ingress = service.get("status", {}).get("loadBalancer", {}).get("ingress") or []
    vips = [*(spec.get("clusterIPs") or [spec["clusterIP"]]), *(spec.get("externalIPs") or [])]
    vips += [item["ip"] for item in ingress if item.get("ip") and item.get("ipMode", "VIP") == "VIP"]
    affinity = 0.0
    if spec.get("sessionAffinity") == "ClientIP":
        affinity = (spec.get("sessionAffinityConfig") or {}).get("clientIP", {}).get("timeoutSeconds", 10800)
    ports = tuple(
        ServicePort(
            port["port"],
            port.get("protocol", "TCP"),
            port.get("nodePort", 0),
            *_backends(port.get("name", ""), port.get("protocol", "TCP"), slices),
        )
        for port in spec.get("ports") or []
    )
    metadata = service["metadata"]
    return ServiceState(
        key=(metadata.get("namespace", ""), metadata["name"]),
        uid=metadata.get("uid", ""),
        vips=tuple(vips),
        ports=ports,
        affinity_seconds=float(affinity),
        external_local=spec.get("externalTrafficPolicy") == "Local",
        internal_local=spec.get("internalTrafficPolicy") == "Local",
    )


def _backends(port_name: str, protocol: str, slices: dict[Key, Obj]) -> tuple[tuple[Backend, ...], ...]:
    """Ready endpoints; when there is none, those that still serve while they terminate.

    Then those that are neither, and those of the first that come from one slice.
    """
    ready: dict[Backend, None] = {}
    terminating: dict[Backend, None] = {}
    unready: dict[Backend, None] = {}
    slice_of: dict[Backend, Key] = {}
    for key, endpoint_slice in sorted(slices.items()):
        for port in endpoint_slice.get("ports") or []:
            if (port.get("name") or "") != port_name or port.get("protocol", "TCP") != protocol or not port.get("port"):
                continue
            for endpoint in endpoint_slice.get("endpoints") or []:
                conditions = endpoint.get("conditions") or {}
                if conditions.get("ready") is not False:
                    bucket = ready
                elif conditions.get("serving") is not False and conditions.get("terminating"):
                    bucket = terminating
                else:
                    bucket = unready
                for ip in endpoint.get("addresses", [])[:1]:
                    backend = Backend(ip, port["port"], endpoint.get("nodeName") or "")
                    bucket[backend] = None
                    if bucket is not unready:
                        slice_of.setdefault(backend, key)
    found = tuple(ready or terminating)
    first = tuple(backend for backend in found if slice_of[backend] == slice_of[found[0]])
    return found, tuple(unready), first

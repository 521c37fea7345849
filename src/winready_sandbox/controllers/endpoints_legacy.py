"""The older Endpoints objects of services, and slices for Endpoints that people write by hand."""

from __future__ import annotations

import ipaddress

from winready_sandbox.api.objects import Object
from winready_sandbox.controllers.endpoints import (
    HEADLESS,
    MANAGED_BY,
    PER_SLICE,
    SERVICE_NAME,
    SKIP_MIRROR,
    Port,
    ServiceController,
    address,
    families,
    headless,
    pod_hostname,
    resolve_ports,
    target_reference,
)
from winready_sandbox.controllers.endpointslice import slice_ports, slices_of_service, write_slices
from winready_sandbox.controllers.objects import Key, deleting, key_of, labels_of, pod_ready

CONTROLLER_LABEL = "endpoints.kubernetes.io/managed-by"
MIRROR = "endpointslicemirroring-controller.k8s.io"
LEADER = "control-plane.alpha.kubernetes.io/leader"


class EndpointsController(ServiceController):
    """Keeps the Endpoints object of each service with a selector."""

    name = "endpoint-controller"

    def watch(self) -> None:
        """Follow services, pods and Endpoints."""
        self.endpoints = self.informers.of("endpoints")
        super().watch()
        self.endpoints.add_handler(self.enqueue)

    def sync(self, key: Key) -> None:
        """Bring a service's Endpoints up to date."""
        if self.held_back(key):
            return
        service, existing = self.services.get(key), self.endpoints.get(key)
        if service is None:
            if existing is not None and CONTROLLER_LABEL in labels_of(existing):
                self.informers.delete("endpoints", existing)
            return
        if deleting(service) or not service["spec"].get("selector") or service["spec"].get("type") == "ExternalName":
            return
        labels = {**labels_of(service), CONTROLLER_LABEL: "endpoint-controller"}
        if headless(service):
            labels[HEADLESS] = ""
        subsets = self._subsets(service)
        if existing is None:
            meta = {"name": key[1], "namespace": key[0], "labels": labels}
            wanted: Object = {"apiVersion": "v1", "kind": "Endpoints", "metadata": meta, "subsets": subsets}
            self.informers.create("endpoints", wanted, key[0])
        elif (existing.get("subsets") or []) != subsets or labels_of(existing) != labels:
            meta = {**existing["metadata"], "labels": labels}
            self.informers.update("endpoints", {**existing, "metadata": meta, "subsets": subsets})

    def _subsets(self, service: Object) -> list[Object]:
        groups: dict[tuple[Port, ...], tuple[list[Object], list[Object]]] = {}
        for pod in self.selected(service):
            ip = address(pod, families(service)[0])
            if not ip or (deleting(pod) and not service["spec"].get("publishNotReadyAddresses")):
                continue
            entry: Object = {"ip": ip, "targetRef": target_reference(pod)}
            if pod["spec"].get("nodeName"):
                entry["nodeName"] = pod["spec"]["nodeName"]
            hostname = pod_hostname(service, pod)
            if hostname:
                entry["hostname"] = hostname
            ready, waiting = groups.setdefault(resolve_ports(service, pod), ([], []))
            (ready if pod_ready(pod) or service["spec"].get("publishNotReadyAddresses") else waiting).append(entry)
        subsets = []
        for ports, (ready, waiting) in groups.items():
            subset: Object = {}
            if ready:
                subset["addresses"] = ready
            if waiting:
                subset["notReadyAddresses"] = waiting
            if ports:
                subset["ports"] = [
                    {field: value for field, value in port.items() if value != ""} for port in slice_ports(ports)
                ]
            subsets.append(subset)
        return subsets


class MirroringController(ServiceController):
    """Keeps slices for the Endpoints of services without a selector."""

    name = "endpoint-slice-mirroring-controller"
    kind = "Endpoints"

    def watch(self) -> None:
        """Follow services and Endpoints; pods do not matter here."""
        self.services = self.informers.of("services")
        self.endpoints = self.informers.of("endpoints")
        self.slices = self.informers.of("endpointslices")
        self.slices.add_index("service", slices_of_service)
        self.services.add_handler(self.enqueue)
        self.endpoints.add_handler(self.enqueue)

    def sync(self, key: Key) -> None:
        """Bring the mirrored slices up to date."""
        service, source = self.services.get(key), self.endpoints.get(key)
        ours = [s for s in self.slices.by("service", "/".join(key)) if labels_of(s).get(MANAGED_BY) == MIRROR]
        if service is None or service["spec"].get("selector") or source is None or _not_mirrored(source):
            for entry in ours:
                self.informers.delete("endpointslices", entry)
            return
        labels = {**labels_of(source), SERVICE_NAME: key_of(source)[1], MANAGED_BY: MIRROR}
        contents = [c for subset in source.get("subsets") or () for c in _mirrored(subset)]
        write_slices(self, {**source, "kind": "Endpoints"}, ours, contents, labels)


def _not_mirrored(source: Object) -> bool:
    labels = labels_of(source)
    annotations = source["metadata"].get("annotations") or {}
    return labels.get(SKIP_MIRROR) == "true" or LEADER in annotations or CONTROLLER_LABEL in labels


def _mirrored(subset: Object) -> list[Object]:
    ports = [
        {"name": port.get("name") or "", "port": port["port"], "protocol": port.get("protocol") or "TCP"}
        for port in subset.get("ports") or ()
    ]
    contents: list[Object] = []
    for family, version in (("IPv4", 4), ("IPv6", 6)):
        endpoints = []
        for field, ready in (("addresses", True), ("notReadyAddresses", False)):
            for entry in subset.get(field) or ():
                if ipaddress.ip_address(entry["ip"]).version != version:
                    continue
                endpoint: Object = {"addresses": [entry["ip"]], "conditions": {"ready": ready}}
                for name in ("hostname", "nodeName", "targetRef"):
                    if entry.get(name):
                        endpoint[name] = entry[name]
                endpoints.append(endpoint)
        contents.extend(
            {"addressType": family, "endpoints": endpoints[start : start + PER_SLICE], "ports": ports}
            for start in range(0, len(endpoints), PER_SLICE)
        )
    return contents

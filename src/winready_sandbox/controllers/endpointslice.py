"""EndpointSlices: the addresses behind each service, one set of slices per family and set of ports."""

from __future__ import annotations

from winready_sandbox.api.objects import Object
from winready_sandbox.controllers.endpoints import (
    HEADLESS,
    MANAGED_BY,
    PER_SLICE,
    SERVICE_NAME,
    Port,
    ServiceController,
    address,
    families,
    headless,
    pod_hostname,
    resolve_ports,
    target_reference,
)
from winready_sandbox.controllers.objects import (
    Key,
    deleting,
    key_of,
    labels_of,
    micro_now_text,
    owner_reference,
    pod_ready,
)

MANAGER = "endpointslice-controller.k8s.io"
TRIGGER = "endpoints.kubernetes.io/last-change-trigger-time"


def slices_of_service(entry: Object) -> list[str]:
    """Index function: the service that a slice belongs to, by namespace and name."""
    name = labels_of(entry).get(SERVICE_NAME)
    return [f"{entry['metadata']['namespace']}/{name}"] if name else []


def write_slices(
    controller: ServiceController, owner: Object, existing: list[Object], wanted: list[Object], labels: dict[str, str]
) -> None:
    """Make the slices of an owner hold exactly the wanted contents, touching as few as possible."""
    left = list(existing)
    missing = []
    for content in wanted:
        same = next((entry for entry in left if _content(entry) == content and labels_of(entry) == labels), None)
        if same is None:
            missing.append(content)
        else:
            left.remove(same)
    now = micro_now_text()
    for content in missing:
        reusable = next(
            (s for s in left if (s["addressType"], s.get("ports")) == (content["addressType"], content["ports"])), None
        )
        reusable = reusable or next((s for s in left if s["addressType"] == content["addressType"]), None)
        if reusable is None:
            _create(controller, owner, content, labels, now)
            continue
        left.remove(reusable)
        meta = reusable["metadata"]
        annotations = {**(meta.get("annotations") or {}), TRIGGER: now}
        changed = {**reusable, **content, "metadata": {**meta, "labels": labels, "annotations": annotations}}
        controller.informers.update("endpointslices", changed)
    for entry in left:
        controller.informers.delete("endpointslices", entry)


def _create(controller: ServiceController, owner: Object, content: Object, labels: dict[str, str], now: str) -> None:
    namespace, name = key_of(owner)
    meta: Object = {
        "generateName": f"{name}-",
        "namespace": namespace,
        "labels": labels,
        "annotations": {TRIGGER: now},
        "ownerReferences": [owner_reference(controller.api_version, owner.get("kind") or controller.kind, owner)],
    }
    entry = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": meta, **content}
    controller.informers.create("endpointslices", entry, namespace)


def _content(entry: Object) -> Object:
    return {
        "addressType": entry["addressType"],
        "endpoints": entry.get("endpoints") or [],
        "ports": entry.get("ports") or [],
    }


def slice_ports(ports: tuple[Port, ...]) -> list[Object]:
    """Ports as slices write them."""
    written = []
    for name, protocol, number, application in ports:
        port: Object = {"name": name, "port": number, "protocol": protocol}
        if application:
            port["appProtocol"] = application
        written.append(port)
    return written


class EndpointSliceController(ServiceController):
    """Keeps the slices of services with a selector."""

    name = "endpoint-slice-controller"

    def watch(self) -> None:
        """Follow services, pods, slices that others change, and the zones of nodes."""
        self.slices = self.informers.of("endpointslices")
        self.slices.add_index("service", slices_of_service)
        self.nodes = self.informers.of("nodes")
        super().watch()
        self.slices.add_handler(self._slice_changed)

    def _slice_changed(self, old: Object | None, new: Object | None) -> None:
        """A slice of ours that somebody deletes or edits is put right again."""
        for entry in (old, new):
            if entry is not None and labels_of(entry).get(MANAGED_BY) == MANAGER:
                self.enqueue_owner(None, entry)

    def sync(self, key: Key) -> None:
        """Bring a service's slices up to date."""
        if self.held_back(key):
            return
        service = self.services.get(key)
        ours = [s for s in self.slices.by("service", "/".join(key)) if labels_of(s).get(MANAGED_BY) == MANAGER]
        if service is None or deleting(service) or not service["spec"].get("selector"):
            return
        if service["spec"].get("type") == "ExternalName":
            for entry in ours:
                self.informers.delete("endpointslices", entry)
            return
        contents = [content for family in families(service) for content in self._contents(service, family, ours)]
        labels = {**labels_of(service), SERVICE_NAME: key[1], MANAGED_BY: MANAGER}
        labels.pop(HEADLESS, None)
        if headless(service):
            labels[HEADLESS] = ""
        write_slices(self, service, ours, contents, labels)

    def _contents(self, service: Object, family: str, existing: list[Object]) -> list[Object]:
        groups: dict[tuple[Port, ...], list[Object]] = {}
        for pod in self.selected(service):
            ip = address(pod, family)
            if ip:
                groups.setdefault(resolve_ports(service, pod), []).append(self._endpoint(service, pod, ip))
        if not groups:
            return [{"addressType": family, "endpoints": [], "ports": []}]
        contents: list[Object] = []
        for ports, endpoints in groups.items():
            written = slice_ports(ports)
            kept = [s for s in existing if s["addressType"] == family and (s.get("ports") or []) == written]
            contents.extend(
                {"addressType": family, "endpoints": chunk, "ports": written} for chunk in _chunks(endpoints, kept)
            )
        return contents

    def _endpoint(self, service: Object, pod: Object, ip: str) -> Object:
        ready, terminating = pod_ready(pod), deleting(pod)
        public = bool(service["spec"].get("publishNotReadyAddresses"))
        endpoint: Object = {
            "addresses": [ip],
            "conditions": {
                "ready": public or (ready and not terminating),
                "serving": ready,
                "terminating": terminating,
            },
            "targetRef": target_reference(pod),
        }
        node_name = pod["spec"].get("nodeName")
        if node_name:
            endpoint["nodeName"] = node_name
            node = self.nodes.get(("", node_name))
            zone = labels_of(node).get("topology.kubernetes.io/zone") if node else None
            if zone:
                endpoint["zone"] = zone
        hostname = pod_hostname(service, pod)
        if hostname:
            endpoint["hostname"] = hostname
        return endpoint


def _chunks(endpoints: list[Object], existing: list[Object]) -> list[list[Object]]:
    """Endpoints in slices of at most 100, each staying in the slice where it was."""
    by_pod = {endpoint["targetRef"]["uid"]: endpoint for endpoint in endpoints}
    chunks = []
    for entry in existing:
        uids = [(old.get("targetRef") or {}).get("uid", "") for old in entry.get("endpoints") or ()]
        chunk = [by_pod.pop(uid) for uid in uids if uid in by_pod]
        if chunk:
            chunks.append(chunk)
    fresh = list(by_pod.values())
    for chunk in sorted(chunks, key=len, reverse=True):
        room = PER_SLICE - len(chunk)
        chunk.extend(fresh[:room])
        fresh = fresh[room:]
    return [*chunks, *(fresh[start : start + PER_SLICE] for start in range(0, len(fresh), PER_SLICE))]

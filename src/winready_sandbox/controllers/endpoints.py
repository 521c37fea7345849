"""Which pods stand behind a service: the question that EndpointSlices and the older Endpoints answer alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from winready_sandbox.api.objects import Object
from winready_sandbox.controllers.controller import Controller
from winready_sandbox.controllers.defects import LOOK_AGAIN
from winready_sandbox.controllers.objects import Key, deleting, key_of, labels_of, namespaces, pod_finished, pod_ready
from winready_sandbox.controllers.selecting import equality

MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
SERVICE_NAME = "kubernetes.io/service-name"
SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"
HEADLESS = "service.kubernetes.io/headless"
PER_SLICE = 100
OFTEN = 60
"""Changes of a service after which a controller that lags under churn begins to lag."""

Port = tuple[str, str, int, str]
"""Name, protocol, number, application protocol."""


def headless(service: Object) -> bool:
    """Whether a service has no address of its own."""
    return bool(service["spec"].get("clusterIP") == "None")


def families(service: Object) -> list[str]:
    """The address families of a service."""
    return list(service["spec"].get("ipFamilies") or ["IPv4"])


def address(pod: Object, family: str) -> str:
    """The pod's address of a family, or nothing."""
    status = pod.get("status") or {}
    found = [entry.get("ip", "") for entry in status.get("podIPs") or ()] or [status.get("podIP") or ""]
    return next((ip for ip in found if ip and (":" in ip) == (family == "IPv6")), "")


def resolve_ports(service: Object, pod: Object) -> tuple[Port, ...]:
    """The service's ports on a pod; a named target that the pod does not have is left out."""
    resolved = []
    for port in service["spec"].get("ports") or ():
        protocol = port.get("protocol") or "TCP"
        target = port.get("targetPort") or port["port"]
        number = target if isinstance(target, int) else _named(pod, target, protocol)
        if number:
            resolved.append((port.get("name") or "", protocol, number, port.get("appProtocol") or ""))
    return tuple(resolved)


def _named(pod: Object, name: str, protocol: str) -> int:
    sidecars = [c for c in pod["spec"].get("initContainers") or () if c.get("restartPolicy") == "Always"]
    for container in [*pod["spec"]["containers"], *sidecars]:
        for port in container.get("ports") or ():
            if port.get("name") == name and (port.get("protocol") or "TCP") == protocol:
                return int(port["containerPort"])
    return 0


class ServiceController(Controller):
    """What controllers of endpoints share: services are worked on when they or pods they select change."""

    kind = "Service"
    api_version = "v1"
    resource = "services"

    def watch(self) -> None:
        """Follow services and pods."""
        self._changes: Counter[Key] = Counter()
        self._due: dict[Key, float] = {}
        self.services = self.informers.of("services")
        self.services.add_index("namespace", namespaces)
        self.services.add_handler(self.enqueue)
        self.context.pods.add_handler(self._pod_changed)

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and _relevant(old) == _relevant(new):
            return
        for pod in (old, new):
            if pod is None or (pod is old and new is not None and labels_of(pod) == labels_of(new)):
                continue
            for service in self.services.by("namespace", pod["metadata"]["namespace"]):
                if selector_of(service)(labels_of(pod)):
                    self.queue.add(key_of(service))

    def selected(self, service: Object) -> list[Object]:
        """The pods that may serve: selected, with an address, not at their end."""
        matches = selector_of(service)
        return sorted(
            (
                pod
                for pod in self.context.pods.by("namespace", service["metadata"]["namespace"])
                if matches(labels_of(pod)) and (pod.get("status") or {}).get("podIP") and not pod_finished(pod)
            ),
            key=lambda pod: str(pod["metadata"]["name"]),
        )

    def held_back(self, key: Key) -> bool:
        """Whether a fault keeps endpoints as they are; if so, look again later."""
        if self.context.defects.endpoints_frozen:
            self.queue.add_after(key, LOOK_AGAIN)
        return self.context.defects.endpoints_frozen or self._late(key)

    def _late(self, key: Key) -> bool:
        """Whether this service changed so often that a tired controller comes to it later."""
        lag, now = self.context.defects.endpoints_lag, self.context.clock.now()
        if not lag:
            self._changes.clear()
            self._due.clear()
            return False
        self._changes[key] += 1
        if self._changes[key] <= OFTEN:
            return False
        due = self._due.setdefault(key, now + lag)
        if now < due:
            self.queue.add_after(key, due - now)
            return True
        del self._due[key]
        return False

    def sync(self, key: Key) -> None:
        """Bring a service's endpoints up to date."""
        raise NotImplementedError


def selector_of(service: Object) -> Callable[[dict[str, str]], bool]:
    """What a service selects; without a selector, nothing."""
    selector = service["spec"].get("selector")
    if not selector or service["spec"].get("type") == "ExternalName":
        return lambda labels: False
    matches = equality(selector)
    return lambda labels: matches(labels)


def _relevant(pod: Object) -> object:
    status = pod.get("status") or {}
    return (
        status.get("podIPs"),
        status.get("podIP"),
        pod_ready(pod),
        pod_finished(pod),
        deleting(pod),
        labels_of(pod),
        pod["spec"].get("nodeName"),
        pod["spec"].get("hostname"),
    )


def target_reference(pod: Object) -> Object:
    """How an endpoint points to its pod."""
    meta = pod["metadata"]
    return {"kind": "Pod", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}


def pod_hostname(service: Object, pod: Object) -> str:
    """The name under which DNS knows a pod of a headless service."""
    spec = pod["spec"]
    return (
        str(spec["hostname"]) if spec.get("hostname") and spec.get("subdomain") == service["metadata"]["name"] else ""
    )

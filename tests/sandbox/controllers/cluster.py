"""A cluster for controllers: the real registry in-process, and kubelets that only write the status of pods."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, TypeVar

from winready_sandbox.api.admission import install
from winready_sandbox.api.assembly import new_registry
from winready_sandbox.api.client import LocalClient
from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.objects import Object, timestamp
from winready_sandbox.clock import Clock
from winready_sandbox.controllers.controller import Context
from winready_sandbox.controllers.manager import CONTROLLERS, Manager
from winready_sandbox.controllers.objects import micro_now_text
from winready_sandbox.controllers.serviceaccounts import ServiceAccountController
from winready_sandbox.versions import DEFAULT_MINOR

T = TypeVar("T")
POD_SPEC: Object = {"containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}]}


class Cluster:
    """What a test sees of a cluster."""

    def __init__(
        self,
        minor: int = DEFAULT_MINOR,
        speed: float = 100.0,
        service_networks: tuple[str, ...] = ("10.96.0.0/16",),
        **options: Any,
    ) -> None:
        self.registry = new_registry(minor)
        self.client = LocalClient(self.registry)
        self.clock = Clock(speed)
        install(self.registry, service_networks)
        for name in ("default", "kube-system", "kube-node-lease"):
            self.client.create("namespaces", {"metadata": {"name": name}})
        controllers = LocalClient(self.registry, manager="kube-controller-manager")
        self.context = Context(controllers, self.registry.resources, self.clock, **options)
        self.broken: set[str] = set()
        """Names (or beginnings of names) of pods that never become ready."""
        self.silent: set[str] = set()
        """Nodes whose kubelet does not report."""
        self._beats = 0
        self._addresses = iter(range(2, 60_000))

    async def kubelets(self) -> None:
        """Run every pod that is bound to a node; end every pod that is deleted."""
        async for kind, pod in self.client.watch("pods", since="0"):
            if kind != "DELETED" and pod["spec"].get("nodeName"):
                with contextlib.suppress(ApiError):
                    self._serve(pod)

    async def heartbeats(self) -> None:
        """Renew the lease of every node, as kubelets do every ten seconds."""
        while True:
            for node in self.client.list("nodes")[0]:
                name = node["metadata"]["name"]
                if name not in self.silent:
                    self._renew(name)
            await self.clock.sleep(10)

    def _renew(self, name: str) -> None:
        self._beats += 1
        renewed = {"spec": {"holderIdentity": name, "renewTime": micro_now_text()}}
        if self.find("leases", name, "kube-node-lease") is None:
            self.client.create("leases", {"metadata": {"name": name}, **renewed}, "kube-node-lease")
        else:
            self.client.patch("leases", name, renewed, "kube-node-lease")

    def _serve(self, pod: Object) -> None:
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        if pod["metadata"].get("deletionTimestamp"):
            self.client.delete("pods", name, namespace, grace=0)
        elif pod["status"]["phase"] == "Pending":
            number = next(self._addresses)
            self.pod_status(pod, ready=not any(name.startswith(text) for text in self.broken), address=number)

    def pod_status(self, pod: Object, *, phase: str = "Running", ready: bool = True, address: int = 0) -> None:
        """Report on a pod as its kubelet would."""
        state = "True" if ready else "False"
        others = [c for c in pod["status"].get("conditions") or () if c["type"] != "Ready"]
        status: Object = {
            "phase": phase,
            "conditions": [*others, {"type": "Ready", "status": state, "lastTransitionTime": timestamp()}],
        }
        if address:
            ips = [f"10.244.{address // 250}.{address % 250}", f"fd00:10:244::{address:x}"]
            status |= {"podIP": ips[0], "podIPs": [{"ip": ip} for ip in ips]}
        meta = pod["metadata"]
        self.client.patch("pods", meta["name"], {"status": status}, meta["namespace"], subresource="status")

    def finish(self, name: str, phase: str) -> None:
        """A pod runs to its end."""
        pod = self.client.get("pods", name, "default")
        self.pod_status(pod, phase=phase, ready=False)

    def node(self, name: str, **options: Any) -> Object:
        """Register a ready node."""
        allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110", **options.get("allocatable", {})}
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **options.get("labels", {})}
        spec = {key: options[key] for key in ("taints", "unschedulable") if key in options}
        conditions = [{"type": "Ready", "status": "True", "lastHeartbeatTime": timestamp()}]
        status = {"allocatable": allocatable, "capacity": allocatable, "conditions": conditions}
        return self.client.create(
            "nodes", {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}
        )

    def pod(self, name: str, labels: dict[str, str] | None = None, **spec: Any) -> Object:
        """Create a pod."""
        meta = {"name": name, "labels": labels or {}}
        return self.client.create("pods", {"metadata": meta, "spec": {**POD_SPEC, **spec}}, "default")

    def pods(self, labels: str = "", namespace: str = "default") -> list[Object]:
        """The pods there are."""
        return self.client.list("pods", namespace, labels=labels)[0]

    def get(self, resource: str, name: str, namespace: str = "default") -> Object:
        """One object."""
        return self.client.get(resource, name, namespace)

    def find(self, resource: str, name: str, namespace: str = "default") -> Object | None:
        """One object, or None."""
        try:
            return self.client.get(resource, name, namespace)
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    def events(self, reason: str) -> list[Object]:
        """The events with that reason, oldest first."""
        found = [e for e in self.client.list("events")[0] if e["reason"] == reason]
        return sorted(found, key=lambda event: int(event["metadata"]["resourceVersion"]))

    def populated(self, manager: Manager) -> bool:
        """Whether pods can be created: their service account is there, or nobody makes one."""
        keeper = any(isinstance(controller, ServiceAccountController) for controller in manager.controllers)
        return not keeper or self.find("serviceaccounts", "default") is not None

    async def until(self, condition: Callable[[], T | None], what: str = "") -> T:
        """Wait until something is so."""
        for _ in range(30000):
            found = condition()
            if found:
                return found
            await asyncio.sleep(0.002)
        raise AssertionError(f"never happened: {what or condition}")

    async def settle(self) -> None:
        """Wait until nothing is written any more."""
        quiet, version = 0, -1
        while quiet < 10:
            await asyncio.sleep(0.004)
            now = self.registry.store.version - self._beats
            quiet = quiet + 1 if now == version else 0
            version = now


@contextlib.asynccontextmanager
async def running(
    cluster: Cluster, controllers: Iterable[type] = CONTROLLERS, *, kubelets: bool = True
) -> AsyncIterator[Cluster]:
    """A cluster with its controllers at work; whatever dies in it fails the test."""
    manager = Manager(cluster.context, tuple(controllers))
    work = [asyncio.create_task(manager.run())]
    if kubelets:
        work += [asyncio.create_task(cluster.kubelets()), asyncio.create_task(cluster.heartbeats())]
    try:
        await cluster.until(lambda: work[0].done() or (manager.started.is_set() and cluster.populated(manager)))
        yield cluster
        for task in work:
            if task.done():
                task.result()
    finally:
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)


def deployment(name: str = "web", replicas: int = 3, **spec: Any) -> Object:
    """A small deployment."""
    template = {"metadata": {"labels": {"app": name}}, "spec": POD_SPEC}
    selector = {"matchLabels": {"app": name}}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": selector, "template": template, **spec},
    }

"""Pods of a run: their specification for each OS, and a handle to one that runs."""

from __future__ import annotations

import asyncio
import functools
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, cast

from winready.cluster.client import Client, Object
from winready.cluster.commands import NETEXEC_HTTP, NETEXEC_UDP, Os
from winready.cluster.errors import ClusterError, ExecFailed, NotStarted
from winready.cluster.evidence import PodFact
from winready.cluster.execution import Execution
from winready.cluster.inventory import Node
from winready.cluster.resources import PODS
from winready.cluster.settings import AGNHOST, PAUSE, Settings

CONTAINER = "main"
SYSTEM = "NT AUTHORITY\\SYSTEM"
RETRIES = 3
"""How often a command is tried again whose stream broke: Windows is known to lose the end of one now and then."""


@dataclass(frozen=True)
class Answer:
    """What a container said when it was asked what it is."""

    node: str
    os: str
    """What it was started as."""
    build: str
    """The Windows build, or the name of the system."""
    on_host: bool
    """Whether it speaks for the node itself."""


@dataclass(frozen=True)
class Pod:
    """A running pod, proven or not yet proven to be what it says."""

    client: Client
    settings: Settings
    namespace: str
    name: str
    uid: str
    node: Node
    os: Os
    addresses: tuple[str, ...]
    image: str
    image_id: str
    build: str = ""
    """What the container answered when asked what it is; empty when it has not been asked."""
    impostor: str = ""
    """Why this is not a container of the system that it should be; empty when it is."""
    on_host: bool = False
    """Whether it runs on the node itself (HostProcess), and so answers for the node."""
    _gate: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(8), repr=False, compare=False)

    @property
    def address(self) -> str:
        """The first address, IPv4 where there are both."""
        return self.addresses[0]

    async def run(
        self,
        command: list[str],
        *,
        seconds: float | None = None,
        container: str = CONTAINER,
        again: bool = True,
        beside: bool = False,
    ) -> Execution:
        """Run a command; a stream that breaks is tried again, since that says nothing about the command.

        Without ``again`` only a command that was never started is: it may not be run twice. One that lasts for minutes
        ``beside`` others waits for no turn, and takes none from them.
        """
        timing = self.settings.timing
        limit = timing.answer(seconds or timing.table.exec_answer)
        start = functools.partial(
            self.client.exec, self.namespace, self.name, container, command, deadline=limit, beside=beside
        )
        async with nullcontext() if beside else self._gate:
            for _ in range(RETRIES):
                try:
                    return await start()
                except ExecFailed as failure:
                    if not again and not isinstance(failure, NotStarted):
                        raise
                    await timing.pause(timing.table.poll)
            try:
                return await start()
            except NotStarted as failure:
                if ended := await self._ended(container):
                    raise NotStarted(*ended) from failure
                raise

    async def _ended(self, container: str) -> tuple[str, str] | None:
        """That a container does not run, or had to be started again, in words and with what to do; else None."""
        try:
            raw = await self.client.find(PODS, self.name, self.namespace)
        except ClusterError:
            return None
        statuses = ((raw or {}).get("status") or {}).get("containerStatuses") or []
        status: Object = next((item for item in statuses if item["name"] == container), {})
        state, restarts = status.get("state") or {}, status.get("restartCount") or 0
        if not status or ("running" in state and not restarts):
            return None
        last = state.get("terminated") or (status.get("lastState") or {}).get("terminated") or {}
        code = f", last with exit code {last['exitCode']}" if "exitCode" in last else ""
        times = "once" if restarts == 1 else f"{restarts} times"
        ended = f"ended by itself and was started again {times}{code}" if restarts else f"ended{code}"
        told = "" if "running" in state else "does not run: it "
        return (
            f"container {container} of pod {self.name} on node {self.node.name} {told}{ended}",
            f"look at its log (kubectl logs --previous) and for why containers end on node {self.node.name}",
        )

    def fact(self) -> PodFact:
        """The pod as evidence."""
        return PodFact(
            namespace=self.namespace,
            name=self.name,
            uid=self.uid,
            node=self.node.name,
            os=self.os,
            build=self.build,
            node_build=self.node.build,
            image=self.image,
            image_id=self.image_id,
            addresses=list(self.addresses),
        )


def netexec_container(settings: Settings, *, name: str = CONTAINER, http: int = NETEXEC_HTTP) -> Object:
    """A server that answers with its host name over HTTP and UDP, and dials others on request."""
    udp = NETEXEC_UDP + http - NETEXEC_HTTP
    healthy = {"httpGet": {"path": "/healthz", "port": http}, "timeoutSeconds": 10}
    return {
        "name": name,
        "image": settings.image(AGNHOST),
        "imagePullPolicy": "IfNotPresent",
        # The UDP port must stay on: without it netexec never says that it is healthy.
        "args": ["netexec", f"--http-port={http}", f"--udp-port={udp}"],
        "ports": [{"containerPort": http, "protocol": "TCP"}, {"containerPort": udp, "protocol": "UDP"}],
        # Asked often only until it serves: then the rarer question is kinder to the node, and notices as soon.
        "startupProbe": {**healthy, "initialDelaySeconds": 2, "periodSeconds": 3, "failureThreshold": 100},
        "readinessProbe": {**healthy, "periodSeconds": 10, "failureThreshold": 6},
        "resources": {"requests": {"cpu": "50m", "memory": "100Mi"}},
    }


def pause_container(settings: Settings, *, name: str = CONTAINER, **more: Any) -> Object:
    """The cheapest container there is."""
    return {
        "name": name,
        "image": settings.image(PAUSE),
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": {"cpu": "10m", "memory": "50Mi"}},
        **more,
    }


def idle_container(settings: Settings, *, name: str = CONTAINER, **more: Any) -> Object:
    """An agnhost that does nothing by itself: a place to run commands in."""
    return {
        "name": name,
        "image": settings.image(AGNHOST),
        "imagePullPolicy": "IfNotPresent",
        "args": ["pause"],
        "resources": {"requests": {"cpu": "10m", "memory": "100Mi"}},
        **more,
    }


def host_path(name: str, path: str) -> Object:
    """A volume that is a folder of the node, made where it is missing."""
    return {"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}


def host_process_spec(spec: Object, user: str = SYSTEM) -> Object:
    """The same specification, run on the node itself as a user of the node."""
    options = {"hostProcess": True, "runAsUserName": user}
    return {**spec, "hostNetwork": True, "securityContext": {"windowsOptions": options}}


def pod_spec(os: Os, containers: list[Object], settings: Settings, nodes: list[Node], **more: Any) -> Object:
    """A pod specification for one OS: the field that says so, and the selector that makes it true."""
    return {
        "os": {"name": os},
        "nodeSelector": {"kubernetes.io/os": os},
        "tolerations": tolerations(settings, nodes),
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 5,
        "containers": containers,
        **more,
    }


def pinned(spec: Object, node: Node) -> Object:
    """The same specification, for one node; through the scheduler, so that its rules stay in force."""
    hostname = node.labels.get("kubernetes.io/hostname", node.name)
    selector = {**spec["nodeSelector"], "kubernetes.io/hostname": hostname}
    return {**spec, "nodeSelector": selector, "tolerations": [*spec["tolerations"]]}


def tolerations(settings: Settings, nodes: list[Node]) -> list[Object]:
    """What the operator names, and the operator's own taints on the nodes that are meant."""
    found: list[Object] = list(settings.tolerations)
    for node in nodes:
        for taint in node.taints:
            if not taint.ours_to_tolerate:
                continue
            entry: Object = {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
            if entry not in found:
                found.append(entry)
    return found


def pod_object(name: str, spec: Object, settings: Settings, **labels: str) -> Object:
    """A bare pod that carries the run's labels."""
    return {"metadata": {"name": name, "labels": settings.labels(**labels)}, "spec": spec}


def handle(client: Client, settings: Settings, raw: Object, nodes: dict[str, Node]) -> Pod:
    """A handle to a pod from its API object."""
    status = raw.get("status") or {}
    statuses = status.get("containerStatuses") or [{}]
    return Pod(
        client=client,
        settings=settings,
        namespace=raw["metadata"]["namespace"],
        name=raw["metadata"]["name"],
        uid=raw["metadata"]["uid"],
        node=nodes[raw["spec"]["nodeName"]],
        # Something may have taken spec.os away on the way in; the rule about it says so.
        os=cast(Os, (raw["spec"].get("os") or {}).get("name") or nodes[raw["spec"]["nodeName"]].os),
        addresses=tuple(item["ip"] for item in status.get("podIPs") or []),
        image=statuses[0].get("image") or "",
        image_id=statuses[0].get("imageID") or "",
        on_host=bool(
            ((raw["spec"].get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess", False)
        ),
    )

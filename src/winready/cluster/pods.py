"""Pods of a run: their specification for each OS, and a handle to one that runs."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from winready.cluster.activity import doing
from winready.cluster.client import Client, Object
from winready.cluster.commands import NETEXEC_HTTP, NETEXEC_UDP, Os, system_version
from winready.cluster.errors import ExecFailed, NotStarted
from winready.cluster.evidence import PodFact
from winready.cluster.execution import Execution
from winready.cluster.inventory import Node, read_node
from winready.cluster.resources import NODES, PODS
from winready.cluster.settings import AGNHOST, PAUSE, Settings
from winready.cluster.timing import now

T = TypeVar("T")
CONTAINER = "main"
HOSTNAME = "kubernetes.io/hostname"
SYSTEM = "NT AUTHORITY\\SYSTEM"
RETRIES = 3
"""How often a command is tried again that did not say what came of it."""
BREAKS = 8
"""How often one is tried again whose stream broke: Windows is known to lose the end of one, networks lose the rest."""
REFUSALS = 3
"""How often one is tried again that was not started, before we look whether its container and its node are well."""
LONGEST_PAUSE = 5.0
"""Cluster seconds between two tries."""
AWAY_SECONDS = 10.0
"""Wall seconds: an API server that takes longer to say a word was away, and nobody could start a command meanwhile."""


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
    restarts: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)
    """How often each of its containers had been started again when the pod was found, as after a reboot."""
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
        breaks = refusals = tried = 0
        async with nullcontext() if beside else self._gate:
            doing(f"{command[0]} in {self.name} on {self.node.name}")
            end = now() + self.client.patience
            while True:
                try:
                    return replace(await start(), again=tried)
                except NotStarted as failure:
                    refusals += 1
                    if refusals > REFUSALS and await self._require_hope(container, failure, late=now() > end):
                        breaks, refusals, end = 0, 0, now() + self.client.patience
                except ExecFailed as failure:
                    breaks += 1
                    if not again:
                        raise
                    if breaks > BREAKS and await self._require_hope(container, failure, late=True):
                        breaks, refusals = 0, 0
                tried += 1
                await timing.pause(min(timing.table.poll * 2 ** min(tried - 1, 3), LONGEST_PAUSE))

    async def ask(self) -> Execution:
        """Have it say what it is, once; raises `ExecFailed` where nobody answers."""
        limit = self.settings.timing.answer(self.settings.timing.table.exec_answer)
        return await self.client.exec(self.namespace, self.name, CONTAINER, system_version(self.os), deadline=limit)

    async def _require_hope(self, container: str, failure: ExecFailed, *, late: bool) -> bool:
        """Raise why a command is not tried once more; whether the API server was away, so that all begins anew."""
        raw, away = await self.as_it_is()
        if away:
            return True
        node = await self.client.find(NODES, self.node.name)
        if isinstance(failure, NotStarted) and (ended := self._ended(raw, container)):
            raise NotStarted(*ended) from failure
        if late or raw is None or node is None or read_node(node).unusable:
            raise failure
        return False

    async def as_it_is(self) -> tuple[Object | None, bool]:
        """The pod as the API server has it now, and whether that had to be waited for.

        What keeps us from the API server is no failure of the pod's: raises it when it does not pass.
        """
        start = now()
        raw = await self.client.find(PODS, self.name, self.namespace)
        return raw, now() - start > AWAY_SECONDS

    def _ended(self, raw: Object | None, container: str) -> tuple[str, str] | None:
        """That a container does not run, or had to be started again, in words and with what to do; else None."""
        statuses = ((raw or {}).get("status") or {}).get("containerStatuses") or []
        status: Object = next((item for item in statuses if item["name"] == container), {})
        state = status.get("state") or {}
        restarts = (status.get("restartCount") or 0) - self.restarts.get(container, 0)
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


async def from_the_start(attempt: Callable[[], Awaitable[T]]) -> T:
    """What may not be run twice is done anew, with everything around it, when its stream broke halfway."""
    for _ in range(BREAKS):
        try:
            return await attempt()
        except NotStarted:
            raise
        except ExecFailed:
            continue
    return await attempt()


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
    selector = {**spec["nodeSelector"], HOSTNAME: node.labels.get(HOSTNAME, node.name)}
    return {**spec, "nodeSelector": selector, "tolerations": [*spec["tolerations"]]}


def pinned_to(spec: Object, node: Node) -> bool:
    """Whether a specification is for this node alone."""
    return (spec.get("nodeSelector") or {}).get(HOSTNAME) == node.labels.get(HOSTNAME, node.name)


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
        restarts={item["name"]: item.get("restartCount") or 0 for item in statuses if "name" in item},
        on_host=bool(
            ((raw["spec"].get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess", False)
        ),
    )

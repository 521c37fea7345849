"""Pods and services that many checks share: few Windows pods, started all at once, used by everyone.

A client pod is never a back-end of a service it dials: with direct server return on Windows such a
connection to itself is lost, and that says nothing about the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from winready.checks.workloads import netexec_deployment
from winready.cluster.activity import doing
from winready.cluster.client import Object
from winready.cluster.commands import NETEXEC_HTTP, NETEXEC_UDP, Os, powershell
from winready.cluster.inventory import Node
from winready.cluster.namespaces import Namespace
from winready.cluster.pods import (
    Pod,
    host_path,
    host_process_spec,
    idle_container,
    netexec_container,
    pinned,
    pod_object,
    pod_spec,
)
from winready.cluster.resources import DEPLOYMENTS, PODS, SERVICES

if TYPE_CHECKING:
    from winready.checks.world import World

T = TypeVar("T")
SHARED = "fx"
ASIDE = "wx"
"""Windows servers that are behind no service."""
PEERS = "peers"
LINUX_NODES = 2
"""Linux is the other side of a conversation, not what is judged: two nodes tell same-node from cross-node."""

SERVED = 20
"""Windows servers behind a service; those of further nodes are asked directly. A client that is to be answered by each
of a thousand would ask for hours, and what its node's proxy does with a back-end does not depend on where that is."""
TEN = 10
EXPECTED_SECONDS = {
    "clients": 25.0,
    "servers": 25.0,
    "services": 1.0,
    "hosts": 15.0,
    "linux-hosts": 5.0,
    "ten": 60.0,
}
"""Cluster seconds that each fixture should take with warm images."""


@dataclass(frozen=True)
class Service:
    """A service and who is behind it."""

    name: str
    cluster_ip: str
    port: int
    node_port: int
    udp_port: int = 0
    udp_node_port: int = 0
    second_port: int = 0
    second_node_port: int = 0

    @property
    def also(self) -> tuple[int, ...]:
        """TCP ports of its cluster IP besides the first."""
        return (self.second_port,) if self.second_port else ()

    @property
    def also_on_nodes(self) -> tuple[int, ...]:
        """NodePorts for TCP besides the first."""
        return (self.second_node_port,) if self.second_node_port else ()


def service_object(name: str, selector: dict[str, str] | None, **more: Any) -> Object:
    """A service over netexec's ports, reachable inside and through NodePorts."""
    spec: Object = {
        "type": "NodePort",
        "ports": [
            {"name": "http", "port": 80, "targetPort": NETEXEC_HTTP, "protocol": "TCP"},
            {"name": "udp", "port": 90, "targetPort": NETEXEC_UDP, "protocol": "UDP"},
            {"name": "second", "port": 81, "targetPort": NETEXEC_HTTP, "protocol": "TCP"},
        ],
        **({"selector": selector} if selector else {}),
        **more,
    }
    return {"metadata": {"name": name}, "spec": spec}


def read_service(raw: Object) -> Service:
    """A service from its API object."""
    numbers = [number for port in raw["spec"]["ports"] for number in (port["port"], port.get("nodePort") or 0)]
    return Service(raw["metadata"]["name"], raw["spec"]["clusterIP"], *numbers)


class Fixtures:
    """Started on first use, in the background; whoever waits for one that could not be had learns why."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._makers: dict[str, Callable[[], Awaitable[Any]]] = {
            "clients": self._make_clients,
            "servers": self._make_servers,
            "services": self._make_services,
            "hosts": self._make_hosts,
            "linux-hosts": self._make_linux_hosts,
            "ten": self._make_ten,
        }

    def start(self, name: str) -> asyncio.Task[Any]:
        """Begin to make a fixture, unless that has begun already."""
        doing(f"waits for shared {'pods' if name == 'ten' else name}")
        if name not in self._tasks:
            self._tasks[name] = asyncio.ensure_future(self._makers[name]())
        return self._tasks[name]

    async def stop(self) -> None:
        """Give up whatever is still being made."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def clients(self, os: Os) -> list[Pod]:
        """Client pods of an OS, one per node."""
        return [pod for pod in await asyncio.shield(self.start("clients")) if pod.os == os]

    async def servers(self, os: Os) -> list[Pod]:
        """Server pods of an OS, at least two."""
        return [pod for pod in await asyncio.shield(self.start("servers")) if pod.os == os]

    async def behind(self, os: Os) -> list[Pod]:
        """Those of the servers that are behind the service of their OS."""
        return [pod for pod in await self.servers(os) if not pod.name.startswith(f"{ASIDE}-")]

    async def service(self, os: Os) -> Service:
        """The service over the servers of an OS."""
        services: dict[str, Service] = await asyncio.shield(self.start("services"))
        return services[os]

    async def hosts(self) -> list[Pod]:
        """A pod per judged Windows node that sees the run's folder on the node, where the node has it."""
        pods: list[Pod] = await asyncio.shield(self.start("hosts"))
        return pods

    async def linux_hosts(self) -> list[Pod]:
        """A pod per Linux node that uses the network of the node."""
        pods: list[Pod] = await asyncio.shield(self.start("linux-hosts"))
        return pods

    async def ten(self) -> tuple[list[Pod], Service]:
        """Ten Windows pods and the service over them."""
        made: tuple[list[Pod], Service] = await asyncio.shield(self.start("ten"))
        return made

    async def once(self, name: str, make: Callable[[World], Awaitable[T]]) -> T:
        """What the checks of one category share beside this: made for the first that asks."""
        doing(f"waits for shared {'pods' if name == 'ten' else name}")
        if name not in self._tasks:
            self._tasks[name] = asyncio.ensure_future(make(self._world))
        made: T = await asyncio.shield(self._tasks[name])
        return made

    @property
    def linux_nodes(self) -> list[Node]:
        """The Linux nodes that carry fixtures."""
        return self._world.linux_nodes[:LINUX_NODES]

    async def _make_clients(self) -> list[Pod]:
        world = self._world
        places = [("wc", "windows", node) for node in world.windows_nodes]
        places += [("lc", "linux", node) for node in self.linux_nodes]
        return await self._make_pods(places)

    async def _make_servers(self) -> list[Pod]:
        world = self._world
        windows = _at_least_two(world.windows_nodes)
        places = [("ws" if number < SERVED else ASIDE, "windows", node) for number, node in enumerate(windows)]
        places += [("ls", "linux", node) for node in _at_least_two(self.linux_nodes)]
        return await self._make_pods(places)

    async def _make_pods(self, places: list[tuple[str, str, Node]]) -> list[Pod]:
        namespace = await self._world.namespace(SHARED)
        counts: dict[str, int] = {}
        names = []
        for app, *_ in places:
            counts[app] = counts.get(app, 0) + 1
            names.append(f"{app}-{counts[app]}")
        made = [
            self._pod(name, *place, peer=place[1] == "linux" or number < SERVED)
            for number, (name, place) in enumerate(zip(names, places, strict=True))
        ]
        await asyncio.gather(*(namespace.create(PODS, pod) for pod in made))
        return list(await asyncio.gather(*(namespace.ready_pod(name) for name in names)))

    def _pod(self, name: str, app: str, os: Any, node: Node, *, peer: bool) -> Object:
        settings = self._world.settings
        spec = pod_spec(os, [netexec_container(settings)], settings, [node], hostname=name, subdomain=PEERS)
        return pod_object(name, pinned(spec, node), settings, app=app, **({"peers": "yes"} if peer else {}))

    async def _make_hosts(self) -> list[Pod]:
        world = self._world
        namespace = await world.namespace("host")
        on_host = "hostprocess" not in world.inventory.missing
        names = []
        for number, node in enumerate(world.windows_nodes, 1):
            sleep = powershell("Start-Sleep -Seconds 86400")
            mounts = [] if on_host else [{"name": "host", "mountPath": world.host_folder}]
            container = idle_container(world.settings, command=sleep, args=[], volumeMounts=mounts)
            volumes = [] if on_host else [host_path("host", world.host_folder)]
            spec = pinned(pod_spec("windows", [container], world.settings, [node], volumes=volumes), node)
            names.append(f"hp-{number}")
            # With the account that pods have unless they are told otherwise: what it is worth there is judged, too.
            made = {**host_process_spec(spec), "automountServiceAccountToken": True} if on_host else spec
            await namespace.create(PODS, pod_object(names[-1], made, world.settings))
        return list(await asyncio.gather(*(namespace.ready_pod(name) for name in names)))

    async def _make_linux_hosts(self) -> list[Pod]:
        world = self._world
        namespace = await world.namespace("host")
        names = []
        for number, node in enumerate(self.linux_nodes, 1):
            # Not every runtime lets containers ping without being asked.
            container = idle_container(world.settings, securityContext={"capabilities": {"add": ["NET_RAW"]}})
            spec = pinned(pod_spec("linux", [container], world.settings, [node], hostNetwork=True), node)
            names.append(f"lh-{number}")
            await namespace.create(PODS, pod_object(names[-1], spec, world.settings))
        return list(await asyncio.gather(*(namespace.ready_pod(name) for name in names)))

    async def _make_ten(self) -> tuple[list[Pod], Service]:
        world = self._world
        namespace = await world.namespace("ten")
        await namespace.create(DEPLOYMENTS, netexec_deployment(world, "ten", TEN))
        service = read_service(await namespace.create(SERVICES, service_object("ten", {"app": "ten"})))
        return await namespace.ready_pods({"app": "ten"}, TEN), service

    async def _make_services(self) -> dict[str, Service]:
        namespace: Namespace = await self._world.namespace(SHARED)
        headless = service_object(PEERS, {"peers": "yes"}, type="ClusterIP", clusterIP="None")
        _, windows, linux = await asyncio.gather(
            namespace.create(SERVICES, headless),
            namespace.create(SERVICES, service_object("ws", {"app": "ws"})),
            namespace.create(SERVICES, service_object("ls", {"app": "ls"})),
        )
        return {"windows": read_service(windows), "linux": read_service(linux)}


def _at_least_two(nodes: list[Node]) -> list[Node]:
    return nodes * 2 if len(nodes) == 1 else nodes

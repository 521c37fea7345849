"""The assembly: control plane, simulated network and nodes of one sandbox, and the channel to steer it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from winready_sandbox import addons, directory, provisioner
from winready_sandbox.api.identity import ADMIN, MASTERS
from winready_sandbox.apiclient import Access, ApiClient, ApiFailure, ApiUnreachable, NotFound, Transport
from winready_sandbox.channel import CommandChannel, CommandError
from winready_sandbox.clock import Clock
from winready_sandbox.control_plane.embedded import EmbeddedControlPlane
from winready_sandbox.control_plane.protocol import HOST, SANDBOX, SERVICE_IP, ControlPlane
from winready_sandbox.control_plane.real.assembly import RealControlPlane
from winready_sandbox.egress import Egress, NoRoute
from winready_sandbox.faults.breaker import Breaker, Broken, CannotBreak
from winready_sandbox.faults.table import UnknownFault
from winready_sandbox.kubeconfig import kubeconfig
from winready_sandbox.machine.builds import HOST_PROCESS_SINCE, containerd_release
from winready_sandbox.machine.domain import new_domain
from winready_sandbox.machine.machine import GIBIBYTE, Machine
from winready_sandbox.machine.process import Program
from winready_sandbox.network.endpoint import NetworkError, Refused, TimedOut
from winready_sandbox.network.fabric import CLUSTER_DNS, Fabric, bridge
from winready_sandbox.network.watch import follow
from winready_sandbox.nodes.configuration import Settings
from winready_sandbox.nodes.fleet import Fleet
from winready_sandbox.pki import Authority, server_context
from winready_sandbox.plan import NodePlan, Plan
from winready_sandbox.state import Place, StateError
from winready_sandbox.streams import Connection
from winready_sandbox.versions import release

if TYPE_CHECKING:
    from winready_sandbox.host.node import HostNode

SETTLE_SECONDS = 300.0
FILE_SERVER_ADDRESS = "10.250.0.254"
SMB = 445
SHUTDOWN_TAINT = {"key": "node.cloudprovider.kubernetes.io/shutdown", "effect": "NoSchedule"}
DIAL_TIMEOUT = 30.0
"""Cluster seconds that the API server waits for a pod to take a connection."""


class LazyPrograms(Mapping[str, Program]):
    """Everything that containers can run, loaded when the first one starts: a cluster is ready before that."""

    @functools.cached_property
    def _programs(self) -> Mapping[str, Program]:
        from winready_sandbox.programs.catalogue import PROGRAMS

        return PROGRAMS

    def __getitem__(self, name: str) -> Program:
        return self._programs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._programs)

    def __len__(self) -> int:
        return len(self._programs)


class Sandbox:
    """One simulated cluster; entering it starts everything, leaving it stops everything."""

    def __init__(self, plan: Plan, place: Place | None = None, stopping: asyncio.Event | None = None) -> None:
        """``place``: where others find it; without one it is known to this process alone."""
        self.plan = plan
        self._place = place
        self.stopping = stopping or asyncio.Event()
        self.clock = Clock(plan.speed)
        self.egress = Egress()
        self.authority = Authority()
        self.control_plane: ControlPlane
        if plan.control_plane:
            self.control_plane = RealControlPlane(plan, self.egress, self.authority, self.place.control_plane)
        else:
            self.control_plane = EmbeddedControlPlane(plan, self.clock, self.egress, self.authority)
        self.fabric = Fabric(self.clock, domain=plan.cluster_domain, node_local_dns=plan.node_local_dns)
        self.domain = new_domain(FILE_SERVER_ADDRESS)
        self.breaker = Breaker({node.name: node.os for node in plan.nodes}, self._defects, self._defects_changed)
        self.channel = CommandChannel(
            {
                "status": self._status,
                "stop": self._stop,
                "break": self._break,
                "heal": self._heal,
                "settle": self._settle,
            }
        )
        self._transport: Transport | None = None
        self._fleet: Fleet | None = None
        self.host: HostNode | None = None
        """The node that runs real processes, if there is one."""
        self._network: asyncio.Task[None] | None = None
        self._storage: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    @property
    def place(self) -> Place:
        """Where others find it."""
        if self._place is None:
            raise RuntimeError("this sandbox is known to its own process alone")
        return self._place

    @property
    def embedded(self) -> EmbeddedControlPlane:
        """The control plane of a sandbox that has its own."""
        if not isinstance(self.control_plane, EmbeddedControlPlane):
            raise RuntimeError("this sandbox has a real control plane")
        return self.control_plane

    @property
    def fleet(self) -> Fleet:
        """The nodes, once started."""
        if self._fleet is None:
            raise RuntimeError("the sandbox has not been started")
        return self._fleet

    async def wait(self) -> None:
        """Until somebody asks to stop; a part that fails ends the sandbox with its error."""
        asked = asyncio.create_task(self.stopping.wait())
        lost = self.host.ground.lost if self.host is not None else None
        wanted = (self.control_plane.work, self._network, self._storage, lost)
        parts: list[asyncio.Future[Any]] = [asked, *(part for part in wanted if part is not None)]
        try:
            done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            asked.cancel()

    async def document(self) -> dict[str, Any]:
        """What there is to know about this sandbox from outside."""
        items, _ = await self._api.list("nodes")
        return {
            "name": self.plan.name,
            "server": self.control_plane.url,
            "kubeconfig": str(self.place.kubeconfig),
            "pid": os.getpid(),
            "kubernetes": self.control_plane.version,
            "control_plane": self.plan.control_plane or "embedded",
            "speed": self.plan.speed,
            "faults": _shown(self.breaker.broken),
            "nodes": [_summary(node) for node in items],
        }

    async def _start(self) -> None:
        await self.control_plane.start(self.plan.port)
        url, ca = self.control_plane.url, self.authority.certificate
        self._transport = Transport(Access(url, ca.decode()), self.control_plane.inside)
        token = self.control_plane.token(SANDBOX)
        self._api = ApiClient(self._transport, token=token, agent="winready-sandbox")
        self._join_network()
        self._network = asyncio.create_task(follow(self.fabric.view, self._api), name="network")
        await self._start_nodes(self._transport)
        if self.plan.host is not None:
            await self._start_host(self._transport, self.plan.host)
        await provisioner.install(self._api)
        if self.plan.hyper_v:
            await addons.offer_isolation(self._api)
        if self.plan.active_directory:
            await directory.install(self._api, self.domain, webhook=not self.plan.control_plane)
        self._storage = asyncio.create_task(
            provisioner.Provisioner(self._api, self.fleet.folders).keep(), name="provisioner"
        )
        await addons.install(
            self._api,
            version=self.control_plane.version,
            domain=self.fabric.domain,
            host_process=containerd_release(self.plan.containerd) >= HOST_PROCESS_SINCE,
        )
        if self.plan.node_local_dns:
            await addons.cache_dns_on_nodes(self._api)
        if self._place is not None:
            self._write_kubeconfig()
            await self.channel.start(self._place.channel)

    def _join_network(self) -> None:
        """Give the control plane an address that pods can call, and a way to call them."""
        address, port = self.control_plane.address
        endpoint = self.fabric.add_machine("control-plane", [address])
        endpoint.listen(port, bridge(HOST, self.control_plane.port))
        self.fabric.add_machine("fileserver", [FILE_SERVER_ADDRESS], "windows").listen(SMB, _hold)

        async def dial(ip: str, port: int) -> Connection:
            try:
                if self.host is not None and self.host.has(ip):
                    return await self.host.connect(ip, port, timeout=DIAL_TIMEOUT)
                return await endpoint.connect(ip, port, timeout=DIAL_TIMEOUT)
            except Refused:
                raise NoRoute(f"dial tcp {ip}:{port}: connect: connection refused") from None
            except TimedOut:
                raise NoRoute(f"dial tcp {ip}:{port}: i/o timeout") from None
            except NetworkError:
                raise NoRoute(f"dial tcp {ip}:{port}: connect: no route to host") from None

        self.egress.dial = dial

    async def _start_nodes(self, transport: Transport) -> None:
        serving = self.authority.server(
            "kubelet", [HOST, *(address for node in self.plan.nodes for address in node.addresses)]
        )
        self._fleet = Fleet(
            transport,
            clock=self.clock,
            fabric=self.fabric,
            egress=self.egress,
            token=self.control_plane.node_token,
            tls=server_context(serving, self.authority.certificate),
        )
        programs = LazyPrograms()
        settings = Settings(
            version=release(self.plan.minor) if self.plan.kubernetes else self.control_plane.version,
            shutdown_grace=self.plan.shutdown_grace,
            shutdown_grace_critical=self.plan.shutdown_grace_critical,
            pull_seconds=self.plan.pull_seconds,
            hides_configuration=self.plan.hides_configuration,
        )
        for node in self.plan.nodes:
            size: dict[str, int] = {}
            if node.os == "windows":
                size = {"cores": self.plan.cores, "memory": self.plan.memory * GIBIBYTE}
            machine = Machine(
                node.name,
                node.os,
                clock=self.clock,
                programs=programs,
                build=node.build,
                **size,
                containerd=self.plan.containerd,
                hyper_v=self.plan.hyper_v,
                kubernetes=settings.version,
                domain=self.domain if node.os == "windows" else None,
            )
            if self.plan.active_directory and node.os == "windows":
                directory.give_folder(machine.files, self.domain)
            kubelet = self._fleet.add(machine, node.addresses, node.pod_networks, settings)
            kubelet.on_boot = functools.partial(self._booted, node.name)
        self._break_at_start()
        await self._fleet.start()
        await self._fleet.registered()

    async def _start_host(self, transport: Transport, plan: NodePlan) -> None:
        """The one node that executes something; everything about it is in a package of its own."""
        from winready_sandbox.host.assembly import host_node

        self.host = await host_node(
            plan,
            images=self.plan.host_images,
            folder=self.place.host,
            client=ApiClient(transport, token=self.control_plane.node_token(plan.name), agent=f"kubelet/{plan.name}"),
            version=self.control_plane.version,
            fabric=self.fabric,
            egress=self.egress,
            tls=server_context(self.authority.server("kubelet", [HOST, *plan.addresses]), self.authority.certificate),
            service_address=SERVICE_IP,
            api_port=self.control_plane.port,
            clock=self.clock,
        )

    async def _close(self) -> None:
        await self.channel.stop()
        if self.host is not None:
            await self.host.stop()
        if self._fleet is not None:
            await self._fleet.stop()
        for task in (self._network, self._storage):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        if self._transport is not None:
            await self._transport.close()
        await self.control_plane.stop()
        self.fabric.close()
        await self.egress.close()

    def _write_kubeconfig(self) -> None:
        admin = self.authority.client(ADMIN.name, [MASTERS])
        text = kubeconfig(f"winready-{self.plan.name}", self.control_plane.url, self.authority.certificate, admin)
        descriptor = os.open(self.place.kubeconfig, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)

    async def break_fault(self, name: str, node: str | None = None) -> list[Broken]:
        """Give the running cluster a fault; returns where it is in force now."""
        broken = self.breaker.break_(name, node)
        await self._heed(broken)
        return broken

    async def heal_fault(self, name: str | None = None, node: str | None = None) -> list[Broken]:
        """Take a fault away again, or all of them; returns what was healed."""
        healed = self.breaker.heal(name, node)
        await self._heed(healed)
        return healed

    async def _heed(self, changed: list[Broken]) -> None:
        """Let nodes act on what changed; a worker that is not to be there leaves no Node behind."""
        for name in sorted({item.node for item in changed if item.node}):
            kubelet = self.fleet.kubelets[name]
            await kubelet.heed_defects()
            await self._taint(name)
            if kubelet.defects.kubelet.does_not_join:
                with contextlib.suppress(NotFound):
                    await self._api.delete("nodes", name)

    async def _booted(self, node: str) -> None:
        """What waited for a node's reboot comes into force."""
        self.breaker.booted(node)
        await self._taint(node)

    async def _taint(self, node: str) -> None:
        """A cloud provider taints the node of a machine that is off, and takes the taint away when it is on again."""
        stays = self.fleet.kubelets[node].defects.kubelet.shutdown_taint
        try:
            taints = (await self._api.get("nodes", node))["spec"].get("taints") or []
            others = [taint for taint in taints if taint["key"] != SHUTDOWN_TAINT["key"]]
            wanted = [*others, SHUTDOWN_TAINT] if stays else others
            if len(wanted) != len(taints):
                await self._api.patch("nodes", node, {"spec": {"taints": wanted or None}})
        except (ApiFailure, ApiUnreachable):
            return

    def _defects(self, node: str, part: str) -> Any:
        """Where the defects of a part are kept."""
        root, _, field = part.partition(".")
        match root:
            case "network":
                return getattr(self.fabric.nodes[node].defects, field)
            case "node":
                return getattr(self.fleet.kubelets[node].defects, field)
            case "machine":
                return self.fleet.kubelets[node].machine.defects
            case "domain":
                return self.domain.defects
            case "api" | "tokens" | "controllers" | "scheduler" | "gmsa":
                return self.control_plane.defects(root, node)
        raise RuntimeError(f"no part is called {part!r}")

    def _defects_changed(self, node: str) -> None:
        if node:
            self.fabric.refresh()

    def _break_at_start(self) -> None:
        try:
            for text in self.plan.faults:
                name, _, node = text.partition("@")
                self.breaker.break_(name, node or None)
        except (UnknownFault, CannotBreak) as error:
            raise StateError(str(error)) from None

    async def _settle(self, request: dict[str, Any]) -> bool:
        return await self.settled()

    async def settled(self) -> bool:
        """Wait until every node reaches cluster DNS, the last thing that a fresh cluster gets to work."""
        end = self.clock.now() + SETTLE_SECONDS
        while self.clock.now() < end:
            rules = [node.proxy.vip(CLUSTER_DNS, 53, "UDP") for node in self.fabric.nodes.values()]
            if all(rule is not None and rule.backends for rule in rules):
                return True
            await self.clock.sleep(1.0)
        return False

    async def _break(self, request: dict[str, Any]) -> list[dict[str, str]]:
        try:
            return _shown(await self.break_fault(request.get("name", ""), request.get("node")))
        except (UnknownFault, CannotBreak) as error:
            raise CommandError(str(error)) from None

    async def _heal(self, request: dict[str, Any]) -> list[dict[str, str]]:
        try:
            return _shown(await self.heal_fault(request.get("name"), request.get("node")))
        except UnknownFault as error:
            raise CommandError(str(error)) from None

    async def _status(self, request: dict[str, Any]) -> dict[str, Any]:
        return await self.document()

    async def _stop(self, request: dict[str, Any]) -> None:
        asyncio.get_running_loop().call_soon(self.stopping.set)


async def _hold(connection: Connection) -> None:
    """The file server's port takes connections; what is read and written there goes past the simulated wire."""
    await connection.read()


def _shown(broken: list[Broken]) -> list[dict[str, str]]:
    return [{"fault": item.fault, "node": item.node} for item in broken]


def _summary(node: dict[str, Any]) -> dict[str, Any]:
    status = node.get("status") or {}
    info = status.get("nodeInfo") or {}
    conditions = {each["type"]: each["status"] for each in status.get("conditions") or []}
    return {
        "name": node["metadata"]["name"],
        "os": info.get("operatingSystem", ""),
        "version": info.get("kubeletVersion", ""),
        "build": info.get("kernelVersion", ""),
        "ready": conditions.get("Ready") == "True",
    }

"""All virtual kubelets of one sandbox, and what they share."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from winready_sandbox.apiclient import ApiClient, Transport
from winready_sandbox.clock import Clock
from winready_sandbox.egress import Egress
from winready_sandbox.machine.machine import Machine
from winready_sandbox.network.fabric import Fabric
from winready_sandbox.nodes.callers import Callers
from winready_sandbox.nodes.configuration import Settings
from winready_sandbox.nodes.heartbeat import Heartbeat
from winready_sandbox.nodes.kubelet import Kubelet
from winready_sandbox.nodes.references import References
from winready_sandbox.nodes.server import NodeServer
from winready_sandbox.nodes.volumes.shared import SharedFolders


class Fleet:
    """The nodes of a sandbox."""

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Clock,
        fabric: Fabric,
        egress: Egress,
        token: Callable[[str], str],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """``token`` gives the credential of a node by its name; ``tls`` serves the nodes' ports."""
        self.kubelets: dict[str, Kubelet] = {}
        self._transport = transport
        self._clock = clock
        self._fabric = fabric
        self._egress = egress
        self._token = token
        self._tls = tls
        self._heartbeats = Heartbeat(clock)
        self.folders = SharedFolders()
        self._references: References | None = None

    def add(
        self, machine: Machine, addresses: list[str], pod_cidrs: list[str], settings: Settings | None = None
    ) -> Kubelet:
        """A machine becomes a node; it joins with `start`."""
        build = int(machine.build.number) if machine.build else 0
        network = self._fabric.add_node(machine.name, machine.os, addresses, pod_cidrs, build=build)
        if machine.os == "windows":
            network.admits = machine.admits
        client = ApiClient(self._transport, token=self._token(machine.name), agent=f"kubelet/{machine.name}")
        if self._references is None:
            self._references = References(client)
        kubelet = Kubelet(
            machine,
            addresses,
            client=client,
            clock=self._clock,
            fabric=self._fabric,
            references=self._references,
            server=NodeServer(self._egress, self._tls, Callers(client).authorize),
            settings=settings or Settings(),
            heartbeats=self._heartbeats,
            folders=self.folders,
        )
        self.kubelets[machine.name] = kubelet
        return kubelet

    async def start(self) -> None:
        """Let every node join."""
        await asyncio.gather(*(kubelet.start() for kubelet in self.kubelets.values()))

    async def registered(self) -> None:
        """Wait until every node that joins has registered."""
        joining = [kubelet for kubelet in self.kubelets.values() if not kubelet.defects.kubelet.does_not_join]
        await asyncio.gather(*(kubelet.registered.wait() for kubelet in joining))

    async def stop(self) -> None:
        """Let every node vanish."""
        await asyncio.gather(*(kubelet.stop() for kubelet in self.kubelets.values()))
        if self._references is not None:
            await self._references.close()

"""The host node: a kubelet whose pods are real, confined processes on this computer."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from winready_sandbox.clock import Clock
from winready_sandbox.host.ground import Ground
from winready_sandbox.host.images import HostImage, architecture
from winready_sandbox.host.pods import HostPod
from winready_sandbox.machine.machine import Machine
from winready_sandbox.network.addresses import NoAddressLeft
from winready_sandbox.network.endpoint import Listener
from winready_sandbox.nodes.kubelet import Kubelet
from winready_sandbox.nodes.pods import PodWorker
from winready_sandbox.streams import Connection

Object = dict[str, Any]
LABEL = "sandbox.winready.io/host"
"""On the node and, as a taint, against every pod that does not say that it wants to be there."""
SIMULATED = "sandbox.winready.io/simulated"
API_PORT = 443


class HostMachine(Machine):
    """This computer, as a node describes it; nothing of the model runs on it."""

    def __init__(self, name: str, clock: Clock) -> None:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        super().__init__(name, "linux", clock=clock, programs={}, cores=os.cpu_count() or 1, memory=memory)

    @property
    def kernel_version(self) -> str:
        """As in nodeInfo."""
        return platform.release()

    @property
    def os_image(self) -> str:
        """As in nodeInfo."""
        with contextlib.suppress(OSError):
            return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
        return "Linux"

    @property
    def runtime_version(self) -> str:
        """As in nodeInfo."""
        return "bubblewrap://0"

    @property
    def architecture(self) -> str:
        """As in nodeInfo."""
        return architecture()


class HostNode(Kubelet):
    """One node that runs what its images contain."""

    measures = False

    def __init__(
        self,
        machine: HostMachine,
        addresses: list[str],
        *,
        folder: Path,
        images: Iterable[HostImage],
        network: str,
        service_address: str,
        api_port: int,
        cluster_clock: Clock,
        **parts: Any,
    ) -> None:
        """``api_port``: where the API server listens on loopback; pods find it at the service's address."""
        super().__init__(machine, addresses, **parts)
        self.cluster_clock = cluster_clock
        self.service_address = service_address
        self.store = {image.name: image for image in images}
        self.pods, self.claims, self.paths = folder / "pods", folder / "claims", folder / "paths"
        outside = [image.root for image in self.store.values() if not image.root.is_relative_to(folder)]
        self.ground = Ground(folder, outside)
        self._network = ipaddress.ip_network(network)
        self._hosts = [str(address) for address in self._network.hosts()]
        self._taken: dict[str, str] = {}
        self._api_port = api_port
        self._relay: asyncio.Server | None = None
        self._leaving: set[asyncio.Task[None]] = set()

    @property
    def gateway(self) -> str:
        """The node's address in the network of its pods."""
        return self._hosts[0]

    @property
    def prefix(self) -> int:
        """The length of that network's prefix."""
        return self._network.prefixlen

    @property
    def pod_cidrs(self) -> list[str]:
        """The range of its pods' addresses."""
        return [str(self._network)]

    def labels(self) -> dict[str, str]:
        """It is no simulated node, and says so."""
        kept = {key: value for key, value in super().labels().items() if key != SIMULATED}
        return {**kept, LABEL: "true"}

    def open_ports(self, real_port: int) -> list[Listener]:
        """The simulated network does not reach this node."""
        return []

    def status(self) -> Object:
        """The node's status as of now, with the images that it has."""
        listed = [{"names": [image.name], "sizeBytes": image.size} for image in self.store.values()]
        return {**super().status(), "images": listed}

    async def start(self, *, after_reboot: bool = False) -> None:
        """Make the namespaces, let pods find the API server, and join."""
        for folder in (self.pods, self.claims, self.paths):
            folder.mkdir(parents=True, exist_ok=True)
        await self.ground.start(f"{self.gateway}/{self.prefix}", [*self.addresses, self.service_address])
        listening = await self.ground.listen(self.service_address, API_PORT)
        self._relay = await asyncio.start_server(self._hand_on, sock=listening)
        await super().start(after_reboot=after_reboot)

    async def stop(self) -> None:
        """End every process."""
        await super().stop()
        if self._relay is not None:
            self._relay.close()
        await asyncio.gather(*self._leaving, return_exceptions=True)
        await self.references.close()
        await self.ground.stop()

    async def _hand_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A pod calls the API server."""
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._api_port)
        except OSError:
            writer.close()
            return
        try:
            await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
        finally:
            writer.close()
            far_writer.close()

    def _new_worker(self, pod: Object, ended: Object | None) -> PodWorker:
        return HostPod(self, pod, ended=ended)

    def take_address(self, pod: str) -> str:
        """An address for a pod; those that were used longest ago come first."""
        taken = set(self._taken.values())
        for _ in range(len(self._hosts) - 1):
            address = self._hosts.pop(1)
            self._hosts.append(address)
            if address not in taken:
                self._taken[pod] = address
                return address
        raise NoAddressLeft(f"no address is left in {self._network}")

    def free_address(self, pod: str) -> None:
        """Nobody has it any more."""
        self._taken.pop(pod, None)

    def leave(self, pod: str) -> None:
        """Take a pod off the network."""

        async def drop() -> None:
            await self.ground.drop_network(pod)
            self.free_address(pod)

        task = asyncio.create_task(drop(), name=f"drop network {pod}")
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    def has(self, address: str) -> bool:
        """Whether an address is one of its pods'."""
        return address in self._taken.values()

    async def connect(self, host: str, port: int, *, timeout: float) -> Connection:
        """A connection from the node's own network; raises `NetworkError`."""
        return await self.ground.connect("", host, port, timeout=timeout)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError, OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()

"""Pods of the host node: real networks and folders, in the life that every kubelet gives its pods."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from winready_sandbox.host.confinement import Mount
from winready_sandbox.host.containers import HostRun
from winready_sandbox.host.ground import GroundError
from winready_sandbox.host.volumes import Around, HostVolumes
from winready_sandbox.network.addresses import NoAddressLeft
from winready_sandbox.nodes.contained import Dials, Volumes
from winready_sandbox.nodes.containers import ContainerRun
from winready_sandbox.nodes.pods import PodWorker
from winready_sandbox.nodes.runtime import PodSandbox, PodSandboxError
from winready_sandbox.nodes.status import ContainerState
from winready_sandbox.streams import Connection

if TYPE_CHECKING:
    from winready_sandbox.host.node import HostNode

Object = dict[str, Any]
API_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc")
_NO_DNS = "# Nothing resolves names here; /etc/hosts has the API server's.\n"


class HostSandbox(PodSandbox):
    """The network of one pod."""

    def __init__(self, node: HostNode, pod: Object) -> None:
        super().__init__(node, pod)
        self._host = node
        self._addresses: list[str] = []

    @property
    def addresses(self) -> list[str]:
        """Of the pod, as far as it has a network."""
        return self._addresses

    async def create(self) -> list[str]:
        """A network of its own, or the node's; raises `PodSandboxError`."""
        if self.on_host:
            self._addresses = list(self._host.addresses)
            return self._addresses
        uid = self._pod["metadata"]["uid"]
        try:
            address = self._host.take_address(uid)
            await self._host.ground.add_network(uid, f"{address}/{self._host.prefix}", self._host.gateway)
        except (GroundError, NoAddressLeft) as error:
            self._host.free_address(uid)
            raise PodSandboxError(str(error)) from None
        self._addresses = [address]
        return self._addresses

    def remove(self) -> None:
        """Take it away again."""
        if self._addresses and not self.on_host:
            self._host.leave(self._pod["metadata"]["uid"])
        self._addresses = []

    async def connect(self, port: int) -> Connection:
        """A connection to a port of the pod, from inside; raises `NetworkError`."""
        uid = "" if self.on_host else self._pod["metadata"]["uid"]
        return await self._host.ground.connect(uid, "127.0.0.1", port, timeout=10)

    def hosts(self) -> str:
        """The text of the hosts file."""
        names = [*API_NAMES, f"kubernetes.default.svc.{self._host.fabric.domain}"]
        lines = ["# Kubernetes-managed hosts file.", "127.0.0.1\tlocalhost", "::1\tlocalhost"]
        lines += [f"{address}\t{self.hostname}" for address in self._addresses]
        lines.append(f"{self._host.service_address}\t" + "\t".join(names))
        for alias in self._pod["spec"].get("hostAliases") or []:
            lines.append(f"{alias['ip']}\t" + "\t".join(alias.get("hostnames") or []))
        return "\n".join(lines) + "\n"

    def variables(self, spec: Object, base: dict[str, str]) -> dict[str, str]:
        """The environment of a container; raises `ConfigError` for what is missing."""
        return self._variables(spec, base)


class HostPod(PodWorker):
    """Everything that happens to one pod on the host node."""

    def __init__(self, node: HostNode, pod: Object, *, ended: Object | None = None) -> None:
        self.host = node
        self.folder: Path = node.pods / str(pod["metadata"]["uid"])
        super().__init__(node, pod, ended=ended)

    def _new_sandbox(self) -> PodSandbox:
        self.host_sandbox = HostSandbox(self.host, self.pod)
        return self.host_sandbox

    def _new_run(self, state: ContainerState) -> ContainerRun:
        return HostRun(self, state)

    def _new_volumes(self) -> Volumes:
        host, namespace = self.host, self.pod["metadata"]["namespace"]
        around = Around(
            host.client,
            host.cluster_clock,
            lambda resource, name: host.references.find(resource, name, namespace),
            self.host_sandbox.field,
            self.host_sandbox.resource,
            host.paths,
            host.claims,
            host.ground.every_user,
        )
        self.storage = HostVolumes(self.pod, self.folder / "volumes", around)
        return self.storage

    @property
    def host_endpoint(self) -> Dials:
        """Probes come from the node's own network."""
        return self.host

    @property
    def network(self) -> str:
        """Whose network its containers are in; none is the node's own."""
        return "" if self.host_sandbox.on_host else self.uid

    def kept_files(self) -> list[Mount]:
        """What a kubelet gives every container: names and no name server."""
        texts = {"hosts": self.host_sandbox.hosts(), "resolv.conf": _NO_DNS, "hostname": self.sandbox.hostname + "\n"}
        mounts = []
        for name, text in texts.items():
            file = self.folder / "etc" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            mounts.append(Mount(file, f"/etc/{name}"))
        return mounts

    async def _torn_down(self, had_sandbox: bool) -> None:
        """Nothing of a pod stays on the disk."""
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)

"""One simulated computer: its identity, its disk, its processors and memory, and what runs on it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from winready_sandbox.clock import Clock, wall_time
from winready_sandbox.machine import image_trees
from winready_sandbox.machine.builds import DEFAULT_CONTAINERD, WindowsBuild, containerd_release, windows_build
from winready_sandbox.machine.domain import Domain
from winready_sandbox.machine.errors import OS
from winready_sandbox.machine.files import FileSystem
from winready_sandbox.machine.process import Program
from winready_sandbox.machine.resources import Memory, Processor
from winready_sandbox.machine.tree import Directory, as_directory
from winready_sandbox.machine.windows_host import HnsNetwork, WindowsHost

if TYPE_CHECKING:
    from winready_sandbox.machine.container import Container

GIBIBYTE = 2**30
REMOTE_ACCESS_PORTS = (22, 3389)
PROCESS_ISOLATION, HYPER_V_ISOLATION = "runhcs-wcow-process", "runhcs-wcow-hypervisor"
LINUX_KERNEL = "6.8.0-1024-generic"
_VOLATILE = {"windows": ("C:\\Windows\\Temp",), "linux": ("/tmp", "/run")}  # noqa: S108
_HOST_MEMORY = {"windows": 1400 * 2**20, "linux": 500 * 2**20}


@dataclass
class MachineDefects:
    """Ways in which a machine can be broken; a fault sets them."""

    boot_id_stays: bool = False
    """A restart does not change the boot id."""
    cpu_limit_ignored: bool = False
    """Containers started from now on get no CPU limit."""
    memory_limit_ignored: bool = False
    """Containers started from now on get no memory limit."""
    defender_exclusions_missing: bool = False
    """Microsoft Defender scans the container runtime."""
    pings_dropped: bool = False
    """The firewall lets no echo request in."""
    remote_access_closed: bool = False
    """The firewall lets nobody in to SSH and RDP."""
    hns_down: bool = False
    """The Host Networking Service answers nobody."""


@dataclass(frozen=True)
class PowerRequest:
    """Somebody on the machine asked for a restart or a shutdown."""

    restart: bool
    delay: float
    """Cluster seconds until it happens; a later `shutdown /a` can take it back."""


class Machine:
    """A computer; its kubelet lives in `winready_sandbox.nodes`."""

    boot_id: str

    def __init__(
        self,
        name: str,
        os: OS,
        *,
        clock: Clock,
        programs: Mapping[str, Program],
        build: str = "20348",
        cores: int = 4,
        memory: int = 16 * GIBIBYTE,
        containerd: str = DEFAULT_CONTAINERD,
        domain: Domain | None = None,
        hyper_v: bool = False,
    ) -> None:
        self.name = name
        self.os: OS = os
        self.clock = clock
        self.programs = programs
        self.build: WindowsBuild | None = windows_build(build) if os == "windows" else None
        self.cores = cores
        self.memory_bytes = memory
        self.containerd = containerd
        self.domain = domain
        self.hyper_v = hyper_v
        self.virtual_machines: set[str] = set()
        """The utility machines that pods with Hyper-V isolation run in, one for each pod."""
        seed = uuid.uuid5(uuid.NAMESPACE_DNS, name)
        self.system_uuid = str(seed).upper() if os == "windows" else str(seed)
        self.machine_id = name if os == "windows" else seed.hex
        self.defects = MachineDefects()
        self.host = WindowsHost(self.build) if self.build else None
        if self.host is not None:
            self.host.hns.networks += [HnsNetwork("External", "Overlay"), HnsNetwork("Calico", "Overlay")]
        self.files = FileSystem(
            os, image_trees.tree("windows-host" if os == "windows" else "alpine").thawed(), owner=None
        )
        self.processor = Processor(cores)
        self.memory = Memory(os, memory, used=_HOST_MEMORY[os])
        self.containers: dict[str, Container] = {}
        self.on_power: Callable[[PowerRequest | None], None] = lambda request: None
        """Called when a program asks for a restart or shutdown, and with None when it is taken back."""
        self.power: PowerRequest | None = None
        self.booted_at = wall_time()
        self.installed_at = self.booted_at - 30 * 86400
        self._boots = 11
        self.boot_id = str(self._boots) if os == "windows" else str(uuid.uuid4())

    @property
    def kernel_version(self) -> str:
        """As in nodeInfo."""
        return self.build.version if self.build else LINUX_KERNEL

    @property
    def os_image(self) -> str:
        """As in nodeInfo."""
        return self.build.edition if self.build else "Ubuntu 24.04.2 LTS"

    @property
    def runtime_version(self) -> str:
        """As in nodeInfo."""
        return f"containerd://{self.containerd}"

    @property
    def architecture(self) -> str:
        """As in nodeInfo."""
        return "amd64"

    @property
    def runtime_handlers(self) -> frozenset[str]:
        """The ways in which the container runtime is configured to run pods, as RuntimeClasses name them."""
        if self.os == "linux":
            return frozenset({"runc"})
        return frozenset({PROCESS_ISOLATION, *([HYPER_V_ISOLATION] if self.hyper_v else [])})

    @property
    def windows_host(self) -> WindowsHost:
        """The administrative state; only Windows machines have one."""
        if self.host is None:
            raise TypeError(f"{self.name} is no Windows machine")
        return self.host

    @property
    def containerd_release(self) -> tuple[int, int]:
        """Major and minor version of the runtime."""
        return containerd_release(self.containerd)

    @property
    def binds_files(self) -> bool:
        """Does the runtime bind files into HostProcess containers (containerd 1.7 on a node with the bind filter)?"""
        return self.containerd_release >= (1, 7) and self.files.exists("C:\\Windows\\System32\\bindfltapi.dll")

    def admits(self, protocol: str, port: int) -> bool:
        """Whether the firewall of a Windows machine lets an inbound packet through."""
        if self.defects.pings_dropped and protocol.startswith("ICMP"):
            return False
        if self.defects.remote_access_closed and protocol == "TCP" and port in REMOTE_ACCESS_PORTS:
            return False
        return self.windows_host.admits(protocol, port)

    def request_power(self, request: PowerRequest | None) -> None:
        """A program asks for a restart or shutdown, or takes that back with None."""
        self.power = request
        self.on_power(request)

    def restart(self) -> None:
        """The machine has come up again: new boot id, volatile files gone, nothing running."""
        self.power = None
        self.booted_at = wall_time()
        self._boots += 1
        if not self.defects.boot_id_stays:
            self.boot_id = str(self._boots) if self.os == "windows" else str(uuid.uuid4())
        self.virtual_machines.clear()
        for path in _VOLATILE[self.os]:
            as_directory(self.files.change(path)).replace(Directory(fold=self.os == "windows"))
        if self.host is not None:
            self.host.hns.namespaces.clear()

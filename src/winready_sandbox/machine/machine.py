"""One simulated computer: its identity, its disk, its processors and memory, and what runs on it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from winready_sandbox.chance import unique
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
TEARDOWNS = 24
"""Pods that a worn-out Host Compute Service takes down before it begins to hang."""
REMOTE_ACCESS_PORTS = (22, 3389)
PROCESS_ISOLATION, HYPER_V_ISOLATION = "runhcs-wcow-process", "runhcs-wcow-hypervisor"
LINUX_KERNEL = "6.8.0-1024-generic"
VALUES, DISK = 192 * 2**20, 64 * 2**20
"""Bytes that the values of its programs and the files on its disk may have, all of them bytes of the host."""
_VOLATILE = {"windows": ("C:\\Windows\\Temp",), "linux": ("/tmp", "/run")}  # noqa: S108
_HOST_MEMORY = {"windows": 1400 * 2**20, "linux": 500 * 2**20}


@dataclass
class MachineDefects:
    """Ways in which a machine can be broken; a fault sets them."""

    really: str = ""
    """The Windows build that the machine is, whatever its kubelet reports."""
    boot_id_stays: bool = False
    """A restart does not change the boot id."""
    files_lost: bool = False
    """A restart leaves the disk as it was delivered."""
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
    remote_access_mute: bool = False
    """SSH and RDP accept connections and never say a word."""
    added_rules_ignored: bool = False
    """Firewall rules that programs on the machine add have no effect: a group policy lets only its own count."""
    wmi_broken: bool = False
    """WMI does not know its classes any more."""
    defender_excludes_docker: bool = False
    """Microsoft Defender leaves out a container runtime that is not the one in use."""
    hns_down: bool = False
    """The Host Networking Service answers nobody."""
    busy: float = 0.0
    """Threads of the host itself that want a core each, all the time."""
    cpu_limit_is_weight: bool = False
    """A CPU limit of containers started from now on is their share when cores are short, and no cap."""
    cpu_limit_per_process: bool = False
    """A CPU limit of containers started from now on holds for each of their processes, not for all together."""
    cpu_limit_lost_after: float = 0.0
    """Cluster seconds after its start from which a container has no CPU limit any more (0: it keeps it)."""
    memory_limit_lost_after: float = 0.0
    """The same for its memory limit."""
    first_cpu_limit_only: bool = False
    """Of a pod started from now on only the first container gets its CPU limit."""
    first_memory_limit_only: bool = False
    """The same for memory limits."""
    limits_lost_on_restart: bool = False
    """A container that is started again in its pod gets no limits."""
    teardowns_hang: bool = False
    """The Host Compute Service is worn out by churn: after two dozen pods it never takes down every fifth one."""
    hns_keeps_deleted: bool = False
    """Its objects stay after their deletion, which it answers with success."""
    hns_removes_others: bool = False
    """With the first object that a program deletes a network of somebody else goes."""
    account_lost_after: float = 0.0
    """Cluster seconds after its start from which a container is nobody to its domain any more (0: it stays)."""
    account_falters: float = 0.0
    """Every so many cluster seconds containers are nobody to their domain for a second (0: never)."""
    tickets_of_another: bool = False
    """Containers get the Kerberos tickets of another account than their credential spec names."""


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
        kubernetes: str = "",
    ) -> None:
        self.name = name
        self.kubernetes = kubernetes
        """The version of the Kubernetes programs on its disk."""
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
            self.host.installed = lambda: self.own_build
            for network in ("External", "Calico"):
                self.host.hns.add(HnsNetwork(network, "Overlay"))
        self.disk = Memory(os, DISK)
        self.values = Memory(os, VALUES)
        self.files = FileSystem(os, self._delivered(), owner=None, disk=self.disk)
        self.pod_folders: dict[str, dict[str, Directory]] = {}
        """What the kubelet keeps on the disk for a pod's own scratch volumes, by the pod's uid."""
        self.processor = Processor(cores, lambda: self.defects.busy)
        self.memory = Memory(os, memory, used=_HOST_MEMORY[os])
        self.containers: dict[str, Container] = {}
        self.on_power: Callable[[PowerRequest | None], None] = lambda request: None
        """Called when a program asks for a restart or shutdown, and with None when it is taken back."""
        self.power: PowerRequest | None = None
        self.logon_failure = "The user name or password is incorrect."
        """What the system calls it, in its own language."""
        self.booted_at = wall_time()
        self.installed_at = self.booted_at - 30 * 86400
        self._teardowns = 0
        self._boots = 11
        self.boot_id = str(self._boots) if os == "windows" else unique()

    def _delivered(self) -> Directory:
        return image_trees.tree("windows-host" if self.os == "windows" else "alpine").thawed()

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
    def own_build(self) -> WindowsBuild:
        """What Windows on the machine itself answers."""
        return windows_build(self.defects.really) if self.defects.really else self.windows_host.build

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
        return self.windows_host.admits(protocol, port, without_added=self.defects.added_rules_ignored)

    @property
    def hns_networks(self) -> list[HnsNetwork]:
        """The networks that the Host Networking Service has."""
        hns = self.windows_host.hns
        # Network plug-ins make their networks again once that is possible.
        hns.lost = hns.lost if self._removes_others else ""
        return [network for name, network in hns.networks.items() if name != hns.lost]

    @property
    def _removes_others(self) -> bool:
        return self.defects.hns_removes_others

    def hns_delete(self, objects: dict[str, Any], identifier: str) -> bool:
        """A program deletes an object of the Host Networking Service; False when there is none."""
        if identifier.lower() not in objects:
            return False
        hns = self.windows_host.hns
        hns.lost = next(iter(hns.networks)) if self._removes_others else ""
        if not self.defects.hns_keeps_deleted:
            del objects[identifier.lower()]
        return True

    def hangs_on_teardown(self) -> bool:
        """Whether the Host Compute Service hangs on the pod that it is to take down next."""
        self._teardowns = self._teardowns + 1 if self.defects.teardowns_hang else 0
        return self._teardowns > TEARDOWNS and self._teardowns % 5 == 0

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
            self.boot_id = str(self._boots) if self.os == "windows" else unique()
        self.virtual_machines.clear()
        if self.defects.files_lost:
            self.files.root.replace(self._delivered())
            self.pod_folders.clear()
        for path in _VOLATILE[self.os]:
            as_directory(self.files.change(path)).replace(Directory(fold=self.os == "windows"))
        if self.host is not None:
            self.host.hns.namespaces.clear()
            self.host.hns.endpoints.clear()

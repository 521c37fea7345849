"""What kind of sandbox is wanted: the options of ``up``, checked, and the nodes that follow from them."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, Literal

from winready_sandbox.machine.builds import DEFAULT_CONTAINERD, containerd_release, windows_build
from winready_sandbox.versions import DEFAULT_MINOR, NEWEST_MINOR, OLDEST_MINOR, minor_of

MOST_NODES = 200
"""As many as the simulated addresses leave room for."""


class PlanError(ValueError):
    """An option that makes no sense, and what to write instead."""


@dataclass(frozen=True)
class NodePlan:
    """One node to be: its name, operating system and simulated addresses."""

    name: str
    os: Literal["linux", "windows"]
    number: int
    build: str = ""
    dual_stack: bool = False

    @property
    def addresses(self) -> list[str]:
        """The node's own addresses in the simulated network."""
        return [f"10.250.0.{self.number}", *([f"fd00:10:250::{self.number:x}"] if self.dual_stack else [])]

    @property
    def pod_networks(self) -> list[str]:
        """The ranges that its pods get addresses from."""
        return [f"10.244.{self.number}.0/24", *([f"fd00:10:244:{self.number:x}::/64"] if self.dual_stack else [])]


@dataclass(frozen=True)
class Plan:
    """One sandbox to be."""

    name: str = "default"
    linux: int = 2
    windows: int = 2
    windows_build: str = "20348"
    kubernetes: str = ""
    """The version to report; left out, it is the control plane's own."""
    port: int = 0
    speed: float = 1.0
    dual_stack: bool = False
    faults: tuple[str, ...] = ()
    """Faults to start with, each ``NAME`` or ``NAME@NODE``."""
    control_plane: str = ""
    """The folder of the programs of a real control plane; left out, the embedded one is used."""
    containerd: str = DEFAULT_CONTAINERD
    hyper_v: bool = False
    """Whether Windows nodes can run pods in virtual machines, and a RuntimeClass offers it."""
    shutdown_grace: float = 0.0
    """Seconds of graceful node shutdown; 0 = a reboot ends pods without notice."""
    shutdown_grace_critical: float = 0.0
    """The last part of them, which belongs to critical pods."""

    def __post_init__(self) -> None:
        for label, count in (("--linux", self.linux), ("--windows", self.windows)):
            if count < 0:
                raise PlanError(f"{label} {count}: a cluster cannot have fewer than 0 such nodes")
        if not 1 <= self.linux + self.windows <= MOST_NODES:
            raise PlanError(f"{self.linux} + {self.windows} nodes: a sandbox has 1 to {MOST_NODES} nodes in all")
        if not 0 <= self.port <= 65535:
            raise PlanError(f"--port {self.port}: a port is a number from 1 to 65535; leave it out for a free one")
        try:
            windows_build(self.windows_build)
        except ValueError as error:
            raise PlanError(f"--windows-build: {error}") from None
        try:
            containerd_release(self.containerd)
        except ValueError as error:
            raise PlanError(f"--containerd {error}") from None
        if not 0 <= self.shutdown_grace_critical <= self.shutdown_grace:
            raise PlanError(
                f"--shutdown-grace-critical {self.shutdown_grace_critical:g}: it is a part of --shutdown-grace "
                f"({self.shutdown_grace:g}), so it cannot be longer"
            )
        self.minor  # noqa: B018  reading it checks the version

    @property
    def minor(self) -> int:
        """The minor version of Kubernetes to report."""
        if not self.kubernetes:
            return DEFAULT_MINOR
        with contextlib.suppress(ValueError):
            if OLDEST_MINOR <= (minor := minor_of(self.kubernetes)) <= NEWEST_MINOR:
                return minor
        known = f"1.{OLDEST_MINOR} to 1.{NEWEST_MINOR}"
        raise PlanError(f"--kubernetes {self.kubernetes}: not a version that the sandbox can report; choose {known}")

    @property
    def pod_networks(self) -> tuple[str, ...]:
        """The ranges that the nodes' own ones are slices of, one for each IP family."""
        return ("10.244.0.0/16", *(("fd00:10:244::/48",) if self.dual_stack else ()))

    @property
    def service_networks(self) -> tuple[str, ...]:
        """The ranges of cluster IPs, one for each IP family."""
        return ("10.96.0.0/16", *(("fd00:10:96::/112",) if self.dual_stack else ()))

    @property
    def nodes(self) -> list[NodePlan]:
        """The nodes, Linux first: addresses of one run look like those of the next."""
        linux = [NodePlan(f"linux-{n}", "linux", n + 1, "", self.dual_stack) for n in range(1, self.linux + 1)]
        first = self.linux + 1
        windows = [
            NodePlan(f"windows-{n}", "windows", first + n, self.windows_build, self.dual_stack)
            for n in range(1, self.windows + 1)
        ]
        return [*linux, *windows]

    @classmethod
    def read(cls, values: dict[str, Any]) -> Plan:
        """The plan in a decoded JSON document, as ``up --detach`` hands it over."""
        return cls(**{**values, "faults": tuple(values.get("faults", ()))})

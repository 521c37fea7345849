"""What kind of sandbox is wanted: the options of ``up``, checked, and the nodes that follow from them."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from typing import Any, Literal

from winready_sandbox.machine.builds import DEFAULT_CONTAINERD, containerd_release, windows_build
from winready_sandbox.versions import DEFAULT_MINOR, NEWEST_MINOR, OLDEST_MINOR, minor_of

MOST_NODES = 2000
FEW_NODES = 200
"""As many as fit into the usual addresses; larger clusters have wider ranges."""
HOST_NUMBER = 253
"""Of the host node among the simulated addresses, beyond those of a few others."""
WIDE_PODS, WIDE_FIRST = "10.128.0.0/10", 128
_LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"


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
    wide: bool = False
    """Whether it is one of very many."""

    @property
    def addresses(self) -> list[str]:
        """The node's own addresses in the simulated network."""
        # The first block of the range has addresses for others besides nodes.
        own = f"10.250.{1 + self.number // 250}.{1 + self.number % 250}" if self.wide else f"10.250.0.{self.number}"
        return [own, *([f"fd00:10:250::{self.number:x}"] if self.dual_stack else [])]

    @property
    def pod_networks(self) -> list[str]:
        """The ranges that its pods get addresses from."""
        high, low = divmod(self.number, 256)
        own = f"10.{WIDE_FIRST + high}.{low}.0/24" if self.wide else f"10.244.{self.number}.0/24"
        return [own, *([f"fd00:10:244:{self.number:x}::/64"] if self.dual_stack else [])]


@dataclass(frozen=True)
class Plan:
    """One sandbox to be."""

    name: str = "default"
    linux: int = 2
    windows: int = 2
    windows_build: str = "20348"
    """One for all Windows nodes, or several with commas between, which the nodes take in turn."""
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
    active_directory: bool = False
    """Whether pods may log on to the simulated domain: credential specs, and the webhook that hands them out."""
    shutdown_grace: float = 0.0
    """Seconds of graceful node shutdown; 0 = a reboot ends pods without notice."""
    shutdown_grace_critical: float = 0.0
    """The last part of them, which belongs to critical pods."""
    cluster_domain: str = "cluster.local"
    """The domain of the cluster's own names."""
    hides_configuration: bool = False
    """Whether kubelets keep their configuration to themselves, so that nobody reads the cluster's domain there."""
    node_local_dns: bool = False
    """Whether Linux nodes have a DNS cache of their own; it does not exist for Windows, whose pods ask the service."""
    pod_security: str = "privileged"
    """The level of namespaces that state none; a real control plane keeps its own."""
    node_domain: str = ""
    """What node names end in, such as ``eu-west-1.compute.internal``: clouds name nodes in full."""
    cores: int = 4
    """Of every Windows node."""
    memory: int = 16
    """Of every Windows node, in GiB."""
    pull_seconds: float = 0.0
    """The least that a pull of an image takes on Windows nodes that do not have it yet."""
    host_node: bool = False
    """Whether one more Linux node runs images as real, confined processes."""
    host_images: tuple[str, ...] = ()
    """Its images, each ``NAME=FOLDER``."""

    def __post_init__(self) -> None:
        for label, count in (("--linux", self.linux), ("--windows", self.windows)):
            if count < 0:
                raise PlanError(f"{label} {count}: a cluster cannot have fewer than 0 such nodes")
        if not 1 <= self.linux + self.windows <= MOST_NODES:
            raise PlanError(f"{self.linux} + {self.windows} nodes: a sandbox has 1 to {MOST_NODES} nodes in all")
        if not 0 <= self.port <= 65535:
            raise PlanError(f"--port {self.port}: a port is a number from 1 to 65535; leave it out for a free one")
        try:
            for build in self.windows_builds:
                windows_build(build)
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
        if not re.fullmatch(rf"{_LABEL}(\.{_LABEL})*", self.cluster_domain):
            raise PlanError(f"--cluster-domain {self.cluster_domain!r}: not a domain; write one such as k8s.example")
        if self.host_images and not self.host_node:
            raise PlanError("--host-image names what a host node runs; write --host-node as well")
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
    def windows_builds(self) -> list[str]:
        """The builds that Windows nodes take in turn."""
        return [text.strip() for text in self.windows_build.split(",")]

    @property
    def pod_networks(self) -> tuple[str, ...]:
        """The ranges that the nodes' own ones are slices of, one for each IP family."""
        return (WIDE_PODS if self.wide else "10.244.0.0/16", *(("fd00:10:244::/48",) if self.dual_stack else ()))

    @property
    def wide(self) -> bool:
        """Whether it has too many nodes for the usual addresses."""
        return self.linux + self.windows > FEW_NODES

    @property
    def service_networks(self) -> tuple[str, ...]:
        """The ranges of cluster IPs, one for each IP family."""
        return ("10.96.0.0/16", *(("fd00:10:96::/112",) if self.dual_stack else ()))

    @property
    def nodes(self) -> list[NodePlan]:
        """The nodes, Linux first: addresses of one run look like those of the next."""
        names = f".{self.node_domain}" if self.node_domain else ""
        builds = self.windows_builds
        more = (self.dual_stack, self.wide)
        linux = [NodePlan(f"linux-{n}{names}", "linux", n + 1, "", *more) for n in range(1, self.linux + 1)]
        first = self.linux + 1
        windows = [
            NodePlan(f"windows-{n}{names}", "windows", first + n, builds[(n - 1) % len(builds)], *more)
            for n in range(1, self.windows + 1)
        ]
        return [*linux, *windows]

    @property
    def host(self) -> NodePlan | None:
        """The node that runs real processes, if one is wanted; it has addresses that no other node can have."""
        return NodePlan("host-1", "linux", HOST_NUMBER) if self.host_node else None

    @classmethod
    def read(cls, values: dict[str, Any]) -> Plan:
        """The plan in a decoded JSON document, as ``up --detach`` hands it over."""
        lists = {name: tuple(values.get(name, ())) for name in ("faults", "host_images")}
        return cls(**{**values, **lists})

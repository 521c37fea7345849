"""What can be wrong with one node: every field off is a healthy node, each field changes one behaviour.

Faults set these fields at run time; the code that owns a behaviour asks for its field at the moment it acts.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class KubeletDefects:
    """Of the kubelet itself."""

    does_not_join: bool = False
    """The worker never registers."""
    reports_build: str = ""
    """The OS build that the node claims instead of its own, e.g. ``10.0.17763``."""
    slow_start_factor: float = 1.0
    """Pods take this many times as long to start."""
    never_returns: bool = False
    """After a reboot the node stays away."""
    leaves_pods_down: bool = False
    """After a reboot the pods that ran are not started again."""
    loses_pods: bool = False
    """A new pod now and then is never started: every third one stays Pending."""
    ignores_probes: bool = False
    """Containers count as ready without being probed."""
    stats_unavailable: bool = False
    """``/stats/summary`` answers with an error."""
    graceful_stop_ignored: bool = False
    """Containers are killed at once, without their grace period."""


@dataclass
class RuntimeDefects:
    """Of the container runtime."""

    stale_tag: str = ""
    """This tag of agnhost runs, whatever tag the pod asked for."""
    linux_for_windows: bool = False
    """Windows pods get Linux containers (LCOW)."""
    ignores_user_name: bool = False
    """``runAsUserName`` has no effect."""
    host_process_own_address: bool = False
    """HostProcess pods get a pod address instead of the node's."""
    host_process_unprivileged: bool = False
    """HostProcess containers run as an ordinary user."""
    credential_spec_for_all: bool = False
    """Every Windows container gets a group managed service account."""
    exec_broken: bool = False
    """The exec endpoint answers with an error of the runtime."""
    exec_flaky: bool = False
    """One of four commands is not started, with an error of the runtime."""
    pulls_fail: bool = False
    """No image can be pulled."""


@dataclass
class VolumeDefects:
    """Of the volumes."""

    updates_never_arrive: bool = False
    """Secrets, config maps and downward API files stay as they were at the pod's start."""
    read_only: bool = False
    """Every volume refuses writes."""
    writable_read_only: bool = False
    """``readOnly`` mounts accept writes."""
    host_path_not_persistent: bool = False
    """hostPath volumes are fresh for each pod."""
    not_shared: bool = False
    """Containers that mount the same volume do not see each other's files."""
    torn_writes: bool = False
    """What a container writes is cut in half."""
    token_not_rotated: bool = False
    empty: bool = False
    """Projected content is missing: the files are there, with nothing in them."""


@dataclass
class NodeDefects:
    """All of one node."""

    kubelet: KubeletDefects = field(default_factory=KubeletDefects)
    runtime: RuntimeDefects = field(default_factory=RuntimeDefects)
    volumes: VolumeDefects = field(default_factory=VolumeDefects)

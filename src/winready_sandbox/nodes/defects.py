"""What can be wrong with one node: every field off is a healthy node, each field changes one behaviour.

Faults set these fields at run time; the code that owns a behaviour asks for its field at the moment it acts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass
class KubeletDefects:
    """Of the kubelet itself."""

    does_not_join: bool = False
    """The worker never registers."""
    reports_build: str = ""
    """The OS build that the node claims instead of its own, e.g. ``10.0.17763``."""
    labels_build: str = ""
    """The OS build in the node's label alone."""
    labels_os: str = ""
    """The operating system in the node's labels alone."""
    memory_share: float = 1.0
    """The share of its memory that the node reports."""
    shutdown_taint: bool = False
    """The cloud's word that the machine is off stays on the node as a taint."""
    slow_start_factor: float = 1.0
    """Pods take this many times as long to start."""
    never_returns: bool = False
    """After a reboot the node stays away."""
    outage: float = 0.0
    """Seconds that a reboot takes, instead of the usual 2 to 6 minutes."""
    reboots_again: float = 0.0
    """After a reboot the machine goes down once more, this many seconds later."""
    leaves_pods_down: bool = False
    """After a reboot the pods that ran are not started again."""
    loses_pods: bool = False
    """A new pod now and then is never started: every third one stays Pending."""
    ignores_probes: bool = False
    """Containers count as ready without being probed."""
    host_pods_misreported: bool = False
    """HostProcess pods are reported with an address of the pod network, which the node does not use for itself."""
    stats_unavailable: bool = False
    """``/stats/summary`` answers with an error."""
    graceful_stop_ignored: bool = False
    """Containers are killed at once, without their grace period."""
    ignores_hooks: bool = False
    """Neither postStart nor preStop hooks are run."""
    ignores_ephemeral: bool = False
    """Containers that are put into a running pod are never started."""
    sidecars_stay_down: bool = False
    """A sidecar that has ended is not started again."""
    no_service_variables: bool = False
    """Containers do not find services in their environment."""
    host_address_missing: bool = False
    """The status of pods does not tell the address of their node."""
    huge_pages: str = ""
    """Huge pages that the node says it has."""
    runtime_name: str = ""
    """The container runtime that the node names instead of its own."""


@dataclass
class RuntimeDefects:
    """Of the container runtime."""

    stale_tag: str = ""
    """This tag of agnhost runs, whatever tag the pod asked for."""
    stale_tag_later: str = ""
    """The same for every container of a pod but its first."""
    tag_moved: bool = False
    """Only the first container from an image gets its content; later ones get another one under the same tag."""
    linux_for_windows: bool = False
    """Windows pods get Linux containers (LCOW)."""
    ignores_user_name: bool = False
    """``runAsUserName`` has no effect."""
    user_name_of_pod_wins: bool = False
    """What a container says itself does not count where its pod names a user."""
    user_name_in_first_container: bool = False
    """``runAsUserName`` has an effect in the first container of a pod only."""
    unknown_user_ignored: bool = False
    """A user that does not exist is as good as none."""
    host_process_own_address: bool = False
    """HostProcess pods get a pod address instead of the node's."""
    host_process_unprivileged: bool = False
    """HostProcess containers run as an ordinary user."""
    host_process_as_system: bool = False
    """HostProcess containers run as SYSTEM, whatever user they ask for."""
    host_process_no_volumes: bool = False
    """Volumes do not appear in HostProcess containers."""
    credential_spec_for_all: bool = False
    """Every Windows container gets a group managed service account."""
    credential_spec_ignored: bool = False
    """No container gets the account that its credential spec names."""
    credential_spec_of_another: bool = False
    """Containers get another account of the domain than their credential spec names."""
    credential_spec_in_first_container: bool = False
    """Only the first container of a pod gets the account."""
    exec_broken: bool = False
    """The exec endpoint answers with an error of the runtime."""
    exec_flaky: bool = False
    """One of four commands is not started, with an error of the runtime."""
    sandboxes_fail: Literal["", "all", "new"] = ""
    """The network of pods cannot be made: of none, or of none that the node had not run before it started."""
    pulls_fail: bool = False
    """No image can be pulled."""
    root_let_in: bool = False
    """``runAsNonRoot`` keeps nobody out."""
    host_network_for_all: bool = False
    """Ordinary pods that ask for the network of the node get it."""
    last_words_lost: bool = False
    """What containers write to their termination message is not read."""


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
    cut_at: int = 0
    """Projected files end after so many bytes (0: they do not)."""
    line_ends_converted: bool = False
    """Each line feed of a projected file becomes carriage return and line feed, in binary content, too."""
    nested_missing: bool = False
    """Projected files whose path has a folder in it are not there."""
    first_key_updated: bool = False
    """Of a source that changed only the first file is replaced; the others stay as they were."""
    updates_one_by_one: bool = False
    """Of a source that changed one file is replaced at each sync of the pod."""
    removed_keys_stay: bool = False
    """Files whose key was taken out of its source stay."""
    added_keys_missing: bool = False
    """Files of keys that were added to a source do not appear."""
    first_update_only: bool = False
    """Of the changes of a volume's sources only the first arrives in a pod."""
    downward_fixed: bool = False
    """Files that tell of the pod itself stay as they were at its start."""
    update_delay: float = 0.0
    """Cluster seconds that the kubelet sees a change of a source later than it was made."""
    first_container_updated: bool = False
    """Updates arrive in a pod's first container only."""
    found_by_name: bool = False
    """A volume that the kubelet fills is the directory of the first pod whose volume had that name."""
    empty_dirs_recycled: bool = False
    """An emptyDir is the directory of the last pod whose volume had that name, with what is in it."""
    first_read_only: bool = False
    """``readOnly`` is honoured in a pod's first container only."""
    two_share: bool = False
    """Only two containers of a pod share a volume; every further one has a copy of its own."""
    sharing_ends: float = 0.0
    """Cluster seconds after which containers of a pod go apart: each sees only what it writes itself (0: never)."""
    appends_lost: bool = False
    """What is appended to a file of a volume does not arrive."""
    host_path_folders_missing: bool = False
    """Folders below a hostPath volume look empty to pods that start after they were made."""
    sub_paths_ignored: bool = False
    """A mount of a part of a volume is a mount of all of it."""
    modes_kept: bool = False
    """Files that others may not read by their mode cannot be read by ordinary users."""
    host_path_large_lost: int = 0
    """Files of more bytes than this that a pod wrote to a hostPath volume go with the pod (0: none do)."""


@dataclass
class NodeDefects:
    """All of one node."""

    kubelet: KubeletDefects = field(default_factory=KubeletDefects)
    runtime: RuntimeDefects = field(default_factory=RuntimeDefects)
    volumes: VolumeDefects = field(default_factory=VolumeDefects)

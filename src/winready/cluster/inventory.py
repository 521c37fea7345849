"""What there is to judge: nodes by OS and build, versions, runtimes, taints, features."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from winready.cluster.client import Client
from winready.cluster.errors import ClusterError, Forbidden, NotFound
from winready.cluster.resources import DAEMON_SETS, NAMESPACES, NODES, Resource
from winready.spec.versions import Version
from winready.spec.windows import kernel_build

POLICY_ENGINES = {
    "calico-node-windows": "Calico",
    "antrea-agent-windows": "Antrea",
    "azure-npm-win": "Azure NPM",
}
"""DaemonSets that bring policies to Windows nodes."""
ENGINE_MARKS = {"projectcalico.org/": "Calico", "node.antrea.io/": "Antrea"}
"""How annotations begin that engines write to the nodes they run on, also where they run as Windows services."""
UNKNOWN_ENGINE = "unknown"
"""How the description of an engine begins that may or may not be there."""
SIMULATED = "sandbox.winready.io/simulated"
HOST_NODE = "sandbox.winready.io/host"
"""A sandbox's node of real processes: it runs few images, and services of the simulated network end before it."""
"""The label that nodes of a sandbox set themselves."""
OS, WINDOWS_BUILD = "kubernetes.io/os", "node.kubernetes.io/windows-build"
NOT_READY = "it is not Ready"
UNWELL = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
CREDENTIAL_SPECS = Resource("windows.k8s.io/v1", "GMSACredentialSpec", "gmsacredentialspecs", namespaced=False)


class Taint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A taint of a node."""

    key: str
    effect: str
    value: str = ""

    @property
    def ours_to_tolerate(self) -> bool:
        """Taints of operators are tolerated; those of Kubernetes and the cloud say that the node is not well."""
        return not self.key.startswith(UNWELL) or self.key == "node.kubernetes.io/os"


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One node as the API describes it."""

    name: str
    uid: str
    os: str
    build: str = ""
    """Windows: ``10.0.20348``; elsewhere the kernel version."""
    kernel_build: str = ""
    """Windows: the build of the kernel version that the kubelet reports, whatever the label says."""
    os_image: str = ""
    kubelet: str = ""
    runtime: str = ""
    boot_id: str = ""
    addresses: list[str] = []
    taints: list[Taint] = []
    labels: dict[str, str] = {}
    unusable: str = ""
    """Why no pod of a run may be put here; empty when it may."""
    left_out: str = ""
    """Why the operator does not want it judged; empty when it may be."""
    contradiction: str = ""
    """What the node says of its operating system that cannot be true together; then it counts as neither."""

    @property
    def away(self) -> bool:
        """Whether nobody can use it just now, as while it reboots; what an operator decided is another matter."""
        return self.unusable.startswith((NOT_READY, "it is tainted node.kubernetes.io/"))

    @property
    def windows(self) -> bool:
        """Whether the node says it is Windows."""
        return self.os == "windows"


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster as found at the start of a run."""

    server: str
    version: str
    nodes: list[Node]
    features: dict[str, str]
    """Feature name to how it was recognised."""
    missing: dict[str, str]
    """Feature name to why it is not there."""
    uid: str = ""
    """What stays the same when a cluster's address changes: the uid of its kube-system namespace."""
    denied: list[str] = []
    """Rights that the run would use and was not given."""
    simulated: bool = False
    """Whether a node of it says that it is a simulated one: such a cluster shows nothing about a real one."""

    def usable(self, os: str) -> list[Node]:
        """The nodes of an OS that pods can be put on, by name."""
        found = (node for node in self.nodes if node.os == os and not node.unusable and not node.left_out)
        return sorted(found, key=lambda node: node.name)


def read_node(raw: dict[str, Any]) -> Node:
    """A node from its API object."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    info = status.get("nodeInfo") or {}
    labels = metadata.get("labels") or {}
    os = labels.get(OS) or info.get("operatingSystem") or "unknown"
    taints = [
        Taint(key=taint["key"], value=taint.get("value") or "", effect=taint["effect"])
        for taint in spec.get("taints") or []
    ]
    kernel = info.get("kernelVersion") or ""
    windows_build = kernel_build(kernel)
    contradiction = _contradiction(labels, info)
    return Node(
        name=metadata["name"],
        uid=metadata["uid"],
        os=os,
        build=(labels.get(WINDOWS_BUILD) or windows_build) if os == "windows" else kernel,
        kernel_build=windows_build if os == "windows" else "",
        os_image=info.get("osImage") or "",
        kubelet=info.get("kubeletVersion") or "",
        runtime=info.get("containerRuntimeVersion") or "",
        boot_id=info.get("bootID") or "",
        addresses=[a["address"] for a in status.get("addresses") or [] if a["type"] == "InternalIP"],
        taints=taints,
        labels=labels,
        unusable=contradiction or _beside(labels) or _unusable(spec, status, taints),
        contradiction=contradiction,
    )


def _contradiction(labels: dict[str, str], info: dict[str, str]) -> str:
    """The label says where pods are put, the kubelet which ones it takes: a node where they differ runs neither."""
    label, kubelet = labels.get(OS) or "", (info.get("operatingSystem") or "").lower()
    if label and kubelet and label.lower() != kubelet:
        return f"its label {OS} says {label}, its kubelet says {kubelet}; 'kubectl label' can correct it"
    image = info.get("osImage") or ""
    if kubelet == "linux" and image.lower().startswith("windows"):
        return f"its kubelet says linux and reports the system '{image}'"
    return ""


def _beside(labels: dict[str, str]) -> str:
    return "it is the host node of a sandbox, beside the simulated network" if HOST_NODE in labels else ""


def _unusable(spec: dict[str, Any], status: dict[str, Any], taints: list[Taint]) -> str:
    conditions = {item["type"]: item for item in status.get("conditions") or []}
    ready = conditions.get("Ready") or {}
    if ready.get("status") != "True":
        return f"{NOT_READY} ({ready.get('reason') or 'no Ready condition'})"
    if (conditions.get("NetworkUnavailable") or {}).get("status") == "True":
        return "its network is not available"
    if spec.get("unschedulable"):
        return "it is cordoned"
    unwell = [taint for taint in taints if not taint.ours_to_tolerate and taint.effect in ("NoSchedule", "NoExecute")]
    return f"it is tainted {unwell[0].key}" if unwell else ""


def _release(version: dict[str, str]) -> str:
    """The API server's own version, without which nothing can be judged."""
    told = str(version.get("gitVersion") or "")
    try:
        Version.parse(told)
    except ValueError:
        said = f"tells {told[:60]!r}" if told else "tells no gitVersion"
        raise ClusterError(
            f"the API server does not say which Kubernetes it is: /version {said}",
            "look at it with 'kubectl version'; is this address that of an API server?",
        ) from None
    return told


async def take_inventory(client: Client, *, node_selector: dict[str, str] | None = None) -> Inventory:
    """Ask the cluster what it is made of."""
    version = await client.version()
    labels = ",".join(f"{key}={value}" for key, value in (node_selector or {}).items())
    selected = {raw["metadata"]["name"] for raw in await client.list(NODES, labels=labels)} if labels else None
    raw_nodes = await client.list(NODES)
    nodes = sorted((read_node(raw) for raw in raw_nodes), key=lambda node: node.name)
    if selected is not None:
        # The operator narrows down the Windows side; Linux peers stay what they are.
        why = f"it is not chosen by --node-selector {labels}"
        nodes = [
            msgspec.structs.replace(node, left_out=why) if node.windows and node.name not in selected else node
            for node in nodes
        ]
    features: dict[str, str] = {}
    missing: dict[str, str] = {}
    for name, found, reason in (
        ("hostprocess", *_host_process(nodes)),
        ("dual-stack", *_dual_stack(raw_nodes)),
        ("network-policy", *await _policy_engine(client, raw_nodes)),
        ("gmsa", *await _credential_specs(client)),
    ):
        (features if found else missing)[name] = reason
    return Inventory(
        server=client.transport.target.server,
        version=_release(version),
        nodes=nodes,
        features=features,
        missing=missing,
        uid=await _identity(client),
        simulated=any(SIMULATED in node.labels for node in nodes),
    )


def is_simulated(inventory: Inventory) -> bool:
    """Whether the cluster is a sandbox; a record that denies it is not believed against its own nodes."""
    return inventory.simulated or any(SIMULATED in node.labels for node in inventory.nodes)


async def _identity(client: Client) -> str:
    try:
        namespace = await client.get(NAMESPACES, "kube-system")
    except (Forbidden, NotFound):
        return ""
    return str(namespace["metadata"]["uid"])


def _host_process(nodes: list[Node]) -> tuple[bool, str]:
    for node in nodes:
        if not node.windows or node.left_out:
            continue
        match = re.fullmatch(r"containerd://v?(\d{1,9})\.(\d{1,9})(?!\d).*", node.runtime)
        if match is None or (int(match[1]), int(match[2])) < (1, 6):
            return False, f"node {node.name} runs {node.runtime or 'an unknown runtime'}; containerd 1.6 is needed"
    return True, "every Windows node runs containerd 1.6 or newer"


def _dual_stack(raw_nodes: list[dict[str, Any]]) -> tuple[bool, str]:
    """What one node of a system has, pods elsewhere should have, too: only where none has it, it is not offered."""
    for os in ("windows", "linux"):
        nodes = [raw for raw in raw_nodes if read_node(raw).os == os]
        ranges = [{":" in cidr for cidr in (raw.get("spec") or {}).get("podCIDRs") or []} for raw in nodes]
        # Where nodes have no range of their own, as with many cloud networks, only pods can tell.
        if ranges and all(ranges) and not any(len(families) == 2 for families in ranges):
            names = ", ".join(raw["metadata"]["name"] for raw in nodes[:3]) + (" ..." if len(nodes) > 3 else "")
            return False, (
                f"{os.capitalize()} nodes have pod addresses of one IP family only ({names}); it can be judged once "
                f"nodes have pod CIDRs and the API server has a service range of each family"
            )
    return bool(raw_nodes), "nodes of both systems may have pod addresses of both families"


async def _policy_engine(client: Client, raw_nodes: list[dict[str, Any]]) -> tuple[bool, str]:
    unseen = ""
    try:
        names = {item["metadata"]["name"] for item in await client.list(DAEMON_SETS)}
    except Forbidden as error:
        names, unseen = set(), f"{UNKNOWN_ENGINE}: DaemonSets cannot be listed: {error.message}"
    for name, engine in POLICY_ENGINES.items():
        if name in names:
            return True, f"{engine} (DaemonSet {name})"
    windows = [raw for raw in raw_nodes if read_node(raw).windows]
    for mark, engine in ENGINE_MARKS.items():
        if any(_annotated(raw, mark) for raw in windows):
            return True, f"{engine} (annotations {mark}* of Windows nodes)"
    if unseen:
        # Not seeing whether there is one is not the same as seeing that there is none.
        return True, unseen
    return False, (
        f"no policy engine with Windows support was recognised (DaemonSet {', '.join(POLICY_ENGINES)}, or annotations "
        f"of Calico or Antrea on Windows nodes)"
    )


def _annotated(raw: dict[str, Any], mark: str) -> bool:
    return any(key.startswith(mark) for key in raw["metadata"].get("annotations") or {})


async def _credential_specs(client: Client) -> tuple[bool, str]:
    try:
        specs = await client.list(CREDENTIAL_SPECS)
    except Forbidden as error:
        return True, f"unknown: credential specs cannot be listed: {error.message}"
    except NotFound:
        return False, "the cluster has no gMSA credential specs (windows.k8s.io)"
    if not specs:
        return False, "no gMSA credential spec object exists"
    return True, f"credential spec {specs[0]['metadata']['name']}"

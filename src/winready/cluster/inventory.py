"""What there is to judge: nodes by OS and build, versions, runtimes, taints, features."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from winready.cluster.client import Client
from winready.cluster.errors import ApiError
from winready.cluster.resources import DAEMON_SETS, NAMESPACES, NODES, Resource
from winready.spec.windows import kernel_build

POLICY_ENGINES = {
    "calico-node-windows": "Calico",
    "antrea-agent-windows": "Antrea",
    "azure-npm-win": "Azure NPM",
}
CREDENTIAL_SPECS = Resource("windows.k8s.io/v1", "GMSACredentialSpec", "gmsacredentialspecs", namespaced=False)


class Taint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A taint of a node."""

    key: str
    effect: str
    value: str = ""

    @property
    def ours_to_tolerate(self) -> bool:
        """Taints of operators are tolerated; those of Kubernetes itself say that the node is not well."""
        return not self.key.startswith("node.kubernetes.io/") or self.key == "node.kubernetes.io/os"


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One node as the API describes it."""

    name: str
    uid: str
    os: str
    build: str = ""
    """Windows: ``10.0.20348``; elsewhere the kernel version."""
    os_image: str = ""
    kubelet: str = ""
    runtime: str = ""
    boot_id: str = ""
    addresses: list[str] = []
    taints: list[Taint] = []
    labels: dict[str, str] = {}
    unusable: str = ""
    """Why no pod of a run may be put here; empty when it may."""

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

    def usable(self, os: str) -> list[Node]:
        """The nodes of an OS that pods can be put on, by name."""
        return sorted((n for n in self.nodes if n.os == os and not n.unusable), key=lambda node: node.name)


def read_node(raw: dict[str, Any]) -> Node:
    """A node from its API object."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    info = status.get("nodeInfo") or {}
    labels = metadata.get("labels") or {}
    os = labels.get("kubernetes.io/os") or info.get("operatingSystem") or "unknown"
    taints = [
        Taint(key=taint["key"], value=taint.get("value") or "", effect=taint["effect"])
        for taint in spec.get("taints") or []
    ]
    kernel = info.get("kernelVersion") or ""
    build = labels.get("node.kubernetes.io/windows-build") or kernel_build(kernel)
    return Node(
        name=metadata["name"],
        uid=metadata["uid"],
        os=os,
        build=build if os == "windows" else kernel,
        os_image=info.get("osImage") or "",
        kubelet=info.get("kubeletVersion") or "",
        runtime=info.get("containerRuntimeVersion") or "",
        boot_id=info.get("bootID") or "",
        addresses=[a["address"] for a in status.get("addresses") or [] if a["type"] == "InternalIP"],
        taints=taints,
        labels=labels,
        unusable=_unusable(spec, status, taints),
    )


def _unusable(spec: dict[str, Any], status: dict[str, Any], taints: list[Taint]) -> str:
    conditions = {item["type"]: item for item in status.get("conditions") or []}
    ready = conditions.get("Ready") or {}
    if ready.get("status") != "True":
        return f"it is not Ready ({ready.get('reason') or 'no Ready condition'})"
    if (conditions.get("NetworkUnavailable") or {}).get("status") == "True":
        return "its network is not available"
    if spec.get("unschedulable"):
        return "it is cordoned"
    unwell = [taint for taint in taints if not taint.ours_to_tolerate and taint.effect in ("NoSchedule", "NoExecute")]
    return f"it is tainted {unwell[0].key}" if unwell else ""


async def take_inventory(client: Client, *, node_selector: dict[str, str] | None = None) -> Inventory:
    """Ask the cluster what it is made of."""
    version = await client.version()
    labels = ",".join(f"{key}={value}" for key, value in (node_selector or {}).items())
    selected = {raw["metadata"]["name"] for raw in await client.list(NODES, labels=labels)} if labels else None
    raw_nodes = await client.list(NODES)
    nodes = sorted((read_node(raw) for raw in raw_nodes), key=lambda node: node.name)
    if selected is not None:
        # The operator narrows down the Windows side; Linux peers stay what they are.
        nodes = [node for node in nodes if not node.windows or node.name in selected]
    features: dict[str, str] = {}
    missing: dict[str, str] = {}
    for name, found, reason in (
        ("hostprocess", *_host_process(nodes)),
        ("dual-stack", *_dual_stack(raw_nodes)),
        ("network-policy", *await _policy_engine(client)),
        ("gmsa", *await _credential_specs(client)),
    ):
        (features if found else missing)[name] = reason
    return Inventory(
        server=client.transport.target.server,
        version=version.get("gitVersion") or "unknown",
        nodes=nodes,
        features=features,
        missing=missing,
        uid=await _identity(client),
    )


async def _identity(client: Client) -> str:
    try:
        namespace = await client.get(NAMESPACES, "kube-system")
    except ApiError:
        return ""
    return str(namespace["metadata"]["uid"])


def _host_process(nodes: list[Node]) -> tuple[bool, str]:
    for node in nodes:
        if not node.windows:
            continue
        match = re.fullmatch(r"containerd://v?(\d+)\.(\d+).*", node.runtime)
        if match is None or (int(match[1]), int(match[2])) < (1, 6):
            return False, f"node {node.name} runs {node.runtime or 'an unknown runtime'}; containerd 1.6 is needed"
    return True, "every Windows node runs containerd 1.6 or newer"


def _dual_stack(raw_nodes: list[dict[str, Any]]) -> tuple[bool, str]:
    for raw in raw_nodes:
        cidrs = (raw.get("spec") or {}).get("podCIDRs") or []
        if len({":" in cidr for cidr in cidrs}) < 2:
            return False, f"node {raw['metadata']['name']} has pod addresses of one family only"
    return bool(raw_nodes), "every node has pod addresses of both families"


async def _policy_engine(client: Client) -> tuple[bool, str]:
    try:
        names = {item["metadata"]["name"] for item in await client.list(DAEMON_SETS)}
    except ApiError as error:
        return False, f"DaemonSets cannot be listed: {error.message}"
    for name, engine in POLICY_ENGINES.items():
        if name in names:
            return True, f"{engine} (DaemonSet {name})"
    return False, "no policy engine with Windows support was recognised"


async def _credential_specs(client: Client) -> tuple[bool, str]:
    try:
        specs = await client.list(CREDENTIAL_SPECS)
    except ApiError:
        return False, "the cluster has no gMSA credential specs (windows.k8s.io)"
    if not specs:
        return False, "no gMSA credential spec object exists"
    return True, f"credential spec {specs[0]['metadata']['name']}"

"""``node.json``: everything that the scripts on a Windows machine and the add-ons of the cluster are told, typed."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any, Literal

import msgspec

SCHEMA = "winready-node/1"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
REGISTRY = "registry.k8s.io"
HOST_PROCESS_REGISTRY = "mcr.microsoft.com"
HOST_PROCESS_IMAGE = "oss/kubernetes/windows-host-process-containers-base-image:v1.0.0"
PAUSE_IMAGE = "pause:3.10.2"
VXLAN_PORT = 4789
VXLAN_VNI = 4096
"""The host networking service takes no smaller identifier and no other port."""

Cni = Literal["flannel", "none"]
Mode = Literal["overlay", "l2bridge"]


class ParametersError(Exception):
    """Something that was asked for cannot be; ``remedy`` says what to do about it."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class Endpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the API server is reached from outside the service network."""

    host: str
    port: int = 6443

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Network(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pods, services, names, and how packets get from node to node."""

    cni: Cni = "flannel"
    mode: Mode = "overlay"
    pod_cidrs: list[str]
    service_cidrs: list[str]
    dns_servers: list[str]
    dns_domain: str = "cluster.local"
    vni: int = VXLAN_VNI
    vxlan_port: int = VXLAN_PORT
    interface: str = ""
    """Adapter by its name; empty: the one with the default route."""
    name: str = "flannel.4096"
    """Name of the network in the host networking service, which kube-proxy waits for."""


class Images(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """By full name, the registry included."""

    pause: str
    host_process: str


class RegistryMirror(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where containerd asks first for the images of a registry; the registry itself stays the second choice."""

    host: str
    """The registry as images name it, such as ``docker.io`` or ``registry.example.com:5000``."""
    endpoint: str
    """URL of the mirror."""


class Containerd(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The container runtime."""

    version: str = ""
    """Version to install; empty: the machine brings its own."""
    mirrors: list[RegistryMirror] = []
    """Each becomes ``certs.d\\<host>\\hosts.toml``; only for a containerd that is installed by the bundle."""


class Proxy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """As the usual environment variables say it; empty: none."""

    http: str = ""
    https: str = ""
    no_proxy: list[str] = []


class Paths(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Folders on the Windows machine."""

    binaries: str = r"C:\k"
    kubelet: str = r"C:\var\lib\kubelet"
    logs: str = r"C:\var\log\kubelet"
    kubernetes: str = r"C:\etc\kubernetes"
    cni_binaries: str = r"C:\opt\cni\bin"
    cni_configuration: str = r"C:\etc\cni\net.d"
    containerd: str = r"C:\Program Files\containerd"
    containerd_data: str = r"C:\ProgramData\containerd"
    state: str = r"C:\ProgramData\winready"
    """Record of what was there before, logs, and the copy of the bundle that resumes after a reboot."""


class Member(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file out of an archive; ``target`` is where it goes."""

    path: str
    target: str


class File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that the machine needs: fetched from ``url``, or taken from ``files/`` of the bundle if it is there."""

    name: str
    url: str
    sha256: str
    target: str = ""
    """Of a single file; empty for archives."""
    members: list[Member] = []
    """Of an archive: what is taken out of it, and nothing else."""

    @property
    def file_name(self) -> str:
        """The name under which a bundle carries it."""
        return f"{self.name}-{PurePosixPath(self.url).name}" if self.members else f"{self.name}.exe"


class Kubelet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the kubelet is started; which flags there are depends on its version."""

    flags: list[str]
    """One argument each. ``{node}`` stands for the machine's node name."""
    removed_flags: list[str] = []
    """Names of flags that this version no longer knows: dropped from what an older kubeadm wrote."""
    labels: dict[str, str] = {}
    taints: list[str] = []


class Parameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of ``node.json``."""

    schema: Literal["winready-node/1"] = "winready-node/1"
    kubernetes: str
    """Release for the machine, such as ``1.36.3``."""
    server: str
    """Release of the API server; the same when nobody asked a cluster."""
    architecture: Literal["amd64"] = "amd64"
    containerd: Containerd = Containerd()
    endpoint: Endpoint
    network: Network
    registry: str = REGISTRY
    images: Images
    proxy: Proxy = Proxy()
    paths: Paths = Paths()
    kubelet: Kubelet
    join_api: str = "kubeadm.k8s.io/v1beta4"
    """Version of kubeadm's configuration."""
    hyperv: bool = False
    defender_exclusions: bool = True
    minimum_build: int = 20348
    files: list[File] = []


def decode(text: bytes | str, where: str = "node.json") -> Parameters:
    """Read ``node.json``; every mistake is said with its place."""
    try:
        return msgspec.json.decode(text, type=Parameters)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ParametersError(
            f"{where} is not what 'winready node bundle' writes: {error}", "make the bundle anew"
        ) from None


def encode(parameters: Parameters) -> bytes:
    """``node.json`` as it is written: the same parameters give the same bytes."""
    return msgspec.json.format(msgspec.json.encode(parameters), indent=2) + b"\n"


def json_schema() -> dict[str, Any]:
    """The published schema, made from these types."""
    schema: dict[str, Any] = msgspec.json.schema(Parameters)
    head = schema["$defs"]["Parameters"]
    # What is written names everything; readers may be stricter than our own decoder.
    for definition in schema["$defs"].values():
        definition["required"] = list(definition["properties"])
    head["properties"]["schema"] = {"const": SCHEMA}
    return {"$schema": DIALECT, "$id": "urn:winready-node:1", "title": "winready node.json", **schema}

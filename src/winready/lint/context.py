"""What a lint run knows beyond the manifest at hand.

A ``Profile`` describes the cluster that manifests are meant for: it comes from flags and the configuration file, and
can as well be filled from a cluster; what only a cluster can say is its ``Has``. ``Facts`` are what other documents of
the same run tell: classes, volumes and namespaces, read before anything is judged. ``Scope`` collects what the Windows
workloads of one folder need from their Services, policies and claims.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from winready.lint.objects import Object, Pod, dig, items, mapping, selects
from winready.lint.versions import CURRENT, Range

OS_LABELS = ("kubernetes.io/os", "beta.kubernetes.io/os")
BUILD_LABEL = "node.kubernetes.io/windows-build"
ENFORCING_PLUGINS = frozenset({"calico", "antrea", "azure-npm"})


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of the Windows nodes."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"

    @classmethod
    def parse(cls, text: str) -> Taint:
        """``KEY[=VALUE][:EFFECT]``, as kubectl taint takes it."""
        pair, _, effect = text.partition(":")
        key, _, value = pair.partition("=")
        if not key or effect not in ("", "NoSchedule", "NoExecute", "PreferNoSchedule"):
            raise ValueError(f"{text!r} is not a taint; write KEY=VALUE:NoSchedule")
        return cls(key, value, effect or "NoSchedule")

    def tolerated_by(self, toleration: Any) -> bool:
        """As the scheduler decides it."""
        key, value, effect = (dig(toleration, name) or "" for name in ("key", "value", "effect"))
        if effect not in ("", self.effect):
            return False
        if dig(toleration, "operator") == "Exists":
            return key in ("", self.key)
        return key == self.key and str(value) == self.value

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, slots=True)
class WindowsNode:
    """A Windows node, as far as the scheduler looks at it."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    allocatable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StorageClass:
    """What makes the volumes of a class, and whether claims that name none get it."""

    provisioner: str
    default: bool = False

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> StorageClass:
        """As its object says it."""
        default = mapping(value, "metadata", "annotations").get("storageclass.kubernetes.io/is-default-class")
        return cls(str(value.get("provisioner")), default == "true")


@dataclass(frozen=True, slots=True)
class Has:
    """What a cluster that was asked has; None, False and nothing where it did not say."""

    nodes: tuple[WindowsNode, ...] = ()
    runtime_classes: bool = False
    """Whether those of the profile are all there are."""
    priority_classes: frozenset[str] | None = None
    storage_classes: Mapping[str, StorageClass] | None = None
    volume_classes: frozenset[str] | None = None
    """The classes that its volumes name; claims find those without the class itself."""
    credential_specs: frozenset[str] | None = None
    drivers_elsewhere: frozenset[str] = frozenset()
    """CSI drivers that other nodes have and no Windows node."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The cluster that the manifests are for."""

    versions: Range = field(default_factory=lambda: Range(CURRENT, CURRENT))
    windows_nodes: bool = False
    builds: tuple[int, ...] = ()
    taints: tuple[Taint, ...] = ()
    cni: str = ""
    namespace: str = ""
    runtime_classes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    has: Has = field(default_factory=Has)

    @property
    def has_windows_nodes(self) -> bool:
        """Said outright, or clear from what is known about them."""
        return self.windows_nodes or bool(self.builds) or bool(self.taints)


@dataclass(slots=True)
class Facts:
    """What the documents of a run, or the cluster, say about classes and namespaces."""

    profile: Profile
    runtime_classes: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    namespaces: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    priority_classes: set[str] = field(default_factory=set)
    classes: dict[str, StorageClass] = field(default_factory=dict)
    volume_classes: set[str] = field(default_factory=set)
    credential_specs: set[str] = field(default_factory=set)
    # What Windows workloads use: namespaces of declared pods, storage classes ("" is the default), volumes.
    declared_namespaces: set[str] = field(default_factory=set)
    storage_classes: set[str] = field(default_factory=set)
    volumes: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.runtime_classes.update(self.profile.runtime_classes)
        self.namespaces.update(self.profile.namespaces)

    def learn(self, object: Object) -> None:
        """Remember what other objects may refer to."""
        if object.kind == "RuntimeClass":
            self.runtime_classes[object.name] = object.value
        elif object.kind == "Namespace":
            self.namespaces[object.name] = mapping(object.value, "metadata", "labels")
        elif object.kind == "PriorityClass":
            self.priority_classes.add(object.name)
        elif object.kind == "GMSACredentialSpec":
            self.credential_specs.add(object.name)
        elif object.kind == "StorageClass":
            self.classes[object.name] = StorageClass.of(object.value)
        elif object.kind == "PersistentVolume":
            self.volume_classes.add(str(dig(object.value, "spec", "storageClassName") or ""))

    def runtime_class(self, pod: Pod) -> Mapping[str, Any]:
        """The RuntimeClass of a pod as far as it is known."""
        return self.runtime_classes.get(str(pod.spec.get("runtimeClassName")), {})

    def level(self, namespace: str) -> str:
        """The Pod Security level that a namespace enforces, or nothing."""
        return str(self.namespaces.get(namespace, {}).get("pod-security.kubernetes.io/enforce", ""))


@dataclass(frozen=True, slots=True)
class Backend:
    """What Services and policies need to know of a Windows workload."""

    namespace: str
    kind: str
    name: str
    labels: Mapping[str, Any]
    replicas: int
    ports: tuple[tuple[str, str], ...]
    host_process: bool


@dataclass(slots=True)
class Scope:
    """The Windows workloads of one folder, and the objects that wait for them."""

    # By namespace, and by namespace and label, so that a large folder needs no search through all its workloads.
    backends: dict[tuple[str, ...], list[Backend]] = field(default_factory=dict)
    claims: set[tuple[str, str]] = field(default_factory=set)
    waiting: list[Object] = field(default_factory=list)
    answers: dict[tuple[str, str], list[Backend]] = field(default_factory=dict)

    def add(self, pod: Pod) -> None:
        """Remember a Windows workload."""
        ports = {
            (str(port["name"]), str(port.get("containerPort")))
            for container in pod.containers
            for port in items(container.value, "ports")
            if isinstance(port, dict) and port.get("name")
        }
        replicas = dig(pod.object.value, "spec", "replicas")
        backend = Backend(
            pod.object.namespace,
            pod.object.kind,
            pod.object.name,
            dict(pod.labels),
            replicas if isinstance(replicas, int) else 1,
            tuple(sorted(ports)),
            pod.host_process,
        )
        self.backends.setdefault((backend.namespace,), []).append(backend)
        for key, value in backend.labels.items():
            self.backends.setdefault((backend.namespace, key, str(value)), []).append(backend)
        for volume in items(pod.spec, "volumes"):
            if claim := dig(volume, "persistentVolumeClaim", "claimName"):
                self.claims.add((pod.object.namespace, str(claim)))

    def selected(self, namespace: str, selector: Any) -> list[Backend]:
        """The workloads of a namespace that a label selector takes; equal questions are answered once."""
        question = (namespace, repr(selector))
        if question not in self.answers:
            self.answers[question] = self._select(namespace, selector)
        return self.answers[question]

    def _select(self, namespace: str, selector: Any) -> list[Backend]:
        labels = mapping(selector, "matchLabels")
        first = next(iter(labels.items()), None)
        near = self.backends.get((namespace, first[0], str(first[1])) if first else (namespace,), [])
        return [one for one in near if selects(selector, one.labels)]

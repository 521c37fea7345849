"""The table of kinds: what the embedded API serves is data, so that one generic path serves all of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from winready_sandbox.versions import DEFAULT_MINOR, NEWEST_MINOR, OLDEST_MINOR

CRUD = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
READ_WRITE = ("get", "patch", "update")

Spread = Literal["", "spec", "all"]


@dataclass(frozen=True)
class Subresource:
    """One path below an object: its verbs and, where it is another kind, which."""

    name: str
    verbs: tuple[str, ...] = READ_WRITE
    group: str = ""
    version: str = ""
    kind: str = ""
    since: int = OLDEST_MINOR


STATUS = Subresource("status")
SCALE = Subresource("scale", READ_WRITE, "autoscaling", "v1", "Scale")
PROXY = Subresource("proxy", ("create", "delete", "get", "patch", "update"))


@dataclass(frozen=True)
class Resource:
    """One served kind in one version."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = CRUD
    subresources: tuple[Subresource, ...] = ()
    singular: str = ""
    generation: Spread = ""
    """Which changes raise metadata.generation: none, those of spec, or everything but metadata and status."""
    generation_since: int = OLDEST_MINOR
    since: int = OLDEST_MINOR
    unconditional_update: bool = True
    custom: bool = False
    alias: bool = False
    """Whether objects of this kind are stored in another version, and only shown in this one."""
    columns: tuple[dict[str, Any], ...] = field(default=(), compare=False)
    """Printer columns of a custom resource."""

    @property
    def api_version(self) -> str:
        """``v1``, ``apps/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def storage(self) -> tuple[str, str]:
        """Which bucket holds the objects: events have one, whichever API they came through."""
        return ("", "events") if self.plural == "events" else (self.group, self.plural)

    @property
    def qualified(self) -> str:
        """``pods``, ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def virtual(self) -> bool:
        """Whether nothing is stored: reviews and bindings are answered, not kept."""
        return "get" not in self.verbs

    def subresource(self, name: str) -> Subresource | None:
        """The subresource of that name, if this kind has it."""
        return next((each for each in self.subresources if each.name == name), None)


def _core() -> Iterator[Resource]:
    pod_paths = (
        Subresource("attach", ("create", "get")),
        Subresource("binding", ("create",), "", "v1", "Binding"),
        Subresource("ephemeralcontainers"),
        Subresource("eviction", ("create",), "policy", "v1", "Eviction"),
        Subresource("exec", ("create", "get")),
        Subresource("log", ("get",)),
        Subresource("portforward", ("create", "get")),
        PROXY,
        Subresource("resize", since=33),
        STATUS,
    )
    token = Subresource("token", ("create",), "authentication.k8s.io", "v1", "TokenRequest")
    finalize = Subresource("finalize", ("update",))
    everything = ("all",)
    yield Resource("", "v1", "Binding", "bindings", verbs=("create",))
    yield Resource("", "v1", "ConfigMap", "configmaps", short_names=("cm",))
    yield Resource("", "v1", "Endpoints", "endpoints", singular="endpoints", short_names=("ep",))
    yield Resource("", "v1", "Event", "events", short_names=("ev",))
    yield Resource("", "v1", "LimitRange", "limitranges", short_names=("limits",))
    yield Resource(
        "",
        "v1",
        "Namespace",
        "namespaces",
        namespaced=False,
        short_names=("ns",),
        subresources=(finalize, STATUS),
        verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    )
    yield Resource("", "v1", "Node", "nodes", namespaced=False, short_names=("no",), subresources=(PROXY, STATUS))
    yield Resource(
        "", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", short_names=("pvc",), subresources=(STATUS,)
    )
    yield Resource(
        "",
        "v1",
        "PersistentVolume",
        "persistentvolumes",
        namespaced=False,
        short_names=("pv",),
        subresources=(STATUS,),
    )
    yield Resource(
        "",
        "v1",
        "Pod",
        "pods",
        short_names=("po",),
        categories=everything,
        subresources=pod_paths,
        generation="spec",
        generation_since=33,
    )
    yield Resource("", "v1", "PodTemplate", "podtemplates")
    yield Resource(
        "",
        "v1",
        "ReplicationController",
        "replicationcontrollers",
        short_names=("rc",),
        categories=everything,
        subresources=(SCALE, STATUS),
        generation="spec",
    )
    yield Resource("", "v1", "ResourceQuota", "resourcequotas", short_names=("quota",), subresources=(STATUS,))
    yield Resource("", "v1", "Secret", "secrets")
    yield Resource("", "v1", "ServiceAccount", "serviceaccounts", short_names=("sa",), subresources=(token,))
    yield Resource(
        "", "v1", "Service", "services", short_names=("svc",), categories=everything, subresources=(PROXY, STATUS)
    )


def _workloads() -> Iterator[Resource]:
    everything = ("all",)
    scaled = (SCALE, STATUS)

    def apps(kind: str, plural: str, short: tuple[str, ...] = (), paths: tuple[Subresource, ...] = scaled) -> Resource:
        return Resource(
            "apps",
            "v1",
            kind,
            plural,
            short_names=short,
            categories=everything,
            subresources=paths,
            generation="spec",
        )

    yield Resource("apps", "v1", "ControllerRevision", "controllerrevisions")
    yield apps("DaemonSet", "daemonsets", ("ds",), (STATUS,))
    yield apps("Deployment", "deployments", ("deploy",))
    yield apps("ReplicaSet", "replicasets", ("rs",))
    yield apps("StatefulSet", "statefulsets", ("sts",))
    yield Resource(
        "batch",
        "v1",
        "CronJob",
        "cronjobs",
        short_names=("cj",),
        categories=everything,
        subresources=(STATUS,),
        generation="spec",
    )
    yield Resource("batch", "v1", "Job", "jobs", categories=everything, subresources=(STATUS,), generation="spec")
    for version in ("v2", "v1"):
        yield Resource(
            "autoscaling",
            version,
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
            short_names=("hpa",),
            categories=everything,
            subresources=(STATUS,),
            alias=version == "v1",
        )
    yield Resource(
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        short_names=("pdb",),
        subresources=(STATUS,),
        generation="spec",
    )


def _reviews() -> Iterator[Resource]:
    def review(group: str, kind: str, namespaced: bool = False, since: int = OLDEST_MINOR) -> Resource:
        return Resource(group, "v1", kind, kind.lower() + "s", namespaced, verbs=("create",), since=since)

    yield review("authentication.k8s.io", "TokenReview")
    yield review("authentication.k8s.io", "SelfSubjectReview", since=28)
    yield review("authorization.k8s.io", "LocalSubjectAccessReview", namespaced=True)
    yield review("authorization.k8s.io", "SelfSubjectAccessReview")
    yield review("authorization.k8s.io", "SelfSubjectRulesReview")
    yield review("authorization.k8s.io", "SubjectAccessReview")


def _cluster() -> Iterator[Resource]:
    rbac, storage, admission = "rbac.authorization.k8s.io", "storage.k8s.io", "admissionregistration.k8s.io"
    yield Resource(rbac, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
    yield Resource(rbac, "v1", "ClusterRole", "clusterroles", namespaced=False)
    yield Resource(rbac, "v1", "RoleBinding", "rolebindings")
    yield Resource(rbac, "v1", "Role", "roles")
    yield Resource("coordination.k8s.io", "v1", "Lease", "leases", unconditional_update=False)
    yield Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", generation="all")
    yield Resource("events.k8s.io", "v1", "Event", "events", short_names=("ev",))
    yield Resource("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", namespaced=False, unconditional_update=False)
    yield Resource(
        "scheduling.k8s.io",
        "v1",
        "PriorityClass",
        "priorityclasses",
        namespaced=False,
        short_names=("pc",),
        generation="all",
    )
    yield Resource("networking.k8s.io", "v1", "IngressClass", "ingressclasses", namespaced=False, generation="spec")
    yield Resource(
        "networking.k8s.io",
        "v1",
        "Ingress",
        "ingresses",
        short_names=("ing",),
        subresources=(STATUS,),
        generation="spec",
    )
    yield Resource(
        "networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", short_names=("netpol",), generation="spec"
    )
    yield Resource(storage, "v1", "CSIDriver", "csidrivers", namespaced=False)
    yield Resource(storage, "v1", "CSINode", "csinodes", namespaced=False)
    yield Resource(storage, "v1", "CSIStorageCapacity", "csistoragecapacities", since=24)
    yield Resource(storage, "v1", "StorageClass", "storageclasses", namespaced=False, short_names=("sc",))
    yield Resource(storage, "v1", "VolumeAttachment", "volumeattachments", namespaced=False, subresources=(STATUS,))
    yield Resource(
        "certificates.k8s.io",
        "v1",
        "CertificateSigningRequest",
        "certificatesigningrequests",
        namespaced=False,
        short_names=("csr",),
        subresources=(Subresource("approval"), STATUS),
    )
    for kind, since, paths in (
        ("MutatingAdmissionPolicy", 36, ()),
        ("MutatingAdmissionPolicyBinding", 36, ()),
        ("MutatingWebhookConfiguration", OLDEST_MINOR, ()),
        ("ValidatingAdmissionPolicy", 30, (STATUS,)),
        ("ValidatingAdmissionPolicyBinding", 30, ()),
        ("ValidatingWebhookConfiguration", OLDEST_MINOR, ()),
    ):
        plural = kind.lower().removesuffix("y") + ("ies" if kind.endswith("y") else "s")
        yield Resource(
            admission, "v1", kind, plural, False, categories=("api-extensions",), generation="all", since=since,
            subresources=paths,
        )  # fmt: skip
    yield Resource(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        namespaced=False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        subresources=(STATUS,),
        generation="spec",
    )


class ResourceTable:
    """Every kind that is served now; custom resource definitions add theirs and take them away."""

    def __init__(self, minor: int = DEFAULT_MINOR) -> None:
        if not OLDEST_MINOR <= minor <= NEWEST_MINOR:
            raise ValueError(f"Kubernetes 1.{minor} is not one of 1.{OLDEST_MINOR} to 1.{NEWEST_MINOR}")
        self.minor = minor
        self._by_path: dict[tuple[str, str, str], Resource] = {}
        self._by_kind: dict[tuple[str, str], Resource] = {}
        self._by_name: dict[str, Resource] = {}
        self.changes = 0
        for source in (_core, _workloads, _reviews, _cluster):
            for resource in source():
                if resource.since <= minor:
                    paths = tuple(each for each in resource.subresources if each.since <= minor)
                    generation = resource.generation if resource.generation_since <= minor else ""
                    self.add(replace(resource, subresources=paths, generation=generation))

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._by_path.values())

    def add(self, resource: Resource) -> None:
        """Serve a kind from now on; what has the same path is replaced."""
        self._by_path[resource.group, resource.version, resource.plural] = resource
        self._by_kind[resource.api_version, resource.kind] = resource
        if not resource.alias:
            self._by_name[resource.qualified] = resource
            self._by_name.setdefault(resource.plural, resource)
        self.changes += 1

    def remove(self, resource: Resource) -> None:
        """Stop serving a kind."""
        self._by_path.pop((resource.group, resource.version, resource.plural), None)
        self._by_kind.pop((resource.api_version, resource.kind), None)
        for name in (resource.qualified, resource.plural):
            if self._by_name.get(name) == resource:
                del self._by_name[name]
        self.changes += 1

    def find(self, name: str) -> Resource:
        """By ``plural`` or ``plural.group``; what a program names must be there."""
        return self._by_name[name]

    def by_kind(self, api_version: str, kind: str) -> Resource | None:
        """By what objects say of themselves."""
        return self._by_kind.get((api_version, kind))

    def by_path(self, group: str, version: str, plural: str) -> Resource | None:
        """By what a URL says."""
        return self._by_path.get((group, version, plural))

    def groups(self) -> dict[str, list[str]]:
        """Each group with its versions, the core group first."""
        groups: dict[str, list[str]] = {}
        for resource in self:
            versions = groups.setdefault(resource.group, [])
            if resource.version not in versions:
                versions.append(resource.version)
        return groups

    def serves(self, group: str, version: str) -> bool:
        """Whether there is any kind of that group and version."""
        return any(key[0] == group and key[1] == version for key in self._by_path)

    def of(self, group: str, version: str) -> list[Resource]:
        """The kinds of one group and version, by name."""
        return sorted((r for r in self if (r.group, r.version) == (group, version)), key=lambda r: r.plural)

"""Kinds that describe the cluster itself: slices, leases, roles, storage, policies."""

from __future__ import annotations

from typing import Any

from winready_sandbox.api.objects import Object
from winready_sandbox.api.tables.columns import NONE, Layout, age, columns, joined, name_of, part, selector_cell

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def _slice(obj: Object) -> list[Any]:
    ports = [str(port["port"]) if port.get("port") else "*" for port in obj.get("ports") or []]
    addresses = [address for each in obj.get("endpoints") or [] for address in each.get("addresses") or []]
    return [name_of(obj), obj.get("addressType", ""), _few(ports, "<unset>"), _few(addresses, "<unset>"), age(obj)]


def _few(items: list[str], empty: str) -> str:
    more = f" + {len(items) - 3} more..." if len(items) > 3 else ""
    return ",".join(items[:3]) + more or empty


def _binding(obj: Object) -> list[Any]:
    role = obj.get("roleRef") or {}
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in obj.get("subjects") or []:
        name = subject.get("name", "")
        if subject.get("kind") == "ServiceAccount":
            name = f"{subject.get('namespace', '')}/{name}"
        subjects.setdefault(subject.get("kind", ""), []).append(name)
    listed = [", ".join(subjects[kind]) for kind in ("User", "Group", "ServiceAccount")]
    return [name_of(obj), f"{role.get('kind', '')}/{role.get('name', '')}", age(obj), *listed]


def _storage_class(obj: Object) -> list[Any]:
    default = (obj["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true"
    return [
        name_of(obj) + (" (default)" if default else ""),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        bool(obj.get("allowVolumeExpansion")),
        age(obj),
    ]


def _driver(obj: Object) -> list[Any]:
    spec = obj.get("spec") or {}
    return [
        name_of(obj),
        bool(spec.get("attachRequired", True)),
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        joined((each.get("audience", "") for each in spec.get("tokenRequests") or []), "<unset>"),
        bool(spec.get("requiresRepublish")),
        joined(spec.get("volumeLifecycleModes")),
        age(obj),
    ]


def _csr(obj: Object) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    words = [each["type"] for each in status.get("conditions") or []] or ["Pending"]
    if status.get("certificate"):
        words.append("Issued")
    seconds = spec.get("expirationSeconds")
    requested = f"{seconds}s" if seconds else NONE
    return [name_of(obj), age(obj), spec.get("signerName", ""), spec.get("username", ""), requested, ",".join(words)]


CLUSTER = {
    ("discovery.k8s.io", "endpointslices"): Layout(columns("Name | AddressType | Ports | Endpoints | Age"), _slice),
    ("coordination.k8s.io", "leases"): Layout(
        columns("Name | Holder | Age"), lambda obj: [name_of(obj), part(obj, "spec", "holderIdentity") or "", age(obj)]
    ),
    ("networking.k8s.io", "networkpolicies"): Layout(
        columns("Name | Pod-Selector | Age"),
        lambda obj: [name_of(obj), selector_cell(part(obj, "spec", "podSelector")), age(obj)],
    ),
    ("networking.k8s.io", "ingressclasses"): Layout(
        columns("Name | Controller | Parameters | Age"),
        lambda obj: [name_of(obj), part(obj, "spec", "controller") or "", NONE, age(obj)],
    ),
    ("rbac.authorization.k8s.io", "roles"): Layout(
        columns("Name | Created At"), lambda obj: [name_of(obj), obj["metadata"].get("creationTimestamp", "")]
    ),
    ("rbac.authorization.k8s.io", "clusterroles"): Layout(
        columns("Name | Created At"), lambda obj: [name_of(obj), obj["metadata"].get("creationTimestamp", "")]
    ),
    ("rbac.authorization.k8s.io", "rolebindings"): Layout(
        columns("Name | Role | Age | Users+ | Groups+ | ServiceAccounts+"), _binding
    ),
    ("rbac.authorization.k8s.io", "clusterrolebindings"): Layout(
        columns("Name | Role | Age | Users+ | Groups+ | ServiceAccounts+"), _binding
    ),
    ("storage.k8s.io", "storageclasses"): Layout(
        columns("Name | Provisioner | ReclaimPolicy | VolumeBindingMode | AllowVolumeExpansion | Age"), _storage_class
    ),
    ("storage.k8s.io", "csinodes"): Layout(
        columns("Name | Drivers# | Age"),
        lambda obj: [name_of(obj), len(part(obj, "spec", "drivers") or []), age(obj)],
    ),
    ("storage.k8s.io", "csidrivers"): Layout(
        columns(
            "Name | AttachRequired? | PodInfoOnMount? | StorageCapacity? | TokenRequests | RequiresRepublish? "
            "| Modes | Age"
        ),
        _driver,
    ),
    ("storage.k8s.io", "volumeattachments"): Layout(
        columns("Name | Attacher | PV | Node | Attached | Age"),
        lambda obj: [
            name_of(obj),
            part(obj, "spec", "attacher") or "",
            part(obj, "spec", "source", "persistentVolumeName") or "",
            part(obj, "spec", "nodeName") or "",
            bool(part(obj, "status", "attached")),
            age(obj),
        ],
    ),
    ("node.k8s.io", "runtimeclasses"): Layout(
        columns("Name | Handler | Age"), lambda obj: [name_of(obj), obj.get("handler", ""), age(obj)]
    ),
    ("scheduling.k8s.io", "priorityclasses"): Layout(
        columns("Name | Value# | Global-Default? | Age | PreemptionPolicy"),
        lambda obj: [
            name_of(obj),
            obj.get("value", 0),
            bool(obj.get("globalDefault")),
            age(obj),
            obj.get("preemptionPolicy", "PreemptLowerPriority"),
        ],
    ),
    ("certificates.k8s.io", "certificatesigningrequests"): Layout(
        columns("Name | Age | SignerName | Requestor | RequestedDuration | Condition"), _csr
    ),
    ("apiextensions.k8s.io", "customresourcedefinitions"): Layout(
        columns("Name | Created At@"), lambda obj: [name_of(obj), obj["metadata"].get("creationTimestamp", "")]
    ),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): Layout(
        columns("Name | Webhooks# | Age"), lambda obj: [name_of(obj), len(obj.get("webhooks") or []), age(obj)]
    ),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): Layout(
        columns("Name | Webhooks# | Age"), lambda obj: [name_of(obj), len(obj.get("webhooks") or []), age(obj)]
    ),
}

"""What differs by kind when objects are created and replaced; everything else about them is generic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from winready_sandbox import quantity
from winready_sandbox.api.objects import Object
from winready_sandbox.api.resources import Resource

KEEPS_STATUS_ON_CREATE = {("", "nodes")}
"""Kubelets create their node together with its first status."""

_CORE_RETURNED = (
    "pods",
    "podtemplates",
    "persistentvolumes",
    "persistentvolumeclaims",
    "resourcequotas",
    "serviceaccounts",
    "services",
)
_STORAGE_RETURNED = ("csidrivers", "csinodes", "storageclasses", "volumeattachments")
RETURNS_DELETED_OBJECT = {
    *(("", name) for name in _CORE_RETURNED),
    *(("storage.k8s.io", name) for name in _STORAGE_RETURNED),
}
"""Kinds whose delete is answered with the object instead of a Status."""

_RBAC = "rbac.authorization.k8s.io"
CREATED_BY_UPDATE = {
    *(("", name) for name in ("endpoints", "events", "limitranges", "podtemplates", "services")),
    *((_RBAC, name) for name in ("clusterrolebindings", "clusterroles", "rolebindings", "roles")),
    ("coordination.k8s.io", "leases"),
}
"""Kinds that a PUT creates when they are not there."""

POD_PARTS = ("ephemeralcontainers", "resize")
"""Subresources that change what a pod's own update may not."""

_FIRST_STATUS: dict[tuple[str, str], Object] = {
    ("", "persistentvolumes"): {"phase": "Pending"},
    ("", "persistentvolumeclaims"): {"phase": "Pending"},
    ("", "services"): {"loadBalancer": {}},
    ("networking.k8s.io", "ingresses"): {"loadBalancer": {}},
}
_SYSTEM_METADATA = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")


def prepare_create(resource: Resource, obj: Object) -> None:
    """Set what only the server may set on a new object."""
    metadata = obj["metadata"]
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"):
        metadata.pop(name, None)
    if resource.generation:
        metadata["generation"] = 1
    if resource.subresource("status") and resource.storage not in KEEPS_STATUS_ON_CREATE:
        obj.pop("status", None)
        if resource.storage == ("", "pods"):
            obj["status"] = {"phase": "Pending", "qosClass": quality_of_service(obj)}
        elif resource.storage == ("", "namespaces"):
            obj["status"] = {"phase": "Active"}
        elif not resource.custom:
            obj["status"] = dict(_FIRST_STATUS.get(resource.storage, {}))
    if resource.storage == ("", "namespaces"):
        finalizers = obj.setdefault("spec", {}).setdefault("finalizers", [])
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")
        metadata.setdefault("labels", {})["kubernetes.io/metadata.name"] = metadata["name"]


def prepare_update(resource: Resource, new: Object, old: Object, subresource: str) -> Object:
    """What of a write may take effect: a path below an object changes only its own part."""
    metadata = {**new["metadata"], **{key: old["metadata"][key] for key in _SYSTEM_METADATA if key in old["metadata"]}}
    metadata["name"] = old["metadata"]["name"]
    if "namespace" in old["metadata"]:
        metadata["namespace"] = old["metadata"]["namespace"]
    for name in _SYSTEM_METADATA:
        if name not in old["metadata"]:
            metadata.pop(name, None)
    if subresource == "status":
        kept = _status_metadata(resource, metadata, old["metadata"])
        return {**old, "metadata": kept, "status": new.get("status") or {}}
    if subresource in POD_PARTS:
        return {**old, "metadata": metadata, "spec": _pod_part(subresource, new["spec"], old["spec"])}
    if subresource == "approval":
        return {**old, "metadata": metadata, "status": new.get("status") or {}}
    if subresource == "finalize":
        finalizers = (new.get("spec") or {}).get("finalizers") or []
        return {**old, "metadata": metadata, "spec": {**old.get("spec", {}), "finalizers": finalizers}}
    result = {**new, "metadata": metadata, "kind": old["kind"], "apiVersion": old["apiVersion"]}
    if resource.subresource("status"):
        result.pop("status", None)
        if "status" in old:
            result["status"] = old["status"]
    if resource.storage == ("", "namespaces"):
        result["spec"] = old.get("spec", {})
    if resource.generation and _spread(resource, result) != _spread(resource, old):
        metadata["generation"] = old["metadata"].get("generation", 0) + 1
    return result


def _status_metadata(resource: Resource, new: Object, old: Object) -> Object:
    """Status writes may label and annotate core objects; of others they touch only the status."""
    if resource.group == "":
        owners = {key: old[key] for key in ("ownerReferences",) if key in old}
        return {**{key: value for key, value in new.items() if key != "ownerReferences"}, **owners}
    return {**old, "managedFields": new["managedFields"]} if "managedFields" in new else dict(old)


def _pod_part(subresource: str, new: Object, old: Object) -> Object:
    if subresource == "ephemeralcontainers":
        return {**old, "ephemeralContainers": new.get("ephemeralContainers") or []}
    wanted = {container["name"]: container for container in new.get("containers") or []}
    containers = [
        {**container, "resources": wanted.get(container["name"], container).get("resources", {})}
        for container in old["containers"]
    ]
    return {**old, "containers": containers}


def _spread(resource: Resource, obj: Object) -> Any:
    if resource.generation == "spec":
        return obj.get("spec")
    rest = {key: value for key, value in obj.items() if key not in ("metadata", "status", "kind", "apiVersion")}
    if resource.storage == ("discovery.k8s.io", "endpointslices"):
        rest["labels"] = obj["metadata"].get("labels") or {}
    return rest


def quality_of_service(pod: Object) -> str:
    """Guaranteed, Burstable or BestEffort, from requests and limits of cpu and memory."""
    spec = pod.get("spec") or {}
    containers = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
    requested, guaranteed = False, True
    for container in containers:
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name in ("cpu", "memory"):
            limit, request = _amount(limits.get(name)), _amount(requests.get(name, limits.get(name)))
            requested = requested or limit > 0 or request > 0
            guaranteed = guaranteed and limit > 0 and limit == request
    if not requested:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _amount(amount: object) -> Fraction:
    try:
        return quantity.parse(amount or 0)
    except ValueError:
        return Fraction(0)  # validation refuses the pod with better words

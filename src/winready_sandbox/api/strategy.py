"""What differs by kind when objects are created and replaced; everything else about them is generic."""

from __future__ import annotations

from typing import Any

from winready_sandbox.api.defaults import TEMPLATE_GENERATION
from winready_sandbox.api.objects import Object
from winready_sandbox.api.pod_resources import quality_of_service
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
_TEMPLATES: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "pods"): (),
    ("", "podtemplates"): ("template",),
    ("", "replicationcontrollers"): ("spec", "template"),
    ("apps", "daemonsets"): ("spec", "template"),
    ("apps", "deployments"): ("spec", "template"),
    ("apps", "replicasets"): ("spec", "template"),
    ("apps", "statefulsets"): ("spec", "template"),
    ("batch", "jobs"): ("spec", "template"),
    ("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
}
_SYSTEM_METADATA = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")


def pod_in(resource: Resource, obj: Object) -> Object | None:
    """The pod that an object is, or the template that it makes pods from."""
    steps = _TEMPLATES.get(resource.storage)
    if steps is None:
        return None
    found: Any = obj
    for step in steps:
        found = found.get(step) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


def template_path(resource: Resource) -> str:
    """Where the template of a kind is; nothing for pods themselves."""
    return ".".join(_TEMPLATES[resource.storage])


def settled(resource: Resource, obj: Object) -> Object:
    """What is stored of a sound object: empty lists counted as set while it was judged."""
    spec = (pod_in(resource, obj) or {}).get("spec") or {}
    if not spec:
        return obj
    holders = [(spec.get("securityContext"), "supplementalGroups"), (spec.get("resources"), "claims")]
    for kind in ("containers", "initContainers"):
        holders += [(each.get("resources"), "claims") for each in spec.get(kind) or ()]
    for holder, name in holders:
        if holder and holder.get(name) == []:
            del holder[name]
    if spec.get("overhead") == {}:
        del spec["overhead"]
    return obj


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
            obj["status"] = {"phase": "Pending", "qosClass": quality_of_service(obj.get("spec") or {})}
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
        spec = _pod_part(subresource, new["spec"], old["spec"])
        if resource.generation and spec != old["spec"]:
            metadata["generation"] = old["metadata"].get("generation", 0) + 1
        return {**old, "metadata": metadata, "spec": spec}
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
    if resource.storage == ("apps", "daemonsets"):
        before = int((old["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION) or 1)
        changed = result["spec"].get("template") != old["spec"].get("template")
        noted = {**(metadata.get("annotations") or {}), TEMPLATE_GENERATION: str(before + changed)}
        metadata["annotations"] = noted
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
    """Of a write below a pod, what it may bring; containers that are others now are left for validation to refuse."""
    if subresource == "ephemeralcontainers":
        return {**old, "ephemeralContainers": new.get("ephemeralContainers") or []}
    kinds = ("containers", "initContainers")
    if any(len(new.get(kind) or []) != len(old.get(kind) or []) for kind in kinds):
        return new
    result = {**old}
    for kind in kinds:
        if new.get(kind):
            result[kind] = _resized(new[kind], old[kind])
    if new.get("resources") is not None or old.get("resources") is not None:
        result["resources"] = new.get("resources")
    return {key: value for key, value in result.items() if value is not None}


def _resized(new: list[Object], old: list[Object]) -> list[Object]:
    if [each.get("name") for each in new] != [each.get("name") for each in old]:
        return new
    brought = ("resources", "resizePolicy")
    return [
        {**{key: value for key, value in was.items() if key not in brought}}
        | {key: after[key] for key in brought if after.get(key) is not None}
        for after, was in zip(new, old, strict=True)
    ]


def _spread(resource: Resource, obj: Object) -> Any:
    if resource.generation == "spec":
        return obj.get("spec")
    rest = {key: value for key, value in obj.items() if key not in ("metadata", "status", "kind", "apiVersion")}
    if resource.storage == ("discovery.k8s.io", "endpointslices"):
        rest["labels"] = obj["metadata"].get("labels") or {}
    return rest

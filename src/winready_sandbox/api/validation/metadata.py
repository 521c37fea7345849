"""What every object has in common: its name, labels, annotations, owners and finalizers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from winready_sandbox.api.errors import forbidden_field, invalid, required, too_long
from winready_sandbox.api.validation.formats import (
    Errors,
    at,
    dns_label,
    dns_label_1035,
    dns_subdomain,
    labels,
    path_segment,
    qualified_name,
)
from winready_sandbox.api.validation.reading import Object, children, items, section

CLUSTER_SCOPED = frozenset(
    {"Namespace", "Node", "PersistentVolume", "ClusterRole", "ClusterRoleBinding", "StorageClass", "CSIDriver"}
    | {"CSINode", "PriorityClass", "RuntimeClass", "IngressClass", "VolumeAttachment", "CertificateSigningRequest"}
    | {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "CustomResourceDefinition", "APIService"}
)
_LABEL_NAMES = frozenset({"Namespace"})
_SEGMENT_NAMES = frozenset({"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"})
_STANDARD_FINALIZERS = frozenset({"orphan", "foregroundDeletion", "kubernetes"})
_ANNOTATIONS_LIMIT = 256 * 1024


def metadata(kind: str, obj: Object, old: Object | None, minor: int) -> Errors:
    """The metadata of a new object or of a change to one."""
    meta = section(obj, "metadata")
    if old is None:
        yield from _new(kind, meta, minor)
    else:
        yield from _changed(meta, section(old, "metadata"))
    yield from labels(meta.get("labels"), "metadata.labels")
    yield from annotation_map(meta.get("annotations"), "metadata.annotations")
    yield from _owners(meta)
    if old is None:
        for i, finalizer in enumerate(items(meta, "finalizers")):
            yield from at("metadata.finalizers", finalizer, qualified_name(str(finalizer)))
            if "/" not in str(finalizer) and str(finalizer) not in _STANDARD_FINALIZERS:
                detail = "name is neither a standard finalizer name nor is it fully qualified"
                yield invalid(f"metadata.finalizers[{i}]", finalizer, detail)


def name_format(kind: str, minor: int) -> Callable[[str], Iterator[str]]:
    """How objects of a kind may be called."""
    if kind == "Service":
        return dns_label if minor >= 36 else dns_label_1035
    if kind in _LABEL_NAMES:
        return dns_label
    return path_segment if kind in _SEGMENT_NAMES else dns_subdomain


def _new(kind: str, meta: Object, minor: int) -> Errors:
    name = str(meta.get("name") or "")
    if not name:
        yield required("metadata.name", "name or generateName is required")
    else:
        yield from at("metadata.name", name, name_format(kind, minor)(name))
    namespace = meta.get("namespace")
    if namespace and kind in CLUSTER_SCOPED:
        yield forbidden_field("metadata.namespace", "not allowed on this type")
    elif namespace:
        yield from at("metadata.namespace", namespace, dns_label(str(namespace)))


def _changed(meta: Object, before: Object) -> Errors:
    if before.get("deletionTimestamp"):
        fresh = [name for name in items(meta, "finalizers") if name not in items(before, "finalizers")]
        if fresh:
            detail = "no new finalizers can be added if the object is being deleted, found new finalizers []string{"
            yield forbidden_field("metadata.finalizers", detail + ", ".join(json.dumps(name) for name in fresh) + "}")


def annotation_map(values: object, field: str) -> Errors:
    """Annotations: keys like those of labels in any case, limited in total."""
    if not isinstance(values, dict):
        return
    for key in values:
        yield from at(field, key, qualified_name(str(key).lower()))
    if sum(len(str(key)) + len(str(value)) for key, value in values.items()) > _ANNOTATIONS_LIMIT:
        yield too_long(field, _ANNOTATIONS_LIMIT)


def _owners(meta: Object) -> Errors:
    here = "metadata.ownerReferences"
    controllers: list[str] = []
    for owner in children(meta, "ownerReferences"):
        if not owner.get("apiVersion"):
            yield invalid(f"{here}.apiVersion", owner.get("apiVersion") or "", "version must not be empty")
        for name in ("kind", "name", "uid"):
            if not owner.get(name):
                yield invalid(f"{here}.{name}", owner.get(name) or "", "must not be empty")
        if owner.get("apiVersion") == "v1" and owner.get("kind") == "Event":
            yield invalid(here, owner, "/v1, Kind=Event is disallowed from being an owner")
        if owner.get("controller") is True:
            controllers.append(f"{owner.get('kind')}/{owner.get('name')}")
    for other in controllers[1:]:
        text = 'Only one reference can have Controller set to true. Found "true" in references for'
        yield invalid(here, meta.get("ownerReferences"), f"{text} {controllers[0]} and {other}")

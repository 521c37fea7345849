"""Kinds with a few rules each: config, access, storage, quotas, nodes, leases."""

from __future__ import annotations

import base64
import binascii
import json

from winready_sandbox.api.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid,
    not_supported,
    required,
    too_long,
)
from winready_sandbox.api.validation.formats import (
    Errors,
    at,
    at_most_all,
    cidr,
    config_key,
    dns_label,
    dns_subdomain,
    immutable,
    int_or_percent,
    label_value,
    labels,
    path_segment,
    qualified_name,
    selector,
)
from winready_sandbox.api.validation.reading import Object, children, items, section
from winready_sandbox.api.validation.resources import QUOTA_NAMES, quantity_value, requirements
from winready_sandbox.api.validation.scheduling import taint_effect, tolerations

_RBAC = "rbac.authorization.k8s.io"
_MAX_DATA = 1024 * 1024
_HIGHEST_USER_PRIORITY = 1_000_000_000
_SEALED = "field is immutable when `immutable` is set"
_SECRET_KEYS = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}


def config_map(obj: Object, old: Object | None, minor: int) -> Errors:
    """A ConfigMap."""
    plain, binary = section(obj, "data"), section(obj, "binaryData")
    for key in plain:
        yield from at(f"data[{key}]", key, config_key(str(key)))
        if key in binary:
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in binary:
        yield from at(f"binaryData[{key}]", key, config_key(str(key)))
    if sum(len(str(value)) for value in (*plain.values(), *binary.values())) > _MAX_DATA:
        yield too_long("[]", _MAX_DATA)
    yield from _sealed(obj, old, ("data", "binaryData"))


def _sealed(obj: Object, old: Object | None, fields: tuple[str, ...]) -> Errors:
    if old is None or old.get("immutable") is not True:
        return
    if obj.get("immutable") is not True:
        yield forbidden_field("immutable", _SEALED)
    for name in fields:
        if section(obj, name) != section(old, name):
            yield forbidden_field(name, _SEALED)


def secret(obj: Object, old: Object | None, minor: int) -> Errors:
    """A Secret; its contents never show in an error."""
    data = section(obj, "data")
    if old is not None:
        yield from immutable(obj.get("type"), old.get("type"), "type")
    yield from _sealed(obj, old, ("data",))
    for key in data:
        yield from at(f"data[{key}]", key, config_key(str(key)))
    if sum(len(str(value)) * 3 // 4 for value in data.values()) > _MAX_DATA:
        yield too_long("data", _MAX_DATA)
    kind = str(obj.get("type", "Opaque"))
    for key in _SECRET_KEYS.get(kind, ()):
        if key not in data:
            yield required(f"data[{key}]")
        elif kind.startswith("kubernetes.io/docker") and not _is_json(data[key]):
            yield invalid(f"data[{key}]", "<secret contents redacted>", "invalid character in JSON")
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & set(data):
        yield required("data[username]")
        yield required("data[password]")
    account = "kubernetes.io/service-account.name"
    if kind == "kubernetes.io/service-account-token" and not section(section(obj, "metadata"), "annotations").get(
        account
    ):
        yield required(f"metadata.annotations[{account}]")


def _is_json(value: object) -> bool:
    try:
        return isinstance(json.loads(base64.b64decode(str(value))), dict)
    except (ValueError, binascii.Error):
        return False


def node(obj: Object, old: Object | None, minor: int) -> Errors:
    """A Node."""
    spec = section(obj, "spec")
    seen: set[tuple[str, str]] = set()
    for i, taint in enumerate(children(spec, "taints")):
        here = f"metadata.taints[{i}]"  # the API server's own slip: it names metadata
        key, value, effect = str(taint.get("key") or ""), str(taint.get("value") or ""), taint.get("effect")
        yield from at(f"{here}.key", key, qualified_name(key))
        wrong = ";".join(label_value(value))
        if wrong:
            yield invalid(f"{here}.value", value, wrong)
        if not effect:
            yield required(f"{here}.effect")
        else:
            yield from taint_effect(effect, f"{here}.effect")
        if (key, str(effect)) in seen:
            shown = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            twice = duplicate(here, shown)
            yield FieldError(here, f"{twice.message}: taints must be unique by key and effect pair", twice.reason)
        seen.add((key, str(effect)))
    for i, block in enumerate(items(spec, "podCIDRs")):
        yield from at(f"spec.podCIDRs[{i}]", block, cidr(block))
    if old is not None:
        before = section(old, "spec")
        if items(before, "podCIDRs") and items(before, "podCIDRs") != items(spec, "podCIDRs"):
            yield forbidden_field("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')
        provider = before.get("providerID")
        if provider and provider != spec.get("providerID"):
            yield forbidden_field("spec.providerID", 'node updates may not change providerID except from "" to valid')


def lease(obj: Object, old: Object | None, minor: int) -> Errors:
    """A Lease."""
    spec = section(obj, "spec")
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if isinstance(duration, int) and duration <= 0:
        yield invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
    if isinstance(transitions, int) and transitions < 0:
        yield invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0")


def role(obj: Object, old: Object | None, minor: int) -> Errors:
    """A Role or ClusterRole."""
    namespaced = obj.get("kind") == "Role"
    for i, rule in enumerate(children(obj, "rules")):
        here = f"rules[{i}]"
        if not items(rule, "verbs"):
            yield required(f"{here}.verbs", "verbs must contain at least one value")
        urls = items(rule, "nonResourceURLs")
        if urls:
            if namespaced:
                yield invalid(f"{here}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs")
            if items(rule, "apiGroups") or items(rule, "resources") or items(rule, "resourceNames"):
                detail = "rules cannot apply to both regular resources and non-resource URLs"
                yield invalid(f"{here}.nonResourceURLs", urls, detail)
            continue
        if not items(rule, "apiGroups"):
            yield required(f"{here}.apiGroups", "resource rules must supply at least one api group")
        if not items(rule, "resources"):
            yield required(f"{here}.resources", "resource rules must supply at least one resource")


def role_binding(obj: Object, old: Object | None, minor: int) -> Errors:
    """A RoleBinding or ClusterRoleBinding."""
    namespaced = obj.get("kind") == "RoleBinding"
    reference = section(obj, "roleRef")
    if reference.get("apiGroup") != _RBAC:
        yield not_supported("roleRef.apiGroup", reference.get("apiGroup") or "", [_RBAC])
    allowed = ["Role", "ClusterRole"] if namespaced else ["ClusterRole"]
    if reference.get("kind") not in allowed:
        yield not_supported("roleRef.kind", reference.get("kind") or "", allowed)
    name = str(reference.get("name") or "")
    if not name:
        yield required("roleRef.name")
    else:
        yield from at("roleRef.name", name, path_segment(name))
    for i, subject in enumerate(children(obj, "subjects")):
        yield from _subject(subject, f"subjects[{i}]", namespaced)
    if old is not None and reference != section(old, "roleRef"):
        shown = {
            name: reference.get(key) for name, key in (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))
        }
        yield invalid("roleRef", shown, "cannot change roleRef")


def _subject(subject: Object, here: str, namespaced: bool) -> Errors:
    kind, name, group = subject.get("kind"), str(subject.get("name") or ""), subject.get("apiGroup") or ""
    if not name:
        yield required(f"{here}.name")
    if kind == "ServiceAccount":
        if name:
            yield from at(f"{here}.name", name, dns_subdomain(name))
        if group:
            yield not_supported(f"{here}.apiGroup", group, [""])
        if not namespaced and not subject.get("namespace"):
            yield required(f"{here}.namespace")
    elif kind in ("User", "Group"):
        if group != _RBAC:
            yield not_supported(f"{here}.apiGroup", group, [_RBAC])
    else:
        yield not_supported(f"{here}.kind", kind or "", ["ServiceAccount", "User", "Group"])


def disruption_budget(obj: Object, old: Object | None, minor: int) -> Errors:
    """A PodDisruptionBudget."""
    spec = section(obj, "spec")
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        shown = {"MinAvailable": spec["minAvailable"], "Selector": spec.get("selector")}
        shown |= {"MaxUnavailable": spec["maxUnavailable"], "UnhealthyPodEvictionPolicy": None}
        yield invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    for name in ("minAvailable", "maxUnavailable"):
        yield from int_or_percent(spec.get(name), f"spec.{name}")
        yield from at_most_all(spec.get(name), f"spec.{name}")
    yield from selector(spec.get("selector"), "spec.selector")


def quota(obj: Object, old: Object | None, minor: int) -> Errors:
    """A ResourceQuota."""
    for name, amount in section(section(obj, "spec"), "hard").items():
        here = f"spec.hard[{name}]"
        known = str(name) in QUOTA_NAMES or "/" in str(name) or str(name).startswith(("requests.", "hugepages-"))
        if not known:
            yield invalid(here, name, "must be a standard resource type or fully qualified")
            yield invalid(here, name, "must be a standard resource for quota")
        yield from quantity_value(str(name), amount, here)
    if old is not None:
        new, before = section(obj, "spec").get("scopes"), section(old, "spec").get("scopes")
        yield from immutable(new, before, "spec.scopes")


def priority_class(obj: Object, old: Object | None, minor: int) -> Errors:
    """A PriorityClass."""
    name, value = str(section(obj, "metadata").get("name", "")), obj.get("value", 0)
    if name.startswith("system-"):
        if name not in ("system-node-critical", "system-cluster-critical"):
            detail = "priority class names with 'system-' prefix are reserved for system use only. error: "
            yield forbidden_field("metadata.name", f"{detail}{name} is not a known system priority class")
    elif isinstance(value, int) and value > _HIGHEST_USER_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}"
        yield forbidden_field("value", detail)
    if old is not None:
        if value != old.get("value", 0):
            yield forbidden_field("value", "may not be changed in an update.")
        yield from immutable(obj.get("preemptionPolicy"), old.get("preemptionPolicy"), "preemptionPolicy")


def runtime_class(obj: Object, old: Object | None, minor: int) -> Errors:
    """A RuntimeClass."""
    handler = str(obj.get("handler") or "")
    if not handler:
        yield required("handler")
    else:
        yield from at("handler", handler, dns_label(handler))
    if old is None:
        overhead, scheduling = section(obj, "overhead"), section(obj, "scheduling")
        yield from requirements({"limits": section(overhead, "podFixed")}, "overhead")
        yield from labels(scheduling.get("nodeSelector"), "scheduling.nodeSelector")
        yield from tolerations(scheduling.get("tolerations"), "scheduling.tolerations")
    else:
        yield from immutable(obj.get("handler"), old.get("handler"), "handler")


def storage_class(obj: Object, old: Object | None, minor: int) -> Errors:
    """A StorageClass."""
    provisioner = str(obj.get("provisioner") or "")
    if not provisioner:
        yield required("provisioner")
    else:
        yield from at("provisioner", provisioner.lower(), qualified_name(provisioner.lower()))
    mode = obj.get("volumeBindingMode", "Immediate")
    if mode not in ("Immediate", "WaitForFirstConsumer"):
        yield not_supported("volumeBindingMode", mode, ["Immediate", "WaitForFirstConsumer"])
    if old is not None:
        for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
            yield from immutable(obj.get(name), old.get(name), name)

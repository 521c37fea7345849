"""Workloads: a selector that finds the template's pods and never changes, and a sound plan for rolling out."""

from __future__ import annotations

import json

from winready_sandbox.api.errors import FieldError, forbidden_field, invalid, not_supported, required
from winready_sandbox.api.validation.claims import claim_spec
from winready_sandbox.api.validation.formats import (
    Errors,
    at,
    at_most_all,
    dns_label,
    immutable,
    int_or_percent,
    is_zero,
    labels,
    matches,
    nonnegative,
    selector,
)
from winready_sandbox.api.validation.metadata import annotation_map
from winready_sandbox.api.validation.pods import template
from winready_sandbox.api.validation.reading import Object, children, section
from winready_sandbox.api.validation.security import known_annotations

_LOOKS_INTO_STATEFUL_SETS = 34
"""From when on templates of stateful sets are validated when the set is made, not only when its pods are."""
_MISMATCH = "`selector` does not match template `labels`"


def _selected(spec: Object, kind: str, minor: int) -> Errors:
    """Selector and template of a workload that keeps its pods running."""
    wanted = spec.get("selector")
    pods = section(spec, "template")
    unusable = list(selector(wanted, "spec.selector"))
    yield from unusable
    if not isinstance(wanted, dict) and kind != "daemonset":
        yield required("spec.selector")
    if isinstance(wanted, dict) and not wanted.get("matchLabels") and not wanted.get("matchExpressions"):
        yield invalid("spec.selector", wanted, f"empty selector is invalid for {kind}")
    elif not unusable:
        yield from _matching(wanted, pods)
    if unusable and kind != "daemonset":
        wrong = f"Invalid value: {json.dumps(wanted, separators=(',', ':'))}"
        detail = ": invalid label selector" if kind == "deployment" else ""
        yield FieldError("spec.selector", wrong + detail, "FieldValueInvalid")
        return
    if kind != "statefulset" or minor >= _LOOKS_INTO_STATEFUL_SETS:
        yield from template(_identified(spec, pods) if kind == "statefulset" else pods, "spec.template", minor)
    if kind == "statefulset":  # the API server looks twice
        meta, here = section(pods, "metadata"), "spec.template.annotations"
        yield from labels(meta.get("labels"), "spec.template.labels")
        yield from annotation_map(meta.get("annotations"), here)
        yield from known_annotations(meta, section(pods, "spec"), here)
    policy = section(pods, "spec").get("restartPolicy", "Always")
    if policy != "Always":
        yield not_supported("spec.template.spec.restartPolicy", policy, ["Always"])


def _identified(spec: Object, pods: Object) -> Object:
    """The template as a stateful set makes pods from it: with names and volumes of their own."""
    inner = {key: value for key, value in section(pods, "spec").items() if key not in ("hostname", "subdomain")}
    claims = [section(claim, "metadata").get("name") for claim in children(spec, "volumeClaimTemplates")]
    if claims:
        kept = [volume for volume in children(inner, "volumes") if volume.get("name") not in claims]
        added = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
        inner["volumes"] = [*added, *kept]
    return {**pods, "spec": inner}


def _matching(wanted: object, pods: Object) -> Errors:
    found = section(pods, "metadata").get("labels")
    if not matches(wanted, found):
        yield invalid("spec.template.metadata.labels", found, _MISMATCH)


def _no_deadline(spec: Object, kind: str) -> Errors:
    if section(section(spec, "template"), "spec").get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        yield forbidden_field("spec.template.spec.activeDeadlineSeconds", detail)


def _shown(strategy: Object) -> Object:
    """A strategy as the API server prints it."""
    return {"Type": strategy.get("type"), "RollingUpdate": strategy.get("rollingUpdate")}


def deployment(obj: Object, old: Object | None, minor: int) -> Errors:
    """A Deployment."""
    spec = section(obj, "spec")
    yield from nonnegative(spec.get("replicas"), "spec.replicas")
    yield from _selected(spec, "deployment", minor)
    yield from _no_deadline(spec, "ReplicaSet")
    yield from _strategy(section(spec, "strategy"))
    for name in ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
        yield from nonnegative(spec.get(name), f"spec.{name}")
    deadline, ready = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds") or 0
    if isinstance(deadline, int) and isinstance(ready, int) and deadline <= ready:
        yield invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")
    if old is not None:
        yield from immutable(spec.get("selector"), section(old, "spec").get("selector"), "spec.selector")


def _strategy(strategy: Object) -> Errors:
    kind = strategy.get("type", "RollingUpdate")
    rolling = section(strategy, "rollingUpdate")
    if kind == "Recreate":
        if strategy.get("rollingUpdate") is not None:
            detail = "may not be specified when strategy `type` is 'Recreate'"
            yield forbidden_field("spec.strategy.rollingUpdate", detail)
    elif kind == "RollingUpdate":
        here = "spec.strategy.rollingUpdate"
        for name in ("maxUnavailable", "maxSurge"):
            yield from int_or_percent(rolling.get(name), f"{here}.{name}")
        if rolling and is_zero(rolling.get("maxUnavailable")) and is_zero(rolling.get("maxSurge")):
            yield invalid(f"{here}.maxUnavailable", rolling.get("maxUnavailable"), "may not be 0 when `maxSurge` is 0")
        yield from at_most_all(rolling.get("maxUnavailable"), f"{here}.maxUnavailable")
    else:
        yield not_supported("spec.strategy", _shown(strategy), ["Recreate", "RollingUpdate"])


def replica_set(obj: Object, old: Object | None, minor: int) -> Errors:
    """A ReplicaSet."""
    spec = section(obj, "spec")
    for name in ("replicas", "minReadySeconds"):
        yield from nonnegative(spec.get(name), f"spec.{name}")
    yield from _selected(spec, "deployment", minor)
    yield from _no_deadline(spec, "ReplicaSet")
    if old is not None:
        yield from immutable(spec.get("selector"), section(old, "spec").get("selector"), "spec.selector")


def daemon_set(obj: Object, old: Object | None, minor: int) -> Errors:
    """A DaemonSet."""
    spec = section(obj, "spec")
    yield from _selected(spec, "daemonset", minor)
    yield from _no_deadline(spec, "DaemonSet")
    for name in ("minReadySeconds", "revisionHistoryLimit"):
        yield from nonnegative(spec.get(name), f"spec.{name}")
    strategy = section(spec, "updateStrategy")
    kind = strategy.get("type", "RollingUpdate")
    rolling = section(strategy, "rollingUpdate")
    here = "spec.updateStrategy.rollingUpdate"
    if kind == "RollingUpdate" and rolling:
        for name in ("maxUnavailable", "maxSurge"):
            yield from int_or_percent(rolling.get(name), f"{here}.{name}")
            yield from at_most_all(rolling.get(name), f"{here}.{name}")
        down, surge = not is_zero(rolling.get("maxUnavailable")), not is_zero(rolling.get("maxSurge"))
        if down and surge:
            detail = "may not be set when maxUnavailable is non-zero"
            yield invalid(f"{here}.maxSurge", rolling.get("maxSurge"), detail)
        elif not down and not surge:
            yield required(f"{here}.maxUnavailable", "cannot be 0 when maxSurge is 0")
    elif kind not in ("OnDelete", "RollingUpdate"):
        yield not_supported("spec.updateStrategy", _shown(strategy), ["RollingUpdate", "OnDelete"])
    if old is not None:
        yield from immutable(spec.get("selector"), section(old, "spec").get("selector"), "spec.selector")


_MUTABLE = {"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "minReadySeconds"}
_MUTABLE |= {"persistentVolumeClaimRetentionPolicy"}


def stateful_set(obj: Object, old: Object | None, minor: int) -> Errors:
    """A StatefulSet."""
    spec = section(obj, "spec")
    policy = spec.get("podManagementPolicy", "OrderedReady")
    if policy not in ("OrderedReady", "Parallel"):
        yield invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    strategy = section(spec, "updateStrategy")
    kind = strategy.get("type", "RollingUpdate")
    here = "spec.updateStrategy"
    if kind == "OnDelete":
        if strategy.get("rollingUpdate") is not None:
            detail = "only allowed for updateStrategy 'RollingUpdate'"
            yield invalid(f"{here}.rollingUpdate", strategy["rollingUpdate"], detail)
    elif kind == "RollingUpdate":
        partition = section(strategy, "rollingUpdate").get("partition")
        yield from nonnegative(partition, f"{here}.rollingUpdate.partition")
    else:
        yield invalid(here, _shown(strategy), "must be 'RollingUpdate' or 'OnDelete'")
    for name, value in section(spec, "persistentVolumeClaimRetentionPolicy").items():
        if value not in ("Retain", "Delete"):
            here = f"spec.persistentVolumeClaimRetentionPolicy.{name}"
            yield not_supported(here, value, ["Retain", "Delete"])
    if minor >= _LOOKS_INTO_STATEFUL_SETS:
        for i, claim in enumerate(children(spec, "volumeClaimTemplates")):
            yield from claim_spec(section(claim, "spec"), f"spec.volumeClaimTemplates[{i}].spec")
    for name in ("replicas", "minReadySeconds"):
        yield from nonnegative(spec.get(name), f"spec.{name}")
    yield from nonnegative(section(spec, "ordinals").get("start"), "spec.ordinals.start")
    if spec.get("serviceName") and old is None and minor >= 35:
        yield from at("spec.serviceName", spec["serviceName"], dns_label(str(spec["serviceName"])))
    yield from _selected(spec, "statefulset", minor)
    yield from _no_deadline(spec, "StatefulSet")
    if old is not None:
        before = section(old, "spec")
        kept = {key: value for key, value in spec.items() if key not in _MUTABLE}
        if kept != {key: value for key, value in before.items() if key not in _MUTABLE}:
            detail = (
                "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template',"
                " 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and"
                " 'minReadySeconds' are forbidden"
            )
            yield forbidden_field("spec", detail)

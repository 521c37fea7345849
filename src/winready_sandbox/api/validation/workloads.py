"""Workloads: a selector that finds the template's pods and never changes, and a sound plan for rolling out."""

from __future__ import annotations

import json

from winready_sandbox.api.errors import FieldError, forbidden_field, invalid, not_supported, required
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
    yield from template(_identified(spec, pods), "spec.template", minor)
    if kind == "statefulset":  # the API server looks twice
        meta = section(pods, "metadata")
        yield from labels(meta.get("labels"), "spec.template.labels")
        yield from annotation_map(meta.get("annotations"), "spec.template.annotations")
    policy = section(pods, "spec").get("restartPolicy", "Always")
    if policy != "Always":
        yield not_supported("spec.template.spec.restartPolicy", policy, ["Always"])


def _identified(spec: Object, pods: Object) -> Object:
    """The template with the volumes that a stateful set adds to every pod."""
    claims = [section(claim, "metadata").get("name") for claim in children(spec, "volumeClaimTemplates")]
    if not claims:
        return pods
    kept = [volume for volume in children(section(pods, "spec"), "volumes") if volume.get("name") not in claims]
    added = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    return {**pods, "spec": {**section(pods, "spec"), "volumes": [*added, *kept]}}


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
    for name in ("replicas", "minReadySeconds"):
        yield from nonnegative(spec.get(name), f"spec.{name}")
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


def job(obj: Object, old: Object | None, minor: int) -> Errors:
    """A Job."""
    spec = section(obj, "spec")
    yield from _job_spec(spec, "spec", minor)
    wanted = spec.get("selector")
    if not isinstance(wanted, dict):
        yield required("spec.selector")
    yield from selector(wanted, "spec.selector")
    yield from _matching(wanted, section(spec, "template"))
    if old is None:
        return
    before = section(old, "spec")
    if spec.get("completionMode") != "Indexed":
        yield from immutable(spec.get("completions"), before.get("completions"), "spec.completions")
    yield from immutable(spec.get("selector"), before.get("selector"), "spec.selector")
    if not before.get("suspend"):
        yield from immutable(spec.get("template"), before.get("template"), "spec.template")
    for name in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        yield from immutable(spec.get(name), before.get(name), f"spec.{name}")


def _job_spec(spec: Object, path: str, minor: int) -> Errors:
    for name in ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"):
        yield from nonnegative(spec.get(name), f"{path}.{name}")
    mode = spec.get("completionMode", "NonIndexed")
    if mode not in ("NonIndexed", "Indexed"):
        yield not_supported(f"{path}.completionMode", mode, ["NonIndexed", "Indexed"])
    if mode == "Indexed" and spec.get("completions") is None:
        yield required(f"{path}.completions", "when completion mode is Indexed")
    if mode == "NonIndexed" and spec.get("backoffLimitPerIndex") is not None:
        yield invalid(f"{path}.backoffLimitPerIndex", spec["backoffLimitPerIndex"], "requires indexed completion mode")
    yield from template(section(spec, "template"), f"{path}.template", minor)
    policy = section(section(spec, "template"), "spec").get("restartPolicy", "Always")
    here = f"{path}.template.spec.restartPolicy"
    if policy == "Always":
        yield required(here, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield not_supported(here, policy, ["OnFailure", "Never"])
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        yield invalid(here, policy, 'only "Never" is supported when podFailurePolicy is specified')


def cron_job(obj: Object, old: Object | None, minor: int) -> Errors:
    """A CronJob."""
    spec = section(obj, "spec")
    schedule = str(spec.get("schedule") or "")
    if not schedule:
        yield required("spec.schedule")
    elif not schedule.startswith("@") and len(schedule.split()) != 5:
        found = len(schedule.split())
        yield invalid("spec.schedule", schedule, f"expected exactly 5 fields, found {found}: {schedule.split()}")
    policy = spec.get("concurrencyPolicy", "Allow")
    if policy not in ("Allow", "Forbid", "Replace"):
        yield not_supported("spec.concurrencyPolicy", policy, ["Allow", "Forbid", "Replace"])
    for name in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        yield from nonnegative(spec.get(name), f"spec.{name}")
    yield from _job_spec(section(section(spec, "jobTemplate"), "spec"), "spec.jobTemplate.spec", minor)

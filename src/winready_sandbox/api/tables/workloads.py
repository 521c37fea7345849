"""Deployments, jobs and the other kinds that keep pods running."""

from __future__ import annotations

from typing import Any

from winready_sandbox.api.objects import Object, parse_timestamp
from winready_sandbox.api.tables.columns import (
    NONE,
    UNKNOWN,
    Layout,
    age,
    columns,
    container_cells,
    duration,
    labels_text,
    name_of,
    part,
    selector_cell,
    since,
)
from winready_sandbox.clock import utc_now


def _deployment(obj: Object) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    return [
        name_of(obj),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}",
        str(status.get("updatedReplicas", 0)),
        str(status.get("availableReplicas", 0)),
        age(obj),
        *container_cells(spec.get("template")),
        selector_cell(spec.get("selector")),
    ]


def _replica_set(obj: Object) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    return [
        name_of(obj),
        spec.get("replicas", 1),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(obj),
        *container_cells(spec.get("template")),
        selector_cell(spec.get("selector")),
    ]


def _stateful_set(obj: Object) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}"
    return [name_of(obj), ready, age(obj), *container_cells(spec.get("template"))]


def _daemon_set(obj: Object) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    names = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        name_of(obj),
        *(status.get(name, 0) for name in names),
        labels_text(part(spec, "template", "spec", "nodeSelector")),
        age(obj),
        *container_cells(spec.get("template")),
        selector_cell(spec.get("selector")),
    ]


def _job(obj: Object) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    wanted, parallel = spec.get("completions"), spec.get("parallelism") or 1
    done = status.get("succeeded", 0)
    completions = (
        f"{done}/{wanted}" if wanted is not None else f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"
    )
    started, ended = parse_timestamp(status.get("startTime")), parse_timestamp(status.get("completionTime"))
    took = "" if started is None else duration(((ended or utc_now()) - started).total_seconds())
    return [
        name_of(obj),
        _job_status(obj, status),
        completions,
        took,
        age(obj),
        *container_cells(spec.get("template")),
        selector_cell(spec.get("selector")),
    ]


def _job_status(obj: Object, status: Object) -> str:
    true = {c.get("type") for c in status.get("conditions") or [] if c.get("status") == "True"}
    for condition, word in (("Complete", "Complete"), ("Failed", "Failed")):
        if condition in true:
            return word
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for condition, word in (
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    ):
        if condition in true:
            return word
    return "Running"


def _cron_job(obj: Object) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    last = status.get("lastScheduleTime")
    return [
        name_of(obj),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        bool(spec.get("suspend")),
        len(status.get("active") or []),
        since(last) if last else NONE,
        age(obj),
        *container_cells(part(spec, "jobTemplate", "spec", "template")),
        selector_cell(part(spec, "jobTemplate", "spec", "selector")),
    ]


def _revision(obj: Object) -> list[Any]:
    owners = obj["metadata"].get("ownerReferences") or []
    owner = next((each for each in owners if each.get("controller")), None)
    shown = NONE
    if owner is not None:
        group = owner.get("apiVersion", "").partition("/")[0] if "/" in owner.get("apiVersion", "") else ""
        kind = owner.get("kind", "").lower()
        shown = f"{kind}.{group}/{owner.get('name')}" if group else f"{kind}/{owner.get('name')}"
    return [name_of(obj), shown, str(obj.get("revision", 0)), age(obj)]


def _autoscaler(obj: Object) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    target = spec.get("scaleTargetRef") or {}
    lowest = spec.get("minReplicas")
    return [
        name_of(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        UNKNOWN,
        "<unset>" if lowest is None else str(lowest),
        str(spec.get("maxReplicas", 0)),
        str(status.get("currentReplicas", 0)),
        age(obj),
    ]


def _budget(obj: Object) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    return [
        name_of(obj),
        str(spec.get("minAvailable", "N/A")),
        str(spec.get("maxUnavailable", "N/A")),
        status.get("disruptionsAllowed", 0),
        age(obj),
    ]


_TEMPLATE = "Containers+ | Images+"
WORKLOADS = {
    ("apps", "deployments"): Layout(
        columns(f"Name | Ready | Up-to-date | Available | Age | {_TEMPLATE} | Selector+"), _deployment
    ),
    ("apps", "replicasets"): Layout(
        columns(f"Name | Desired# | Current# | Ready# | Age | {_TEMPLATE} | Selector+"), _replica_set
    ),
    ("apps", "statefulsets"): Layout(columns(f"Name | Ready | Age | {_TEMPLATE}"), _stateful_set),
    ("apps", "daemonsets"): Layout(
        columns(
            f"Name | Desired# | Current# | Ready# | Up-to-date# | Available# | Node Selector | Age | {_TEMPLATE} "
            "| Selector+"
        ),
        _daemon_set,
    ),
    ("apps", "controllerrevisions"): Layout(columns("Name | Controller | Revision | Age"), _revision),
    ("batch", "jobs"): Layout(columns(f"Name | Status | Completions | Duration | Age | {_TEMPLATE} | Selector+"), _job),
    ("batch", "cronjobs"): Layout(
        columns(f"Name | Schedule | Timezone | Suspend? | Active# | Last Schedule | Age | {_TEMPLATE} | Selector+"),
        _cron_job,
    ),
    ("autoscaling", "horizontalpodautoscalers"): Layout(
        columns("Name | Reference | Targets | MinPods | MaxPods | Replicas | Age"), _autoscaler
    ),
    ("policy", "poddisruptionbudgets"): Layout(
        columns("Name | Min Available | Max Unavailable | Allowed Disruptions# | Age"), _budget
    ),
}

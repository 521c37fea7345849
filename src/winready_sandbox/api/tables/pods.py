"""Pods: the STATUS column is where most people meet a cluster's troubles, so it follows the real printer closely."""

from __future__ import annotations

from typing import Any

from winready_sandbox.api.objects import Object
from winready_sandbox.api.tables.columns import NONE, UNKNOWN, Layout, age, columns, container_cells, name_of, since


def _cells(pod: Object) -> list[Any]:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    sidecars = {c["name"] for c in spec.get("initContainers") or [] if c.get("restartPolicy") == "Always"}
    statuses = status.get("containerStatuses") or []
    initial = status.get("initContainerStatuses") or []
    total = len(spec.get("containers") or []) + len(sidecars)
    ready = sum(bool(each.get("ready")) for each in statuses if "running" in (each.get("state") or {}))
    ready += sum(bool(each.get("ready")) for each in initial if each.get("name") in sidecars)
    counted = [each for each in initial if each.get("name") in sidecars] + list(statuses)
    reason, starting = _reason(pod, sidecars)
    if starting:
        counted = list(initial)
    restarts = sum(each.get("restartCount", 0) for each in counted)
    nominated = status.get("nominatedNodeName") or NONE
    return [
        name_of(pod),
        f"{ready}/{total}",
        reason,
        _restarts(restarts, counted),
        age(pod),
        _address(status),
        spec.get("nodeName") or NONE,
        nominated,
        _gates(spec, status),
    ]


def _reason(pod: Object, sidecars: set[str]) -> tuple[str, bool]:
    """The STATUS cell, and whether init containers still run."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    reason = status.get("reason") or status.get("phase", "")
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    initial, starting = _initializing(spec, status, sidecars)
    reason = initial if starting else _running(status, reason)
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return "Unknown", starting
        if status.get("phase") not in ("Succeeded", "Failed"):
            return "Terminating", starting
    return reason, starting


def _initializing(spec: Object, status: Object, sidecars: set[str]) -> tuple[str, bool]:
    total = len(spec.get("initContainers") or [])
    for index, each in enumerate(status.get("initContainerStatuses") or []):
        state = each.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting")
        if ended is not None and ended.get("exitCode") == 0:
            continue
        if each.get("name") in sidecars and each.get("started"):
            continue
        if ended is not None:
            return "Init:" + (ended.get("reason") or _exit(ended)), True
        if waiting is not None and waiting.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waiting['reason']}", True
        return f"Init:{index}/{total}", True
    return "", False


def _running(status: Object, reason: str) -> str:
    running = False
    for each in reversed(status.get("containerStatuses") or []):
        state = each.get("state") or {}
        if (state.get("waiting") or {}).get("reason"):
            reason = state["waiting"]["reason"]
        elif (ended := state.get("terminated")) is not None:
            reason = ended.get("reason") or _exit(ended)
        elif each.get("ready") and "running" in state:
            running = True
    if reason == "Completed" and running:
        return "Running" if _condition(status, "Ready") else "NotReady"
    return reason


def _exit(ended: Object) -> str:
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _condition(status: Object, kind: str) -> bool:
    return any(c.get("type") == kind and c.get("status") == "True" for c in status.get("conditions") or [])


def _restarts(count: int, statuses: list[Object]) -> str:
    ends = [((each.get("lastState") or {}).get("terminated") or {}).get("finishedAt") for each in statuses]
    known = sorted(end for end in ends if end)
    ago = since(known[-1]) if known else UNKNOWN
    return f"{count} ({ago} ago)" if count and known else str(count)


def _address(status: Object) -> str:
    addresses = status.get("podIPs") or []
    return addresses[0].get("ip", NONE) if addresses else status.get("podIP") or NONE


def _gates(spec: Object, status: Object) -> str:
    gates = spec.get("readinessGates") or []
    if not gates:
        return NONE
    met = sum(_condition(status, gate.get("conditionType", "")) for gate in gates)
    return f"{met}/{len(gates)}"


def _template_cells(template: Object) -> list[Any]:
    inner = template.get("template") or {}
    labels = (inner.get("metadata") or {}).get("labels") or {}
    shown = ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or NONE
    return [name_of(template), *container_cells(inner), shown]


PODS = {
    ("", "pods"): Layout(
        columns("Name | Ready | Status | Restarts | Age | IP+ | Node+ | Nominated Node+ | Readiness Gates+"), _cells
    ),
    ("", "podtemplates"): Layout(columns("Name | Containers | Images | Pod Labels"), _template_cells),
}

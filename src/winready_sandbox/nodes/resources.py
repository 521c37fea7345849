"""What containers and pods ask of their node, and what follows from it: sums, classes of service."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from winready_sandbox.quantity import parse

Object = dict[str, Any]


def _resources(container: Object, which: str) -> dict[str, Fraction]:
    return {name: parse(value) for name, value in (container.get("resources", {}).get(which) or {}).items()}


def requests(container: Object) -> dict[str, Fraction]:
    """What a container asks for; a limit without a request is one."""
    return {**_resources(container, "limits"), **_resources(container, "requests")}


def limits(container: Object) -> dict[str, Fraction]:
    """What a container may use at most."""
    return _resources(container, "limits")


def pod_requests(pod: Object) -> dict[str, Fraction]:
    """What a pod takes from its node: the larger of its start-up and of its life, plus overhead."""
    spec = pod["spec"]
    running: dict[str, Fraction] = {}
    peak: dict[str, Fraction] = {}
    for container in spec.get("initContainers") or []:
        need = requests(container)
        if container.get("restartPolicy") == "Always":
            running = _sum(running, need)
            need = running
        else:
            need = _sum(running, need)
        peak = {name: max(peak.get(name, Fraction(0)), need.get(name, Fraction(0))) for name in {*peak, *need}}
    for container in spec["containers"]:
        running = _sum(running, requests(container))
    total = {name: max(peak.get(name, Fraction(0)), running.get(name, Fraction(0))) for name in {*peak, *running}}
    return _sum(total, {name: parse(value) for name, value in (spec.get("overhead") or {}).items()})


def total(pods: Iterable[Object]) -> dict[str, Fraction]:
    """What several pods take together."""
    result: dict[str, Fraction] = {}
    for pod in pods:
        result = _sum(result, pod_requests(pod))
    return result


def _sum(left: dict[str, Fraction], right: dict[str, Fraction]) -> dict[str, Fraction]:
    return {name: left.get(name, Fraction(0)) + right.get(name, Fraction(0)) for name in {*left, *right}}


def qos_class(pod: Object) -> str:
    """Guaranteed, Burstable or BestEffort, from the CPU and memory figures of all containers."""
    spec = pod["spec"]
    guaranteed, anything = True, False
    for container in (spec.get("initContainers") or []) + spec["containers"]:
        asked, capped = requests(container), limits(container)
        for name in ("cpu", "memory"):
            if asked.get(name):
                anything = True
            if not capped.get(name) or asked.get(name) != capped[name]:
                guaranteed = False
    if not anything:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"

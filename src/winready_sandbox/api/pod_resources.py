"""What the containers of a pod ask for together, and the amounts that a pod has of its own."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from winready_sandbox.quantity import canonical, of_bytes, parse

Object = dict[str, Any]

POD_LEVEL = ("cpu", "memory")
"""What a pod can have for all its containers, beside huge pages."""


def children(obj: Object, field: str) -> list[Object]:
    """The maps in a list, without making it."""
    value = obj.get(field)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def amount(quantity: object) -> Fraction:
    """A quantity as a number; what is none counts as nothing, as validation refuses it with better words."""
    try:
        return parse(quantity)
    except ValueError:
        return Fraction(0)


def is_overcommitted(name: str) -> bool:
    """Whether more of a resource may be allowed than is asked for."""
    return ("/" not in name or "kubernetes.io/" in name) and not name.startswith("hugepages-")


def is_pod_level(name: str) -> bool:
    """Whether a pod can have an amount of a resource of its own."""
    return name in POD_LEVEL or name.startswith("hugepages-")


def container_requests(spec: Object) -> dict[str, Fraction]:
    """What all containers together ask for, at the moment when it is most."""
    return _together(spec, "requests")


def container_limits(spec: Object) -> dict[str, Fraction]:
    """What all containers together may have, at the moment when it is most."""
    return _together(spec, "limits")


def _together(spec: Object, kind: str) -> dict[str, Fraction]:
    def of(container: Object) -> dict[str, Fraction]:
        resources = container.get("resources")
        amounts = resources.get(kind) if isinstance(resources, dict) else None
        return {str(name): amount(value) for name, value in amounts.items()} if isinstance(amounts, dict) else {}

    total: dict[str, Fraction] = {}
    for container in children(spec, "containers"):
        _add(total, of(container))
    sidecars: dict[str, Fraction] = {}
    most: dict[str, Fraction] = {}
    for container in children(spec, "initContainers"):
        asked = of(container)
        if container.get("restartPolicy") == "Always":
            _add(total, asked)
            _add(sidecars, asked)
            asked = dict(sidecars)
        else:
            asked = {name: value + sidecars.get(name, Fraction(0)) for name, value in asked.items()}
        for name, value in asked.items():
            most[name] = max(most.get(name, value), value)
    for name, value in most.items():
        total[name] = max(total.get(name, value), value)
    return total


def _add(total: dict[str, Fraction], more: dict[str, Fraction]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, Fraction(0)) + value


def text_of(name: str, total: Fraction) -> str:
    """A sum as a quantity; of bytes, in the units of memory."""
    if total.denominator == 1 and name != "cpu":
        return of_bytes(int(total))
    return canonical(str(int(total))) if total.denominator == 1 else canonical(f"{int(total * 1000)}m")


def quality_of_service(spec: Object) -> str:
    """Guaranteed, Burstable or BestEffort, from cpu and memory of the pod, or else of its containers."""
    own = spec.get("resources") or {}
    holders = [own] if own.get("limits") or own.get("requests") else []
    if not holders:
        containers = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
        holders = [container.get("resources") or {} for container in containers]
    requested, guaranteed = False, True
    for resources in holders:
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name in POD_LEVEL:
            limit, request = amount(limits.get(name) or 0), amount(requests.get(name, limits.get(name)) or 0)
            requested = requested or limit > 0 or request > 0
            guaranteed = guaranteed and limit > 0 and limit == request
    if not requested:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"

"""What pods request and nodes offer, as whole numbers: thousandths of a CPU, bytes, pieces."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping

from winready_sandbox import quantity
from winready_sandbox.api.objects import Object

ASSUMED_CPU = 100
ASSUMED_MEMORY = 200 * 1024 * 1024
"""What scoring assumes of a container that requests nothing, so that many such do not crowd one node."""


@functools.lru_cache(maxsize=8192)
def _units(name: str, text: str) -> int:
    try:
        value = quantity.parse(text)
    except ValueError:
        return 0
    return math.ceil(value * 1000 if name == "cpu" else value)


def amounts(resources: Mapping[str, object] | None) -> dict[str, int]:
    """A resource list in whole numbers."""
    return {name: _units(name, str(value)) for name, value in (resources or {}).items()}


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise(total: dict[str, int], least: Mapping[str, int]) -> None:
    for name, amount in least.items():
        if amount > total.get(name, 0):
            total[name] = amount


def _requests(container: Object) -> dict[str, int]:
    return amounts((container.get("resources") or {}).get("requests"))


def _sequence(containers: Iterable[dict[str, int]], starters: Iterable[tuple[bool, dict[str, int]]]) -> dict[str, int]:
    """Containers run together; init containers one after another beside the sidecars started so far."""
    total: dict[str, int] = {}
    for request in containers:
        _add(total, request)
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for stays, request in starters:
        if stays:
            _add(total, request)
            _add(sidecars, request)
            _raise(peak, sidecars)
        else:
            moment = dict(sidecars)
            _add(moment, request)
            _raise(peak, moment)
    _raise(total, peak)
    return total


def pod_requests(spec: Object) -> dict[str, int]:
    """What a pod takes from its node."""
    init = spec.get("initContainers") or ()
    total = _sequence(
        [_requests(container) for container in spec["containers"]],
        [(container.get("restartPolicy") == "Always", _requests(container)) for container in init],
    )
    total.update(amounts((spec.get("resources") or {}).get("requests")))
    _add(total, amounts(spec.get("overhead")))
    return {name: amount for name, amount in total.items() if amount}


def assumed_requests(spec: Object, requests: Mapping[str, int]) -> tuple[int, int]:
    """CPU and memory for scoring, with something assumed for containers that say nothing."""
    cpu, memory = requests.get("cpu", 0), requests.get("memory", 0)
    for container in spec["containers"]:
        wanted = (container.get("resources") or {}).get("requests") or {}
        cpu += 0 if "cpu" in wanted else ASSUMED_CPU
        memory += 0 if "memory" in wanted else ASSUMED_MEMORY
    return cpu, memory

"""Which Windows nodes of a cluster would take a pod, as the scheduler decides it.

Only what is certain counts: a pod that might fit, fits. Room that others take, preferences, spreading and affinity
between pods are left out, since they change by the hour.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from winready.cluster import quantity
from winready.lint.context import Facts, Taint, WindowsNode
from winready.lint.objects import Pod, dig, items, mapping, selects
from winready.spec.yamlfile import Path

_AFFINITY: Path = ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
_SPARE = 1e-9
"""What sums of fractions may be off by."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """The field that keeps a pod off a node, and why."""

    path: Path
    reason: str


@dataclass(slots=True)
class Fitting:
    """A pod held against nodes: what it asks for is gathered once."""

    pod: Pod
    facts: Facts
    asked: Mapping[str, tuple[float, str]] = field(init=False)
    tolerations: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.asked = {resource: _asked(self.pod, resource) for resource in ("cpu", "memory")}
        by_class = items(self.facts.runtime_class(self.pod), "scheduling", "tolerations")
        self.tolerations = [*items(self.pod.spec, "tolerations"), *by_class]

    def obstacle(self, node: WindowsNode) -> Obstacle | None:
        """The first thing that keeps the pod off this node; None where it fits."""
        return next(self._obstacles(node), None)

    def _obstacles(self, node: WindowsNode) -> Iterator[Obstacle]:
        named = self.pod.spec.get("nodeName")
        if isinstance(named, str) and named and named != node.name:
            yield Obstacle(("spec", "nodeName"), f"nodeName is {named}")
        for key, value in mapping(self.pod.spec, "nodeSelector").items():
            if isinstance(value, str) and node.labels.get(key) != value:
                yield Obstacle(("spec", "nodeSelector", key), f"no label {key}: {value}")
        for key, value in mapping(self.facts.runtime_class(self.pod), "scheduling", "nodeSelector").items():
            if node.labels.get(key) != value:
                yield Obstacle(("spec", "runtimeClassName"), f"no label {key}: {value}, which its RuntimeClass selects")
        terms = items(self.pod.template, *_AFFINITY, "nodeSelectorTerms")
        if terms and not any(_term(term, node) for term in terms):
            yield Obstacle((*_AFFINITY, "nodeSelectorTerms"), "not what its required node affinity asks for")
        for taint in node.taints:
            if taint.effect != "PreferNoSchedule" and not self._tolerated(taint):
                path = ("spec", "tolerations") if "tolerations" in self.pod.spec else ("spec",)
                yield Obstacle(path, f"the taint {taint}, which the pod does not tolerate")
        for resource, (asked, text) in self.asked.items():
            there = amount(node.allocatable.get(resource))
            if there is not None and asked > there * (1 + _SPARE):
                reason = f"{node.allocatable[resource]} of {resource}, less than the {text} that the pod asks for"
                yield Obstacle(("spec", "containers"), reason)

    def _tolerated(self, taint: Taint) -> bool:
        return any(map(taint.tolerated_by, self.tolerations))


def amount(text: Any) -> float | None:
    """A quantity as a number; None for what is none."""
    if text is None or isinstance(text, bool):
        return None
    try:
        number = quantity.amount(str(text))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _asked(pod: Pod, resource: str) -> tuple[float, str]:
    """What a pod asks for at least, as a number and as it is written: its containers together, or one before them."""
    together, single = 0.0, (0.0, "")
    texts: list[str] = []
    for container in pod.containers:
        text = dig(container.value, "resources", "requests", resource)
        text = dig(container.value, "resources", "limits", resource) if text is None else text
        if not (number := amount(text)):
            continue
        if container.path[1] == "containers" or container.value.get("restartPolicy") == "Always":
            together += number
            texts.append(str(text))
        elif container.path[1] == "initContainers":
            single = max(single, (number, str(text)))
    return max((together, " + ".join(texts)), single)


def _term(term: Any, node: WindowsNode) -> bool:
    """Whether one of the terms of an affinity takes a node; what is not understood might."""
    for field_ in items(term, "matchFields"):
        inside = node.name in items(field_, "values")
        if dig(field_, "key") == "metadata.name" and inside is (dig(field_, "operator") == "NotIn"):
            return False
    for expression in items(term, "matchExpressions"):
        operator, there = dig(expression, "operator"), node.labels.get(str(dig(expression, "key")))
        if operator in ("Gt", "Lt"):
            bound, value = (amount(each) for each in (dig(expression, "values", 0), there))
            if there is None or (bound is not None and value is not None and not _beyond(operator, value, bound)):
                return False
    # A term without any expression takes no node.
    return bool(items(term, "matchExpressions") or items(term, "matchFields")) and selects(
        {"matchExpressions": items(term, "matchExpressions")}, node.labels
    )


def _beyond(operator: str, value: float, bound: float) -> bool:
    return value > bound if operator == "Gt" else value < bound

"""The rules that a path and a test cannot express: one small function each, registered by the id of its data.

A function yields the places that its rule objects to. Whether the rule applies at all (version, audience) was decided
before it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from winready.lint.catalog import Severity
from winready.lint.context import Backend, Facts
from winready.lint.objects import Object, Pod, dig
from winready.lint.target import Target
from winready.lint.versions import Range
from winready.spec.yamlfile import Path


class Hit(NamedTuple):
    """A place below the pod template (or the object), and what is special about it."""

    path: Path
    detail: str = ""
    severity: Severity | None = None
    versions: Range | None = None


@dataclass(frozen=True, slots=True)
class View:
    """An object that is no workload, with the Windows workloads that it concerns."""

    object: Object
    facts: Facts
    backends: Sequence[Backend]
    most: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    """How many pods autoscalers may make of workloads, by namespace, kind and name."""
    prefix: Path = ()
    """Where the object that is looked at stands inside, as a claim does in a StatefulSet."""

    @property
    def value(self) -> Any:
        """What is looked at."""
        return dig(self.object.value, *self.prefix)


PodCheck = Callable[[Pod, Target, Facts], Iterable[Hit]]
ObjectCheck = Callable[[View], Iterable[Hit]]

POD_CHECKS: dict[str, PodCheck] = {}
OBJECT_CHECKS: dict[str, ObjectCheck] = {}


def pod_check(rule: str) -> Callable[[PodCheck], PodCheck]:
    """Register the function of a rule about pods."""

    def register(function: PodCheck) -> PodCheck:
        POD_CHECKS[rule] = function
        return function

    return register


def object_check(rule: str) -> Callable[[ObjectCheck], ObjectCheck]:
    """Register the function of a rule about another kind."""

    def register(function: ObjectCheck) -> ObjectCheck:
        OBJECT_CHECKS[rule] = function
        return function

    return register


def load() -> None:
    """Import every module of rules."""
    from winready.lint.rules import (  # noqa: F401
        cluster,
        commands,
        hostprocess,
        images,
        objects,
        placement,
        pods,
        security,
    )

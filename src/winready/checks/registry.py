"""The table of checks: each verifies one requirement and says beforehand what it needs and how long it takes."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from winready.checks.context import Context

CheckFunction = Callable[["Context"], Awaitable[None]]
FeatureFunction = Callable[["Context"], Awaitable["Sight"]]
_CHECKS: dict[str, Check] = {}
_FEATURE_CHECKS: dict[str, FeatureCheck] = {}


@dataclass(frozen=True)
class Check:
    """A function that returns when the requirement is shown and raises when it is not."""

    requirement: str
    run: CheckFunction
    fixtures: frozenset[str]
    expected_s: float
    """Cluster seconds that it takes on a healthy cluster with warm images, fixtures not counted."""
    expected_s_per_node: float
    """And those that it takes for every judged Windows node, one after the other."""
    windows_pods: int
    """Windows pods that it starts for itself."""
    windows_pods_per_node: int
    """And those that it starts on every judged Windows node."""
    spared_s_per_node: Mapping[str, float] = field(default_factory=dict)
    """Cluster seconds for every judged Windows node that it does not take once the check of another requirement ran."""


def check(
    requirement: str,
    *,
    fixtures: tuple[str, ...] = (),
    expected_s: float,
    expected_s_per_node: float = 0,
    windows_pods: int = 0,
    windows_pods_per_node: int = 0,
    spared_s_per_node: Mapping[str, float] | None = None,
) -> Callable[[CheckFunction], CheckFunction]:
    """Register the check of a requirement."""

    def register(function: CheckFunction) -> CheckFunction:
        if requirement in _CHECKS:
            raise ValueError(f"two checks verify {requirement}")
        _CHECKS[requirement] = Check(
            requirement,
            function,
            frozenset(fixtures),
            expected_s,
            expected_s_per_node,
            windows_pods,
            windows_pods_per_node,
            spared_s_per_node or {},
        )
        return function

    return register


@dataclass(frozen=True)
class Sight:
    """What a cluster does with a feature, seen on every judged Windows node."""

    works: bool
    words: str
    """What was seen, as it goes on after "shown on windows-1, windows-2: "."""


@dataclass(frozen=True)
class FeatureCheck:
    """A function that looks what a cluster does with one feature of the matrix, whatever the data says of it.

    It raises `CheckFailed` where the feature is broken: neither what it should be nor simply not there.
    """

    feature: str
    run: FeatureFunction
    fixtures: frozenset[str]
    expected_s: float
    """Cluster seconds that it takes on a healthy cluster with warm images, fixtures not counted."""
    windows_pods_per_node: int
    """Windows pods that it starts on every judged Windows node, those that it shares with other features included."""


def feature_check(
    feature: str, *, fixtures: tuple[str, ...] = (), expected_s: float = 10, windows_pods_per_node: int = 0
) -> Callable[[FeatureFunction], FeatureFunction]:
    """Register the check of a feature."""

    def register(function: FeatureFunction) -> FeatureFunction:
        if feature in _FEATURE_CHECKS:
            raise ValueError(f"two checks show {feature}")
        _FEATURE_CHECKS[feature] = FeatureCheck(
            feature, function, frozenset(fixtures), expected_s, windows_pods_per_node
        )
        return function

    return register


def load_feature_checks() -> dict[str, FeatureCheck]:
    """Every check of a feature by the id of that feature."""
    load_checks()
    return _FEATURE_CHECKS


def load_checks() -> dict[str, Check]:
    """Every check by the id of its requirement."""
    from winready import checks

    for module in pkgutil.walk_packages(checks.__path__, prefix=f"{checks.__name__}."):
        importlib.import_module(module.name)
    return _CHECKS

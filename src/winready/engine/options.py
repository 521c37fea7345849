"""How a run is to be done: what the operator decided, typed, with every default from one place."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from winready.cluster.inventory import Inventory
from winready.cluster.settings import Settings
from winready.engine import defaults
from winready.engine.features import Wanted
from winready.engine.outcomes import FeatureResult, RequirementResult
from winready.engine.selection import Selection
from winready.engine.sights import Sights
from winready.engine.terms import Terms
from winready.engine.trying import Attempt
from winready.engine.with_upstream.prepare import Prepared, UpstreamOptions
from winready.engine.workloads import Step, Workload


@dataclass(frozen=True)
class Carried:
    """What is taken over from an earlier run of the same cluster instead of verified again."""

    results: tuple[RequirementResult, ...]
    nodes: tuple[str, ...]
    """Uids of all nodes that the cluster had."""
    judged: frozenset[str]
    """Names of the Windows nodes that the results are about."""
    sights: Sights
    """What that run saw of its pods: the rules judge them, too."""
    features: tuple[FeatureResult, ...] = ()
    tried: tuple[tuple[tuple[str, ...], Step], ...] = ()
    """How far pods of workloads came, by workload."""
    run_id: str = ""
    rebooting: bool = False
    """Whether it ended while it disturbed nodes: one of them may be about to reboot, or just rebooting."""


@dataclass(frozen=True)
class Unmet:
    """What was found before the run and keeps all of it from being fulfilled: everything selected has failed by it."""

    reason: str
    next_step: str
    expected: str
    observed: str


@dataclass(frozen=True)
class Options:
    """How a run is to be done."""

    settings: Settings
    selection: Selection = field(default_factory=Selection)
    nodes: int | None = defaults.NODES
    """Windows nodes to judge; None for all."""
    node_selector: dict[str, str] = field(default_factory=dict)
    allow_disruptive: bool = False
    terms: Terms = field(default_factory=Terms)
    parallel: int = defaults.PARALLEL
    timeout: float | None = None
    """Wall seconds after which what is not finished is given up."""
    carried: Carried | None = None
    engine: defaults.Engine = defaults.ENGINE
    upstream: UpstreamOptions | None = None
    """How e2e.test is used; needed by every engine but the native one."""
    unmet: Unmet | None = None
    inventory: Inventory | None = None
    """The cluster as it was found a moment ago; None when the run is to look for itself."""
    prepared: Prepared | None = None
    """e2e.test as it was compared with that cluster."""
    resume_with: str | None = None
    """Options that taking up the run again needs, as they are written; None when that cannot be."""
    features: tuple[Wanted, ...] = ()
    """Features of the matrix to show beside the requirements; the selection names the same."""
    workloads: tuple[Workload, ...] = ()
    """What the run is to answer for besides its verdict."""
    attempts: tuple[Attempt, ...] = ()
    """Which of them are started on the judged nodes."""
    record: dict[str, Any] = field(default_factory=dict)
    """What else the record of the run should say about how it was started."""

    @property
    def of_checks(self) -> Settings:
        """The settings as checks get them."""
        return replace(self.settings, takes_over=self.carried.run_id if self.carried else "")

    @property
    def secrets(self) -> list[str]:
        """What must not be told, whatever the cluster says."""
        return [secret for attempt in self.attempts for secret in attempt.secrets]

    @property
    def named(self) -> frozenset[str]:
        """Features that the operator says the cluster offers."""
        return frozenset({"gmsa"} if self.settings.active_directory else ())

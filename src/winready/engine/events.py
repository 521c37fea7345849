"""What happens in a run, as typed events: the only thing that leaves the engine."""

from __future__ import annotations

from typing import Any

import msgspec

from winready.cluster.inventory import Inventory
from winready.engine.outcomes import FeatureResult, RequirementResult, RuleResult
from winready.engine.plan import Plan
from winready.engine.selection import Selection
from winready.engine.sights import Sights
from winready.engine.terms import Terms
from winready.engine.verdict import Verdict
from winready.engine.workloads import Step, Workload, WorkloadResult

SCHEMA = "winready-journal/1"


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    """Something that happened, ``at_s`` wall seconds after the run began."""

    at_s: float


class RunStarted(Event, frozen=True, kw_only=True, tag="run-started"):
    """A run began."""

    run_id: str
    time: str
    tool: str
    spec_version: str
    spec_digest: str
    selection: Selection
    settings: dict[str, Any]
    schema: str = SCHEMA
    requirements: list[str] = []
    """What was selected, in the order of the run's own specification."""
    terms: Terms | None = None


class WorkloadsRead(Event, frozen=True, kw_only=True, tag="workloads-read"):
    """It is known which workloads the run is to answer for, and what they rely on."""

    workloads: list[Workload]


class InventoryTaken(Event, frozen=True, kw_only=True, tag="inventory-taken"):
    """The cluster was looked at."""

    inventory: Inventory


class PlanMade(Event, frozen=True, kw_only=True, tag="plan-made"):
    """It is known what will run and what cannot."""

    plan: Plan


class FixtureReady(Event, frozen=True, kw_only=True, tag="fixture-ready"):
    """Something that several checks share is there."""

    name: str
    seconds: float
    windows_pods: int


class FixtureFailed(Event, frozen=True, kw_only=True, tag="fixture-failed"):
    """Something that several checks share could not be had."""

    name: str
    reason: str


class RequirementStarted(Event, frozen=True, kw_only=True, tag="requirement-started"):
    """The verification of a requirement began."""

    id: str


class UpstreamProgress(Event, frozen=True, kw_only=True, tag="upstream-progress"):
    """An upstream test began or ended; what it means for requirements is judged when all have ended."""

    test: str
    text: str
    state: str
    done: int
    total: int


class PodsSeen(Event, frozen=True, kw_only=True, tag="pods-seen"):
    """The run saw something of its own pods that the rules look at, and that no event has told yet."""

    sights: Sights


class CheckFinished(Event, frozen=True, kw_only=True, tag="check-finished"):
    """Our own check of a requirement ended; its outcome waits for the upstream tests."""

    result: RequirementResult


class RequirementFinished(Event, frozen=True, kw_only=True, tag="requirement-finished"):
    """A requirement has its outcome."""

    result: RequirementResult


class FeatureFinished(Event, frozen=True, kw_only=True, tag="feature-finished"):
    """It is known whether a feature of the matrix is what the data says; no verdict looks at it."""

    result: FeatureResult


class WorkloadTried(Event, frozen=True, kw_only=True, tag="workload-tried"):
    """A workload's own pod was started on a node."""

    path: str
    kind: str
    namespace: str
    name: str
    step: Step


class WorkloadJudged(Event, frozen=True, kw_only=True, tag="workload-judged"):
    """Whether a workload will find what it relies on."""

    result: WorkloadResult


class Crashed(Event, frozen=True, kw_only=True, tag="crashed"):
    """winready itself failed, outside any check; what was not finished is in error."""

    error: str
    trace: str


class RuleJudged(Event, frozen=True, kw_only=True, tag="rule-judged"):
    """A rule has its outcome."""

    result: RuleResult


class CleanedUp(Event, frozen=True, kw_only=True, tag="cleaned-up"):
    """What the run created was removed; what could not be removed is listed."""

    leftovers: list[str]
    seconds: float


class RunFinished(Event, frozen=True, kw_only=True, tag="run-finished"):
    """The verdict."""

    verdict: Verdict
    windows_pods: int
    """How many Windows pods the run started."""


AnyEvent = (
    RunStarted
    | WorkloadsRead
    | InventoryTaken
    | PlanMade
    | FixtureReady
    | FixtureFailed
    | RequirementStarted
    | UpstreamProgress
    | PodsSeen
    | CheckFinished
    | RequirementFinished
    | FeatureFinished
    | WorkloadTried
    | WorkloadJudged
    | Crashed
    | RuleJudged
    | CleanedUp
    | RunFinished
)

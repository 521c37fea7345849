"""What is known of a fleet, as pages show it and as the API answers."""

from __future__ import annotations

from typing import Literal

import msgspec

from winready.engine.outcomes import Outcome
from winready.report.history import Entry

State = Literal["pass", "fail", "none"]
"""Of a cluster or a run: none is one that was interrupted."""
TONES: dict[State, str] = {"pass": "passed", "fail": "failed", "none": "blocked"}


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A run in a line."""

    run: str
    """What it is called here: its folder, which is its id unless it was copied."""
    run_id: str
    started: str
    duration_s: float
    state: State
    verdict: Literal["Pass", "Fail"] | None
    verdict_text: str
    exit_code: int
    scope: Literal["complete", "partial"]
    cluster: str
    label: str
    kubernetes: str
    windows: list[str]
    simulated: bool
    tool: str
    because: str
    """The first cause that kept it from passing; empty for a Pass."""
    causes: int


class Sign(msgspec.Struct, frozen=True):
    """An earlier run or outcome, as one sign."""

    run: str
    started: str
    tone: str
    """The outcome whose colour and sign it has."""


class ClusterState(msgspec.Struct, frozen=True, kw_only=True):
    """Where a cluster stands: its newest run."""

    cluster: str
    """What tells clusters apart."""
    label: str
    state: State
    age_s: int
    """Seconds since its newest run began."""
    runs: int
    newest: RunSummary
    complete: RunSummary | None = None
    """Where the newest run tells only a part: the newest that tells all."""
    counts: dict[str, int] = {}
    """How many requirements came out how, in the newest run."""
    recent: list[Sign] = []
    """The verdicts of its newest runs, newest first."""


class RequirementSum(msgspec.Struct, frozen=True, kw_only=True):
    """What clusters make of a requirement."""

    requirement: str
    category: str
    level: str
    statement: str
    counts: dict[str, int]
    """Clusters by their current outcome: that of the newest run which judged it."""
    clusters: int


class ClusterOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a cluster makes of one requirement."""

    cluster: str
    label: str
    kubernetes: str
    windows: list[str]
    simulated: bool
    outcome: Outcome
    reason: str
    run: str
    """The newest run that judged it."""
    started: str
    since: str
    """When it came out so for the first time without another outcome in between, as far as was looked back."""
    recent: list[Sign]


class Flaky(msgspec.Struct, frozen=True, kw_only=True):
    """A requirement that changed back and forth on one cluster and version."""

    requirement: str
    cluster: str
    label: str
    kubernetes: str
    turns: int
    """How often passed became failed, or failed passed."""
    passed: int
    failed: int
    reason: str
    """Of the newest failure."""
    recent: list[Sign]


class Month(msgspec.Struct, frozen=True, kw_only=True):
    """A month of runs."""

    month: str
    runs: int
    passed: int
    failed: int
    none: int
    clusters: int
    clusters_passing: int
    """Clusters whose last run of the month is a Pass."""


class RequirementMonths(msgspec.Struct, frozen=True, kw_only=True):
    """In how many runs of each month a requirement failed."""

    requirement: str
    failed: list[int]
    total: int


def state_of(entry: Entry) -> State:
    """What a run makes of its cluster."""
    if entry.interrupted or entry.verdict is None:
        return "none"
    return "pass" if entry.verdict == "Pass" else "fail"


def summarise(entry: Entry) -> RunSummary:
    """A run in a line."""
    return RunSummary(
        run=entry.folder,
        run_id=entry.run_id,
        started=entry.started,
        duration_s=entry.duration_s,
        state=state_of(entry),
        verdict="Pass" if entry.verdict == "Pass" else "Fail" if entry.verdict == "Fail" else None,
        verdict_text=entry.verdict_text,
        exit_code=entry.exit_code,
        scope="complete" if entry.scope == "complete" else "partial",
        cluster=entry.cluster,
        label=entry.label,
        kubernetes=entry.version,
        windows=split(entry.builds),
        simulated=bool(entry.simulated),
        tool=entry.tool,
        because=entry.because,
        causes=entry.causes,
    )


def split(builds: str) -> list[str]:
    """Windows builds as the index keeps them, each by itself."""
    return builds.split(", ") if builds else []

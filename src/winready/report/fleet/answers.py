"""What the API answers, each answer naming its kind and the schema that it follows."""

from __future__ import annotations

import msgspec

from winready.report.fleet.model import (
    ClusterOutcome,
    ClusterState,
    Flaky,
    Month,
    RequirementMonths,
    RequirementSum,
    RunSummary,
)

SCHEMA = "winready-api/1"


class _Answer(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    schema: str = SCHEMA


class Fleet(_Answer, frozen=True, kw_only=True, tag="fleet"):
    """How much there is, and how far the index is."""

    runs: int
    clusters: int
    states: dict[str, int]
    """Clusters by the state of their newest run: pass, fail, none."""
    damaged: int
    """Run folders that cannot be read."""
    pending: int
    """New runs that are yet to be taken in."""


class Clusters(_Answer, frozen=True, kw_only=True, tag="clusters"):
    """Where clusters stand."""

    clusters: list[ClusterState]
    total: int
    """How many there are on all pages."""
    page: int
    pages: int


class Runs(_Answer, frozen=True, kw_only=True, tag="runs"):
    """Runs, newest first."""

    runs: list[RunSummary]
    next: str
    """What to ask for with ``cursor`` to get those that follow; empty at the end."""


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a requirement in a run."""

    requirement: str
    outcome: str
    reason: str
    duration_s: float


class Run(_Answer, frozen=True, kw_only=True, tag="run"):
    """One run with its outcomes; evidence is in ``run.json``."""

    run: RunSummary
    results: list[RunResult]


class Requirements(_Answer, frozen=True, kw_only=True, tag="requirements"):
    """Every requirement that was ever judged, by how many clusters have which outcome now."""

    requirements: list[RequirementSum]


class Requirement(_Answer, frozen=True, kw_only=True, tag="requirement"):
    """One requirement across clusters."""

    requirement: str
    clusters: list[ClusterOutcome]
    months: list[str]
    outcomes: dict[str, list[int]]
    """Runs of each of these months, by outcome."""


class FlakyOnes(_Answer, frozen=True, kw_only=True, tag="flaky"):
    """What passed and failed in turns on one cluster and version."""

    flaky: list[Flaky]


class Trends(_Answer, frozen=True, kw_only=True, tag="trends"):
    """Months, oldest first, and which requirements failed in them."""

    months: list[Month]
    requirements: list[RequirementMonths]


class Refused(_Answer, frozen=True, kw_only=True, tag="error"):
    """What is wrong with a question."""

    error: str


Answer = Fleet | Clusters | Runs | Run | Requirements | Requirement | FlakyOnes | Trends | Refused

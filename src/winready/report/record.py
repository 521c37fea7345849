"""The record of a run, ``run.json``: put together from its events, and read back by everything that looks at runs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from winready.cluster.inventory import Inventory, is_simulated
from winready.engine import events, journal
from winready.engine.coverage import Coverage, cover
from winready.engine.journal import NOT_JSON, Unreadable
from winready.engine.outcomes import FeatureResult, RequirementResult, RuleResult
from winready.engine.plan import Plan
from winready.engine.selection import Selection
from winready.engine.verdict import EXIT_INTERRUPTED
from winready.engine.workloads import WorkloadResult
from winready.report.files import write_whole
from winready.spec.loader import load_standard

SCHEMA = "winready-run/1"
NAME = "run.json"
LONGEST = 366 * 86400
"""Seconds: no run takes a year."""


class Span(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something shared that checks waited for, and when."""

    name: str
    started_s: float
    seconds: float
    windows_pods: int = 0
    reason: str = ""
    """Why it could not be had; empty when it could."""


class Record(msgspec.Struct, kw_only=True):
    """Everything that is known of a run."""

    schema: str = SCHEMA
    run_id: str = ""
    tool: str = ""
    started: str = ""
    duration_s: float = 0.0
    verdict: Literal["Pass", "Fail"] | None = "Fail"
    """None when the run was interrupted."""
    verdict_text: str = "Fail (unfinished)"
    exit_code: int = 3
    scope: Literal["complete", "partial"] = "partial"
    verdict_reasons: list[str] = msgspec.field(default_factory=lambda: ["the run did not finish"])
    spec: dict[str, str] = {}
    selection: Selection = msgspec.field(default_factory=Selection)
    settings: dict[str, Any] = {}
    cluster: Inventory | None = None
    plan: Plan | None = None
    rules: list[RuleResult] = []
    requirements: list[RequirementResult] = []
    features: list[FeatureResult] = []
    """Features of the matrix that were to be shown; advisory, and never part of the verdict."""
    workloads: list[WorkloadResult] = []
    """Workloads that the run was to answer for, and whether they will find what they rely on."""
    fixtures: list[Span] = []
    cleanup_s: float = 0.0
    leftovers: list[str] = []
    windows_pods_started: int = 0
    selected: list[str] = []
    """What was to be verified, in the order of the run's own specification."""
    not_judged: dict[str, str] = {}
    """Windows nodes that the verdict says nothing about, and why."""
    linux_not_judged: dict[str, str] = {}
    """Linux nodes on which nothing of the run was, and why."""

    @property
    def interrupted(self) -> bool:
        """Whether it was ended before its time, so that there is no verdict; earlier versions called that a Fail."""
        return self.exit_code == EXIT_INTERRUPTED

    @property
    def simulated(self) -> bool:
        """Whether the cluster is a sandbox: by what its nodes say, or, of earlier versions, by who started it."""
        return self.settings.get("sandbox") is True or (self.cluster is not None and is_simulated(self.cluster))

    @property
    def time_scale(self) -> float:
        """What its waits were divided by; what is no number there is none here, and never 1."""
        found = self.settings.get("time_scale", 1)
        return float(found) if type(found) in (int, float) and abs(found) < LONGEST else math.nan

    @property
    def coverage(self) -> Coverage:
        """Which nodes the verdict is about."""
        if self.plan is None:
            return cover(self.cluster, [], {}, [])
        return cover(self.cluster, self.plan.windows_nodes, self.plan.nodes_left_out, self.plan.linux_nodes)

    def apply(self, event: events.AnyEvent) -> None:
        """Take in one more event."""
        self.duration_s = event.at_s
        match event:
            case events.RunStarted():
                self.run_id, self.tool, self.started = event.run_id, event.tool, event.time
                self.spec = {"version": event.spec_version, "digest": event.spec_digest}
                self.selection, self.settings, self.selected = event.selection, event.settings, event.requirements
            case events.InventoryTaken():
                self.cluster = event.inventory
            case events.PlanMade():
                self.plan = event.plan
                self.not_judged, self.linux_not_judged = self.coverage.not_judged, self.coverage.linux_not_judged
            case events.RequirementFinished():
                self.requirements = [*self.requirements, event.result]
            case events.FeatureFinished():
                self.features = [*self.features, event.result]
            case events.WorkloadJudged():
                self.workloads = [*self.workloads, event.result]
            case events.RuleJudged():
                self.rules = [*self.rules, event.result]
            case events.FixtureReady():
                began = round(event.at_s - event.seconds, 3)
                span = Span(name=event.name, started_s=began, seconds=event.seconds, windows_pods=event.windows_pods)
                self.fixtures = [*self.fixtures, span]
            case events.FixtureFailed():
                span = Span(name=event.name, started_s=0.0, seconds=event.at_s, reason=event.reason)
                self.fixtures = [*self.fixtures, span]
            case events.CleanedUp():
                self.leftovers, self.cleanup_s = event.leftovers, event.seconds
            case events.RunFinished():
                verdict = event.verdict
                self.verdict, self.verdict_text = verdict.verdict, str(verdict)
                self.exit_code, self.scope, self.verdict_reasons = verdict.exit_code, verdict.scope, verdict.reasons
                self.windows_pods_started = event.windows_pods

    def sort(self) -> None:
        """Bring the requirements into the order of the run's specification, as far as the run says."""
        # Runs of earlier versions did not; they followed the standard, or came without an order.
        known = self.selected or [item.id for item in load_standard().requirements]
        order = {name: index for index, name in enumerate(known)}
        self.requirements = sorted(self.requirements, key=lambda item: order.get(item.id, len(order)))
        wanted = {name: index for index, name in enumerate(self.selection.features)}
        self.features = sorted(self.features, key=lambda item: wanted.get(item.id, len(wanted)))


class RecordFile:
    """Keeps the record of a run that is followed, and writes it once the run has its verdict."""

    name = NAME

    def __init__(self, folder: Path) -> None:
        self.record = Record()
        self._folder = folder

    def start(self) -> None:
        """Nothing is written before the end."""

    def handle(self, event: events.AnyEvent) -> None:
        """Take in one event; a run without a verdict is told by its journal alone."""
        self.record.apply(event)
        if isinstance(event, events.RunFinished):
            self.record.sort()
            write(self.record, self._folder)

    def close(self) -> None:
        """Nothing is open."""


def from_events(happened: Iterable[events.AnyEvent]) -> Record:
    """The record of a run from its journal."""
    record = Record()
    for event in happened:
        record.apply(event)
    record.sort()
    return record


def encode(record: Record) -> bytes:
    """``run.json`` as it is written."""
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"


def write(record: Record, folder: Path) -> None:
    """Write ``run.json``."""
    write_whole(folder / NAME, encode(record))


def read(folder: Path) -> Record:
    """The record of a finished run; raises `Unreadable`."""
    path = folder / NAME
    try:
        data = journal.whole(path)
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}") from None
    try:
        head = msgspec.json.decode(data, type=_Head)
        if head.schema == SCHEMA:
            return _plausible(msgspec.json.decode(data, type=Record))
    except NOT_JSON as error:
        raise Unreadable(f"{path} is no record of a run: {error}") from None
    raise Unreadable(f"{path} is of the schema {head.schema[:40]!r}; this winready reads {SCHEMA}")


def read_events(folder: Path) -> list[events.AnyEvent]:
    """The events of a run, however far it came; raises `Unreadable`."""
    happened = journal.read(folder)
    if not happened or not isinstance(happened[0], events.RunStarted):
        raise Unreadable(f"{folder / journal.NAME} does not begin with the start of a run")
    if happened[0].schema != events.SCHEMA:
        raise Unreadable(
            f"{folder / journal.NAME} is of the schema {happened[0].schema[:40]!r}; this winready reads {events.SCHEMA}"
        )
    return happened


def read_story(folder: Path) -> Record:
    """The record of a run from its journal, however far it came; raises `Unreadable`."""
    try:
        return _plausible(from_events(read_events(folder)))
    except msgspec.ValidationError as error:
        raise Unreadable(f"{folder / journal.NAME} tells of no run that there can be: {error}") from None


def implausible(started: str, duration_s: float, exit_code: int) -> str:
    """Why no run can have been like that; empty if one can."""
    try:
        if started and datetime.fromisoformat(started).year < 2000:
            return "started is before there was Kubernetes"
    except ValueError:
        return "started is no time"
    if not 0 <= duration_s <= LONGEST:
        return f"duration_s is not between 0 and {LONGEST}"
    return "" if 0 <= exit_code <= 255 else "exit_code is not between 0 and 255"


def _plausible(record: Record) -> Record:
    wrong = implausible(record.started, record.duration_s, record.exit_code)
    times = [time for each in record.requirements for time in (each.started_s, each.duration_s)]
    times += [time for each in record.fixtures for time in (each.started_s, each.seconds)]
    times += [
        time for each in record.requirements for probe in each.evidence.probes for time in (probe.at_s, probe.seconds)
    ]
    if any(not -LONGEST <= time <= LONGEST for time in (*times, record.cleanup_s)):
        wrong = wrong or f"something began or took more than {LONGEST} seconds"
    if wrong:
        raise msgspec.ValidationError(wrong)
    return record


class _Head(msgspec.Struct):
    """Enough to know whether the rest can be read."""

    schema: str
    run_id: str

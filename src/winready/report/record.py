"""The record of a run, ``run.json``: put together from its events, and read back by everything that looks at runs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from winready.cluster.inventory import Inventory
from winready.engine import events
from winready.engine.outcomes import RequirementResult, RuleResult
from winready.engine.plan import Plan
from winready.engine.selection import Selection

SCHEMA = "winready-run/1"
NAME = "run.json"


class Record(msgspec.Struct, kw_only=True):
    """Everything that is known of a run."""

    schema: str = SCHEMA
    run_id: str = ""
    tool: str = ""
    started: str = ""
    duration_s: float = 0.0
    verdict: str = "Fail"
    verdict_text: str = "Fail (unfinished)"
    exit_code: int = 3
    scope: str = "partial"
    verdict_reasons: list[str] = msgspec.field(default_factory=lambda: ["the run did not finish"])
    spec: dict[str, str] = {}
    selection: Selection = msgspec.field(default_factory=Selection)
    settings: dict[str, Any] = {}
    cluster: Inventory | None = None
    plan: Plan | None = None
    rules: list[RuleResult] = []
    requirements: list[RequirementResult] = []
    leftovers: list[str] = []
    windows_pods_started: int = 0

    def apply(self, event: events.AnyEvent) -> None:
        """Take in one more event."""
        self.duration_s = event.at_s
        match event:
            case events.RunStarted():
                self.run_id, self.tool, self.started = event.run_id, event.tool, event.time
                self.spec = {"version": event.spec_version, "digest": event.spec_digest}
                self.selection, self.settings = event.selection, event.settings
            case events.InventoryTaken():
                self.cluster = event.inventory
            case events.PlanMade():
                self.plan = event.plan
            case events.RequirementFinished():
                self.requirements = [*self.requirements, event.result]
            case events.RuleJudged():
                self.rules = [*self.rules, event.result]
            case events.CleanedUp():
                self.leftovers = event.leftovers
            case events.RunFinished():
                verdict = event.verdict
                self.verdict, self.verdict_text = verdict.verdict, str(verdict)
                self.exit_code, self.scope, self.verdict_reasons = verdict.exit_code, verdict.scope, verdict.reasons
                self.windows_pods_started = event.windows_pods


def from_events(happened: Iterable[events.AnyEvent]) -> Record:
    """The record of a run from its journal."""
    record = Record()
    for event in happened:
        record.apply(event)
    return record


def write(record: Record, folder: Path) -> None:
    """Write ``run.json`` in one step, so that nobody ever reads half of it."""
    part = folder / f".{NAME}.part"
    part.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")
    os.replace(part, folder / NAME)


def read(folder: Path) -> Record:
    """The record of a finished run."""
    return msgspec.json.decode((folder / NAME).read_bytes(), type=Record)

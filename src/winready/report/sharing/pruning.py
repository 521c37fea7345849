"""Which runs of a folder are old enough to go: decided here, carried out by whoever can delete them."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from winready.cluster.settings import RUN_ID
from winready.engine import journal
from winready.report import folders
from winready.report.history import History, unfinished

ALL = 1_000_000
CUT_OFF = "cut off"


class Aged(NamedTuple):
    """A run, as far as its age matters."""

    name: str
    cluster: str
    """What tells clusters apart; of a run that was cut off, that."""
    label: str
    started: float | None
    """Seconds since 1970; None when nobody can tell."""
    verdict: str
    complete: bool = False
    """Whether all core requirements were judged."""
    going: bool = False
    why: str = ""
    """Why it cannot be read."""


@dataclass(frozen=True)
class Policy:
    """What stays. A run that one rule keeps is kept."""

    younger_than: float | None = None
    """Seconds."""
    newest: int | None = None
    """Of each cluster."""
    last_pass: bool = True
    """Of each cluster, however old it is."""


class Decision(NamedTuple):
    """A run and what becomes of it."""

    run: Aged
    stays: str
    """Why it stays; empty if it goes."""


def look(base: Path) -> list[Aged]:
    """The runs of a report folder."""
    with History(base) as index:
        index.sync()
        found = [
            Aged(
                entry.folder,
                entry.cluster,
                entry.label,
                _seconds(entry.started),
                entry.verdict_text,
                entry.scope == "complete",
            )
            for entry in index.runs(ALL)
        ]
        found += [Aged(name, "", "", None, "", why=why) for name, why in index.damaged()]
    for name, going in unfinished(base, ALL):
        found.append(Aged(name, CUT_OFF, CUT_OFF, _named(name), CUT_OFF, going=going))
    return found


def decide(runs: Iterable[Aged], policy: Policy, now: float) -> list[Decision]:
    """What becomes of each run, oldest first."""
    by_cluster: dict[str, list[Aged]] = defaultdict(list)
    for run in runs:
        by_cluster[run.cluster].append(run)
    decisions = []
    for group in by_cluster.values():
        group.sort(key=lambda run: (run.started or 0.0, run.name), reverse=True)
        passes = [run for run in group if run.verdict.startswith("Pass")]
        # A Pass of a few requirements must not take the place of one of all.
        last = {run.name for run in (*passes[:1], *[run for run in passes if run.complete][:1])}
        for place, run in enumerate(group):
            decisions.append(Decision(run, _stays(run, place, last, policy, now)))
    return sorted(decisions, key=lambda each: (each.run.started or 0.0, each.run.name))


def _stays(run: Aged, place: int, last_pass: set[str], policy: Policy, now: float) -> str:
    if run.going:
        return "it is in progress"
    if run.why:
        return f"it cannot be read: {run.why}"
    if run.started is None:
        return "nobody can tell how old it is"
    if policy.younger_than is not None and now - run.started < policy.younger_than:
        return "it is young enough"
    if policy.newest is not None and place < policy.newest:
        return f"it is one of the newest {policy.newest}"
    if policy.last_pass and run.name in last_pass:
        return "it is the last Pass of its cluster"
    return ""


def delete_folders(base: Path, names: Iterable[str], told: Callable[[str], None]) -> None:
    """Remove runs of a folder; each is gone in one step, and what is in progress meanwhile stays."""
    for name in names:
        folder = base / name
        if not folders.inside(base, folder) or journal.in_progress(folder):
            continue
        doomed = base / f".pruned-{name}"
        folder.rename(doomed)
        shutil.rmtree(doomed)
        told(name)
    for rest in base.glob(".pruned-*"):
        shutil.rmtree(rest, ignore_errors=True)


def _seconds(started: str) -> float | None:
    try:
        return datetime.fromisoformat(started).timestamp()
    except ValueError:
        return None


def _named(name: str) -> float | None:
    """When a run began, by its id."""
    if RUN_ID.fullmatch(name) is None:
        return None
    try:
        return datetime.strptime(name[:13], "%y%m%d-%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None

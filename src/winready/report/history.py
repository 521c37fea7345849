"""The history of runs: an index over the run folders, so that a thousand of them are looked at in no time.

The folders are the truth. The index can be deleted at any time; when it is damaged, of another version or cannot be
written, it is made anew, if need be in memory. A run that cannot be read is named and left out.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from winready.engine import journal
from winready.engine.verdict import EXIT_INTERRUPTED
from winready.report import folders, indexing

BATCH = 50
"""Runs that are taken in at once: between two batches whoever looks is let through."""
AT_ONCE = 200
"""More new runs than that are worth telling how far it is."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Entry:
    """A finished run in the index."""

    folder: str
    """What it is known by here; a copy of a run is another one."""
    run_id: str
    started: str
    at: float
    """The same in seconds."""
    duration_s: float
    verdict: str | None
    verdict_text: str
    exit_code: int
    scope: str
    cluster: str
    """What tells clusters apart: ``sandbox``, the uid of its kube-system namespace, else its address."""
    server: str
    label: str
    """The cluster as people know it."""
    version: str
    minor: str
    """``1.36``; empty where the version is none."""
    digest: str
    tool: str
    simulated: bool
    because: str
    """The first of the causes that kept it from passing; empty for a Pass."""
    causes: int
    """How many there are."""
    builds: str
    """The Windows builds of the cluster."""

    @property
    def interrupted(self) -> bool:
        """Whether it was ended before its time."""
        return self.exit_code == EXIT_INTERRUPTED


COLUMNS = ", ".join(each.name for each in fields(Entry))


class Outcome(NamedTuple):
    """The outcome of a requirement in a run."""

    outcome: str
    reason: str
    duration_s: float


class RuleSeen(NamedTuple):
    """The outcome of a rule in a run."""

    outcome: str
    reason: str
    gates: str
    waived: bool


class FeatureSeen(NamedTuple):
    """What a run shows of a feature."""

    name: str
    area: str
    outcome: str
    reason: str
    works: bool | None
    contradiction: bool
    way: str


class WorkloadSeen(NamedTuple):
    """What a run says of a workload; one that has passed is ready."""

    outcome: str
    reason: str


class Pending(NamedTuple):
    """What the index lacks, and what it has too much."""

    stamps: dict[str, str]
    changed: list[str]
    """Newest first, as far as names tell: whoever looks meanwhile sees where clusters stand now."""
    gone: list[str]

    def __bool__(self) -> bool:
        return bool(self.changed or self.gone)


class History:
    """The runs in a report folder. Threads may share one."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.lock = threading.RLock()
        self._database = indexing.open_index(base)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self.lock:
            self._database.close()

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """What the index answers to a question."""
        with self.lock:
            return self._database.execute(query, values).fetchall()

    def sync(self, progress: Progress | None = None) -> None:
        """Take in what changed in the folders since last time."""
        self.take(self.pending(), progress)

    def pending(self, found: Iterable[folders.Found] | None = None) -> Pending:
        """What changed in the folders since last time; ``found`` is what `folders.scan` has just seen."""
        seen = {each.name: each.stamp for each in (folders.scan(self.base) if found is None else found) if each.stamp}
        known = dict(self.rows("select folder, stamp from runs union all select folder, stamp from damaged"))
        changed = sorted((name for name, stamp in seen.items() if known.get(name) != stamp), reverse=True)
        return Pending(seen, changed, [name for name in known if name not in seen])

    def take(self, pending: Pending, progress: Progress | None = None) -> None:
        """Take it in, a batch at a time."""
        try:
            self._take(pending, progress)
        except sqlite3.DatabaseError:
            # Read-only, full or damaged: what matters is in the folders.
            with self.lock:
                self._database.close()
                self._database = indexing.fresh(":memory:")
            self._take(self.pending(), progress)

    def _take(self, pending: Pending, progress: Progress | None) -> None:
        if not pending:
            return
        with self.lock, self._database:
            indexing.forget(self._database, pending.gone)
        for start in range(0, len(pending.changed), BATCH):
            names = pending.changed[start : start + BATCH]
            taken = [indexing.read(self.base, name, pending.stamps[name]) for name in names]
            with self.lock, self._database:
                indexing.forget(self._database, names)
                known = indexing.numbers(self._database)
                for each in taken:
                    indexing.add(self._database, each, known)
            if progress:
                progress(start + len(names), len(pending.changed))
        with self.lock, self._database:
            self._database.execute("analyze")

    def damaged(self) -> list[tuple[str, str]]:
        """Folders whose run cannot be read, and why."""
        return self.rows("select folder, why from damaged order by folder")

    def runs(self, limit: int = 1000, where: str = "", values: Sequence[Any] = ()) -> list[Entry]:
        """The newest runs, newest first; ``where`` is a condition on columns of runs."""
        query = f"select {COLUMNS} from runs where {where or '1'} order by at desc, folder desc limit ?"  # noqa: S608
        return [Entry(*row) for row in self.rows(query, (*values, limit))]

    def results(self, runs: Sequence[Entry]) -> dict[str, dict[str, Outcome]]:
        """Outcomes by folder and requirement."""
        query = """select name, outcome, reason, results.duration_s from results
          join requirements on requirements.id = results.requirement"""
        found: dict[str, dict[str, Outcome]] = {run.folder: {} for run in runs}
        return found | {
            folder: {name: Outcome(*rest) for name, *rest in rows} for folder, rows in self._of_runs(query, runs)
        }

    def rules(self, runs: Sequence[Entry]) -> dict[str, dict[str, RuleSeen]]:
        """Outcomes of rules, by folder and rule."""
        query = "select rule, outcome, reason, gates, waived from rules"
        return {
            folder: {
                name: RuleSeen(outcome, reason, gates, bool(waived)) for name, outcome, reason, gates, waived in rows
            }
            for folder, rows in self._of_runs(query, runs)
        }

    def features(self, runs: Sequence[Entry]) -> dict[str, dict[str, FeatureSeen]]:
        """What was seen of features, by folder and feature; runs that were to show none are left out."""
        query = "select feature, name, area, outcome, reason, works, contradiction, way from features"
        return {
            folder: {
                feature: FeatureSeen(
                    name, area, outcome, reason, None if works is None else bool(works), bool(odd), way
                )
                for feature, name, area, outcome, reason, works, odd, way in rows
            }
            for folder, rows in self._of_runs(query, runs)
        }

    def workloads(self, runs: Sequence[Entry]) -> dict[str, dict[str, WorkloadSeen]]:
        """What was said of workloads, by folder and workload; runs that were asked about none are left out."""
        query = "select workload, outcome, reason from workloads"
        return {
            folder: {name: WorkloadSeen(*rest) for name, *rest in rows} for folder, rows in self._of_runs(query, runs)
        }

    def _of_runs(self, query: str, runs: Sequence[Entry]) -> Iterator[tuple[str, list[Any]]]:
        for run in runs:
            asked = f"{query} where run = (select id from runs where folder = ?)"  # noqa: S608
            if rows := self.rows(asked, (run.folder,)):
                yield run.folder, rows


def unfinished(base: Path, limit: int = 20, found: Iterable[folders.Found] | None = None) -> list[tuple[str, bool]]:
    """Runs that have a journal and no record, newest first, and whether they are still in progress."""
    seen = folders.scan(base) if found is None else found
    names = sorted((each.name for each in seen if each.journal and not each.stamp), reverse=True)
    return [(name, journal.in_progress(base / name)) for name in names[:limit]]


def counts(results: dict[str, Outcome]) -> str:
    """``20 passed, 3 failed``."""
    found = Counter(item.outcome for item in results.values())
    return ", ".join(f"{count} {name}" for name, count in found.most_common()) or "nothing run"

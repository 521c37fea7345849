"""The history of runs: an index over the run folders, so that a thousand of them are looked at in no time.

The folders are the truth. The index can be deleted at any time; when it is damaged, of another version or cannot be
written, it is made anew, if need be in memory. A run that cannot be read is named and left out.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec

from winready.engine import journal, outcomes
from winready.engine.verdict import EXIT_INTERRUPTED
from winready.engine.workloads import WorkloadResult, labelled
from winready.report import folders, record, words
from winready.report.causes import by_cause

NAME = ".history.sqlite3"
VERSION = 7
SANDBOX = "sandbox"
PATIENCE = 2.0
"""Seconds to wait for somebody else's work on the index; then it is made anew in memory."""
_TABLES = """
create table runs (
  folder text primary key, run_id text not null, stamp text not null, started text not null, duration_s real not null,
  verdict text, verdict_text text not null, exit_code integer not null, scope text not null,
  cluster text not null, server text not null, version text not null, digest text not null, tool text not null,
  simulated integer not null, because text not null, causes integer not null, builds text not null
) without rowid;
create table results (
  folder text not null, requirement text not null, outcome text not null, reason text not null,
  duration_s real not null, primary key (folder, requirement)
) without rowid;
create table rules (
  folder text not null, rule text not null, outcome text not null, reason text not null, gates text not null,
  waived integer not null, primary key (folder, rule)
) without rowid;
create table features (
  folder text not null, feature text not null, name text not null, area text not null, outcome text not null,
  reason text not null, works integer, contradiction integer not null, way text not null,
  primary key (folder, feature)
) without rowid;
create table workloads (
  folder text not null, workload text not null, outcome text not null, reason text not null,
  primary key (folder, workload)
) without rowid;
create table damaged (folder text primary key, stamp text not null, why text not null) without rowid;
"""
_TEXTS = ("folder", "run_id", "started", "verdict", "verdict_text", "scope", "cluster", "server", "because", "builds")


class _Result(msgspec.Struct):
    id: str
    outcome: outcomes.Outcome
    reason: str = ""
    duration_s: float = 0.0
    category: str = ""
    level: str = ""
    next_step: str = ""


class _Feature(_Result):
    name: str = ""
    area: str = ""
    way: str = ""
    works: bool | None = None
    contradiction: str = ""


class _Node(msgspec.Struct):
    os: str = ""
    build: str = ""


class _Cluster(msgspec.Struct):
    server: str = ""
    version: str = ""
    uid: str = ""
    simulated: bool = False
    nodes: list[_Node] = []


class _Run(msgspec.Struct):
    """What the index keeps of ``run.json``; evidence is skipped, not even decoded."""

    schema: str
    run_id: str
    started: str
    verdict: str | None
    verdict_text: str
    exit_code: int
    scope: str
    duration_s: float = 0.0
    tool: str = ""
    spec: dict[str, str] = {}
    settings: dict[str, Any] = {}
    cluster: _Cluster | None = None
    requirements: list[_Result] = []
    rules: list[outcomes.RuleResult] = []
    features: list[_Feature] = []
    workloads: list[WorkloadResult] = []


@dataclass(frozen=True)
class Entry:
    """A finished run in the index."""

    folder: str
    """What it is known by here; a copy of a run is another one."""
    run_id: str
    started: str
    duration_s: float
    verdict: str | None
    verdict_text: str
    exit_code: int
    scope: str
    cluster: str
    """What tells clusters apart: ``sandbox``, the uid of its kube-system namespace, else its address."""
    server: str
    version: str
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

    @property
    def label(self) -> str:
        """The cluster as people know it."""
        if self.cluster == SANDBOX:
            return SANDBOX
        name = self.server or self.cluster or "unknown"
        return f"{name} ({SANDBOX})" if self.simulated else name


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


class History:
    """The runs in a report folder."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self._database = _open(base)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()

    def sync(self) -> None:
        """Take in what changed in the folders since last time."""
        try:
            self._sync()
        except sqlite3.DatabaseError:
            # Read-only, full or damaged: what matters is in the folders.
            self._database.close()
            self._database = _fresh(":memory:")
            self._sync()

    def _sync(self) -> None:
        found = dict(stamps(self.base))
        known = dict(self._database.execute("select folder, stamp from runs"))
        known |= dict(self._database.execute("select folder, stamp from damaged"))
        changed = [folder for folder, stamp in found.items() if known.get(folder) != stamp]
        gone = [folder for folder in known if folder not in found]
        if not changed and not gone:
            return
        with self._database:
            for folder in [*gone, *changed]:
                self._forget(folder)
            for folder in changed:
                self._add(folder, found[folder])
            self._database.execute("analyze")

    def _forget(self, folder: str) -> None:
        for table in ("results", "rules", "features", "workloads", "runs", "damaged"):
            self._database.execute(f"delete from {table} where folder = ?", (folder,))  # noqa: S608

    def _add(self, folder: str, stamp: str) -> None:
        try:
            run = msgspec.json.decode(journal.whole(self.base / folder / record.NAME), type=_Run)
            if run.schema != record.SCHEMA:
                raise msgspec.DecodeError(f"it is of the schema {run.schema[:40]!r}, not {record.SCHEMA}")
            if wrong := record.implausible(run.started, run.duration_s, run.exit_code):
                raise msgspec.DecodeError(wrong)
        except (OSError, *journal.NOT_JSON) as error:
            self._database.execute("insert or replace into damaged values (?, ?, ?)", (folder, stamp, str(error)))
            return
        cluster = run.cluster or _Cluster()
        identity = SANDBOX if run.settings.get("sandbox") else cluster.uid or cluster.server
        row = (
            folder, run.run_id, stamp, run.started, run.duration_s, run.verdict, run.verdict_text, run.exit_code,
            run.scope, identity, cluster.server, cluster.version, run.spec.get("digest", ""), run.tool,
            bool(run.settings.get("sandbox")) or cluster.simulated, *_because(run),
            ", ".join(sorted({node.build for node in cluster.nodes if node.os == "windows" and node.build})),
        )  # fmt: skip
        self._database.execute(f"insert or replace into runs values ({', '.join('?' * len(row))})", row)  # noqa: S608
        self._database.executemany(
            "insert or replace into results values (?, ?, ?, ?, ?)",
            [
                (folder, item.id, item.outcome, "" if item.outcome == "passed" else item.reason, item.duration_s)
                for item in run.requirements
            ],
        )
        self._database.executemany(
            "insert or replace into rules values (?, ?, ?, ?, ?, ?)",
            [(folder, rule.id, rule.outcome, rule.reason, rule.gates, bool(rule.waived_by)) for rule in run.rules],
        )
        self._database.executemany(
            "insert or replace into features values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (folder, item.id, item.name, item.area, item.outcome, "" if item.outcome == "passed" else item.reason,
                 item.works, bool(item.contradiction), item.way)
                for item in run.features
            ],
        )  # fmt: skip
        self._database.executemany(
            "insert or replace into workloads values (?, ?, ?, ?)",
            [
                (folder, name, item.outcome, "" if item.ready else words.workload_reason(item))
                for name, item in labelled(run.workloads).items()
            ],
        )

    def damaged(self) -> list[tuple[str, str]]:
        """Folders whose run cannot be read, and why."""
        return list(self._database.execute("select folder, why from damaged order by folder"))

    def runs(self, limit: int = 1000) -> list[Entry]:
        """The newest runs, newest first."""
        columns = ", ".join(Entry.__dataclass_fields__)
        query = f"select {columns} from runs order by started desc, run_id desc limit ?"  # noqa: S608
        return [Entry(*row) for row in self._database.execute(query, (limit,))]

    def results(self, runs: Sequence[Entry]) -> dict[str, dict[str, Outcome]]:
        """Outcomes by folder and requirement."""
        wanted: dict[str, dict[str, Outcome]] = {run.folder: {} for run in runs}
        query = "select requirement, outcome, reason, duration_s from results where folder = ?"
        for folder, found in wanted.items():
            for requirement, *rest in self._database.execute(query, (folder,)):
                found[requirement] = Outcome(*rest)
        return wanted

    def rules(self, runs: Sequence[Entry]) -> dict[str, dict[str, RuleSeen]]:
        """Outcomes of rules, by folder and rule."""
        query = "select rule, outcome, reason, gates, waived from rules"
        return {
            folder: {
                name: RuleSeen(outcome, reason, gates, bool(waived)) for name, outcome, reason, gates, waived in rows
            }
            for folder, rows in self._advisory(query, runs)
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
            for folder, rows in self._advisory(query, runs)
        }

    def workloads(self, runs: Sequence[Entry]) -> dict[str, dict[str, WorkloadSeen]]:
        """What was said of workloads, by folder and workload; runs that were asked about none are left out."""
        query = "select workload, outcome, reason from workloads"
        return {
            folder: {name: WorkloadSeen(*rest) for name, *rest in rows} for folder, rows in self._advisory(query, runs)
        }

    def _advisory(self, query: str, runs: Sequence[Entry]) -> Iterator[tuple[str, list[Any]]]:
        for run in runs:
            if rows := self._database.execute(f"{query} where folder = ?", (run.folder,)).fetchall():
                yield run.folder, rows


def _because(run: _Run) -> tuple[str, int]:
    """The first cause that decided, and how many there are; rules are told by name, as no requirement shows them."""
    results = [
        outcomes.RequirementResult(
            id=item.id, category=item.category, level=item.level, outcome=item.outcome, reason=item.reason,
            next_step=item.next_step,
        )
        for item in run.requirements
    ]  # fmt: skip
    found = by_cause(results, run.rules, air_gapped=run.settings.get("air_gapped") is True)
    causes = [cause for cause in found if cause.decides]
    if run.verdict == "Pass" or not causes:
        return "", 0
    first = causes[0]
    return f"{first.concerns if len(first.ids) > 1 else first.ids[0]}: {first.reason}", len(causes)


def unfinished(base: Path, limit: int = 20) -> list[tuple[str, bool]]:
    """Runs that have a journal and no record, newest first, and whether they are still in progress."""
    names = sorted(
        (folder.name for folder in folders.runs(base, journal.NAME) if not (folder / record.NAME).exists()),
        reverse=True,
    )
    return [(name, journal.in_progress(base / name)) for name in names[:limit]]


def counts(results: dict[str, Outcome]) -> str:
    """``20 passed, 3 failed``."""
    found = Counter(item.outcome for item in results.values())
    return ", ".join(f"{count} {name}" for name, count in found.most_common()) or "nothing run"


def stamps(base: Path) -> Iterator[tuple[str, str]]:
    """Every run folder with a mark that changes when its record does."""
    for folder in folders.runs(base, record.NAME):
        with contextlib.suppress(OSError):
            status = (folder / record.NAME).stat()
            yield folder.name, f"{status.st_mtime_ns} {status.st_size}"


def _open(base: Path) -> sqlite3.Connection:
    path = base / NAME
    # Whoever made the folder may have made a link of it that leads to a file of somebody else.
    if not base.is_dir() or path.is_symlink() or (path.exists() and not path.is_file()):
        return _fresh(":memory:")
    try:
        database = sqlite3.connect(path, timeout=PATIENCE)
        try:
            if _ours(database) and database.execute("pragma quick_check").fetchone()[0] == "ok":
                return database
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise  # somebody works with it; it is not ours to throw away
        except sqlite3.DatabaseError:
            pass
        database.close()
        for name in (NAME, f"{NAME}-wal", f"{NAME}-shm", f"{NAME}-journal"):
            (base / name).unlink(missing_ok=True)
        return _fresh(str(path))
    except (sqlite3.Error, OSError):
        return _fresh(":memory:")


def _ours(database: sqlite3.Connection) -> bool:
    """Whether it has our tables and nothing else: a view or trigger of somebody else may never end."""
    if database.execute("pragma user_version").fetchone()[0] != VERSION:
        return False
    made = "select name, sql from sqlite_master order by name"
    with contextlib.closing(_fresh(":memory:")) as wanted:
        if database.execute(made).fetchall() != wanted.execute(made).fetchall():
            return False
    # What is no number there would end whoever reckons with it; text takes anything.
    odd = " or ".join(f"typeof({name}) not in ('integer', 'real')" for name in ("duration_s", "exit_code", "causes"))
    blobs = " or ".join(f"typeof({name}) = 'blob'" for name in _TEXTS)
    return database.execute(f"select 1 from runs where {odd} or {blobs} limit 1").fetchone() is None  # noqa: S608


def _fresh(path: str) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=PATIENCE)
    database.executescript(f"pragma journal_mode = wal; pragma synchronous = off; begin; {_TABLES}")
    database.execute(f"pragma user_version = {VERSION}")
    database.commit()
    return database

"""The index over run folders: its tables, and the way of one run into them.

Results are the bulk of it: forty or more of each run. They are kept by numbers, with a reason only where there is
something to tell, and what did not pass has an index of its own, so that ten thousand runs are a few megabytes.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from winready.engine import journal, outcomes
from winready.engine.workloads import WorkloadResult, labelled
from winready.report import record, words
from winready.report.causes import by_cause

NAME = ".history.sqlite3"
VERSION = 8
SANDBOX = "sandbox"
PATIENCE = 2.0
"""Seconds to wait for somebody else's work on the index; then it is made anew in memory."""
_MINOR = re.compile(r"v?([0-9]{1,4}\.[0-9]{1,4})")
IN_TROUBLE = "outcome in ('failed', 'error', 'blocked')"
"""What has an index of its own; SQLite uses it for questions that say exactly this."""
_TABLES = f"""
create table runs (
  id integer primary key, folder text not null unique, run_id text not null, stamp text not null, started text not null,
  at real not null, duration_s real not null, verdict text, verdict_text text not null, exit_code integer not null,
  scope text not null, cluster text not null, server text not null, label text not null, version text not null,
  minor text not null, digest text not null, tool text not null, simulated integer not null, because text not null,
  causes integer not null, builds text not null
);
create index runs_by_time on runs (at, folder);
create index runs_by_cluster on runs (cluster, at, folder);
create table requirements (id integer primary key, name text not null unique);
create table results (
  run integer not null, requirement integer not null, outcome text not null, reason text not null,
  duration_s real not null, primary key (run, requirement)
) without rowid;
create index results_in_trouble on results (requirement, outcome, run) where {IN_TROUBLE};
create table rules (
  run integer not null, rule text not null, outcome text not null, reason text not null, gates text not null,
  waived integer not null, primary key (run, rule)
) without rowid;
create table features (
  run integer not null, feature text not null, name text not null, area text not null, outcome text not null,
  reason text not null, works integer, contradiction integer not null, way text not null,
  primary key (run, feature)
) without rowid;
create table workloads (
  run integer not null, workload text not null, outcome text not null, reason text not null,
  primary key (run, workload)
) without rowid;
create table damaged (folder text primary key, stamp text not null, why text not null) without rowid;
"""
_OF_A_RUN = ("results", "rules", "features", "workloads")


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


class Taken(NamedTuple):
    """A run as it goes into the index, or why it does not."""

    folder: str
    stamp: str
    run: _Run | None
    why: str = ""


def read(base: Path, folder: str, stamp: str) -> Taken:
    """One run folder; what takes long, and touches no database."""
    try:
        run = msgspec.json.decode(journal.whole(base / folder / record.NAME), type=_Run)
        if run.schema != record.SCHEMA:
            raise msgspec.DecodeError(f"it is of the schema {run.schema[:40]!r}, not {record.SCHEMA}")
        if wrong := record.implausible(run.started, run.duration_s, run.exit_code):
            raise msgspec.DecodeError(wrong)
    except (OSError, *journal.NOT_JSON) as error:
        return Taken(folder, stamp, None, str(error))
    return Taken(folder, stamp, run)


def forget(database: sqlite3.Connection, folders: Iterable[str]) -> None:
    """Take runs out of the index."""
    for folder in folders:
        for (number,) in database.execute("select id from runs where folder = ?", (folder,)).fetchall():
            for table in _OF_A_RUN:
                database.execute(f"delete from {table} where run = ?", (number,))  # noqa: S608
            database.execute("delete from runs where id = ?", (number,))
        database.execute("delete from damaged where folder = ?", (folder,))


def numbers(database: sqlite3.Connection) -> dict[str, int]:
    """The number that each requirement has in this index."""
    return dict(database.execute("select name, id from requirements"))


def add(database: sqlite3.Connection, taken: Taken, known: dict[str, int]) -> None:
    """Take one run into the index, from which it was taken out before; ``known`` are `numbers`, and grows."""
    folder, stamp, run, why = taken
    if run is None:
        database.execute("insert or replace into damaged values (?, ?, ?)", (folder, stamp, why))
        return
    cluster = run.cluster or _Cluster()
    sandbox = bool(run.settings.get("sandbox"))
    simulated = sandbox or cluster.simulated
    identity = SANDBOX if sandbox else cluster.uid or cluster.server
    minor = _MINOR.match(cluster.version)
    row = (
        folder, run.run_id, stamp, run.started, _seconds(run.started), run.duration_s, run.verdict, run.verdict_text,
        run.exit_code, run.scope, identity, cluster.server, _label(identity, cluster.server, simulated),
        cluster.version, minor[1] if minor else "", run.spec.get("digest", ""), run.tool, simulated, *_because(run),
        ", ".join(sorted({node.build for node in cluster.nodes if node.os == "windows" and node.build})),
    )  # fmt: skip
    number = database.execute(f"insert into runs values (null, {', '.join('?' * len(row))})", row).lastrowid  # noqa: S608
    database.executemany(
        "insert or replace into results values (?, ?, ?, ?, ?)",
        [
            (number, _number(database, item.id, known), item.outcome, "" if item.outcome == "passed" else item.reason,
             item.duration_s)
            for item in run.requirements
        ],
    )  # fmt: skip
    database.executemany(
        "insert or replace into rules values (?, ?, ?, ?, ?, ?)",
        [
            (number, rule.id, rule.outcome, "" if rule.outcome == "passed" and not rule.waived_by else rule.reason,
             rule.gates, bool(rule.waived_by))
            for rule in run.rules
        ],
    )  # fmt: skip
    database.executemany(
        "insert or replace into features values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (number, item.id, item.name, item.area, item.outcome, "" if item.outcome == "passed" else item.reason,
             item.works, bool(item.contradiction), item.way)
            for item in run.features
        ],
    )  # fmt: skip
    database.executemany(
        "insert or replace into workloads values (?, ?, ?, ?)",
        [
            (number, name, item.outcome, "" if item.ready else words.workload_reason(item))
            for name, item in labelled(run.workloads).items()
        ],
    )


def _number(database: sqlite3.Connection, name: str, known: dict[str, int]) -> int:
    if name not in known:
        known[name] = database.execute("insert into requirements values (null, ?)", (name,)).lastrowid or 0
    return known[name]


def _label(identity: str, server: str, simulated: bool) -> str:
    """The cluster as people know it."""
    if identity == SANDBOX:
        return SANDBOX
    name = server or identity or "unknown"
    return f"{name} ({SANDBOX})" if simulated else name


def _seconds(started: str) -> float:
    """When a run began, as a number; a time that is nobody's is taken for one in UTC."""
    if not started:
        return 0.0
    found = datetime.fromisoformat(started)
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


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


def open_index(base: Path) -> sqlite3.Connection:
    """The index of a report folder; one that is damaged or of another version is made anew, if need be in memory."""
    path = base / NAME
    # Whoever made the folder may have made a link of it that leads to a file of somebody else.
    if not base.is_dir() or path.is_symlink() or (path.exists() and not path.is_file()):
        return fresh(":memory:")
    try:
        database = _connect(str(path))
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
        return fresh(str(path))
    except (sqlite3.Error, OSError):
        return fresh(":memory:")


def _ours(database: sqlite3.Connection) -> bool:
    """Whether it has our tables and nothing else: a view or trigger of somebody else may never end."""
    if database.execute("pragma user_version").fetchone()[0] != VERSION:
        return False
    with contextlib.closing(fresh(":memory:")) as wanted:
        if _made(database) != _made(wanted):
            return False
        tables = [name for kind, name, _ in _made(wanted) if kind == "table"]
        return not any(_odd(database, wanted, table) for table in tables)


def _made(database: sqlite3.Connection) -> list[tuple[str, str, str | None]]:
    """What it consists of, but for the statistics that ``analyze`` leaves."""
    rows = database.execute("select type, name, sql from sqlite_master order by name").fetchall()
    return [row for row in rows if row != ("table", "sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)")]


def _odd(database: sqlite3.Connection, wanted: sqlite3.Connection, table: str) -> bool:
    """Whether a table has values of other kinds than its columns: SQLite takes anything."""
    wrong = []
    for _, column, kind, needed, _, _ in wanted.execute(f"pragma table_info({table})"):
        kinds = ["text"] if kind.lower() == "text" else ["integer", "real"]
        allowed = ", ".join(f"'{name}'" for name in (kinds if needed else [*kinds, "null"]))
        wrong.append(f"typeof({column}) not in ({allowed})")
    return database.execute(f"select 1 from {table} where {' or '.join(wrong)} limit 1").fetchone() is not None  # noqa: S608


def fresh(path: str) -> sqlite3.Connection:
    """An empty index."""
    database = _connect(path)
    database.executescript(f"pragma journal_mode = wal; begin; {_TABLES}")
    database.execute(f"pragma user_version = {VERSION}")
    database.commit()
    return database


def _connect(path: str) -> sqlite3.Connection:
    # Whoever uses it holds the lock of its `History`; what is lost by a power cut is made again from the folders.
    database = sqlite3.connect(path, timeout=PATIENCE, check_same_thread=False)
    with contextlib.suppress(sqlite3.DatabaseError):
        database.execute("pragma synchronous = off")
    return database

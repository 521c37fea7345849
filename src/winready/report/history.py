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
from winready.report import record

NAME = ".history.sqlite3"
VERSION = 3
SANDBOX = "sandbox"
PATIENCE = 2.0
"""Seconds to wait for somebody else's work on the index; then it is made anew in memory."""
_TABLES = """
create table runs (
  folder text primary key, run_id text not null, stamp text not null, started text not null, duration_s real not null,
  verdict text not null, verdict_text text not null, exit_code integer not null, scope text not null,
  cluster text not null, server text not null, version text not null, digest text not null, tool text not null,
  simulated integer not null
) without rowid;
create table results (
  folder text not null, requirement text not null, outcome text not null, reason text not null,
  duration_s real not null, primary key (folder, requirement)
) without rowid;
create table damaged (folder text primary key, stamp text not null, why text not null) without rowid;
"""


class _Result(msgspec.Struct):
    id: str
    outcome: outcomes.Outcome
    reason: str = ""
    duration_s: float = 0.0


class _Cluster(msgspec.Struct):
    server: str = ""
    version: str = ""
    uid: str = ""
    simulated: bool = False


class _Run(msgspec.Struct):
    """What the index keeps of ``run.json``; evidence is skipped, not even decoded."""

    schema: str
    run_id: str
    started: str
    verdict: str
    verdict_text: str
    exit_code: int
    scope: str
    duration_s: float = 0.0
    tool: str = ""
    spec: dict[str, str] = {}
    settings: dict[str, Any] = {}
    cluster: _Cluster | None = None
    requirements: list[_Result] = []


@dataclass(frozen=True)
class Entry:
    """A finished run in the index."""

    folder: str
    """What it is known by here; a copy of a run is another one."""
    run_id: str
    started: str
    duration_s: float
    verdict: str
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
        for table in ("results", "runs", "damaged"):
            self._database.execute(f"delete from {table} where folder = ?", (folder,))  # noqa: S608

    def _add(self, folder: str, stamp: str) -> None:
        try:
            run = msgspec.json.decode((self.base / folder / record.NAME).read_bytes(), type=_Run)
            if run.schema != record.SCHEMA:
                raise msgspec.DecodeError(f"it is of the schema {run.schema[:40]!r}, not {record.SCHEMA}")
        except (OSError, *journal.NOT_JSON) as error:
            self._database.execute("insert or replace into damaged values (?, ?, ?)", (folder, stamp, str(error)))
            return
        cluster = run.cluster or _Cluster()
        identity = SANDBOX if run.settings.get("sandbox") else cluster.uid or cluster.server
        row = (
            folder, run.run_id, stamp, run.started, run.duration_s, run.verdict, run.verdict_text, run.exit_code,
            run.scope, identity, cluster.server, cluster.version, run.spec.get("digest", ""), run.tool,
            bool(run.settings.get("sandbox")) or cluster.simulated,
        )  # fmt: skip
        self._database.execute(f"insert or replace into runs values ({', '.join('?' * len(row))})", row)  # noqa: S608
        self._database.executemany(
            "insert or replace into results values (?, ?, ?, ?, ?)",
            [
                (folder, item.id, item.outcome, "" if item.outcome == "passed" else item.reason, item.duration_s)
                for item in run.requirements
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


def unfinished(base: Path, limit: int = 20) -> list[tuple[str, bool]]:
    """Runs that have a journal and no record, newest first, and whether they are still in progress."""
    folders = (path.parent for path in base.glob(f"*/{journal.NAME}"))
    names = sorted((folder.name for folder in folders if not (folder / record.NAME).exists()), reverse=True)
    return [(name, journal.in_progress(base / name)) for name in names[:limit]]


def counts(results: dict[str, Outcome]) -> str:
    """``20 passed, 3 failed``."""
    found = Counter(item.outcome for item in results.values())
    return ", ".join(f"{count} {name}" for name, count in found.most_common()) or "nothing run"


def stamps(base: Path) -> Iterator[tuple[str, str]]:
    """Every run folder with a mark that changes when its record does."""
    for path in base.glob(f"*/{record.NAME}"):
        with contextlib.suppress(OSError):
            status = path.stat()
            yield path.parent.name, f"{status.st_mtime_ns} {status.st_size}"


def _open(base: Path) -> sqlite3.Connection:
    path = base / NAME
    if not base.is_dir():
        return _fresh(":memory:")
    try:
        database = sqlite3.connect(path, timeout=PATIENCE)
        try:
            whole = database.execute("pragma quick_check").fetchone()[0] == "ok"
            if whole and database.execute("pragma user_version").fetchone()[0] == VERSION:
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


def _fresh(path: str) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=PATIENCE)
    database.executescript(f"pragma journal_mode = wal; pragma synchronous = off; begin; {_TABLES}")
    database.execute(f"pragma user_version = {VERSION}")
    database.commit()
    return database

"""What changed from run to run of a cluster, and which requirements cannot make up their mind."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from winready.report.comparing import RANKS
from winready.report.history import Entry, History, Outcome, counts

FLAKY_RUNS, FLAKY_TURNS = 10, 2
"""Flaky: among the last ten runs of a cluster, passed turned into failed or back at least twice."""


class RunLine(msgspec.Struct, frozen=True, kw_only=True):
    """A run and what it changed."""

    folder: str
    """What it is called on the command line; the same as its id unless it was copied."""
    run_id: str
    started: str
    verdict: str
    verdict_text: str
    exit_code: int
    version: str
    tool: str
    counts: str
    better: list[str]
    worse: list[str]


class ClusterRuns(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one cluster, newest first."""

    cluster: str
    label: str
    flaky: list[str]
    runs: list[RunLine]
    simulated: bool = False


def by_cluster(index: History, wanted: str | None, limit: int) -> list[ClusterRuns]:
    """Runs grouped by cluster, the one with the newest run first."""
    groups: dict[str, list[Entry]] = {}
    for entry in index.runs(limit=100_000):
        groups.setdefault(entry.cluster, []).append(entry)
    found = []
    for cluster, entries in groups.items():
        if wanted and not any(wanted.casefold() in text.casefold() for text in (cluster, entries[0].label)):
            continue
        results = index.results(entries[: max(limit + 1, FLAKY_RUNS)])
        lines = []
        for number, entry in enumerate(entries[:limit]):
            before = results[entries[number + 1].folder] if number + 1 < len(entries) else {}
            lines.append(_line(entry, results[entry.folder], before))
        newest = [results[entry.folder] for entry in entries[:FLAKY_RUNS]]
        found.append(
            ClusterRuns(
                cluster=cluster,
                label=entries[0].label,
                flaky=flaky(newest),
                runs=lines,
                simulated=bool(entries[0].simulated),
            )
        )
    return found


def _line(entry: Entry, results: dict[str, Outcome], before: dict[str, Outcome]) -> RunLine:
    both = {name: RANKS[item.outcome] - RANKS[before[name].outcome] for name, item in results.items() if name in before}
    return RunLine(
        folder=entry.folder,
        run_id=entry.run_id,
        started=entry.started,
        verdict=entry.verdict,
        verdict_text=entry.verdict_text,
        exit_code=entry.exit_code,
        version=entry.version,
        tool=entry.tool,
        counts=counts(results),
        better=[name for name, change in both.items() if change > 0],
        worse=[name for name, change in both.items() if change < 0],
    )


def flaky(runs: Sequence[dict[str, Outcome]]) -> list[str]:
    """Requirements that passed, failed and passed again (or the other way round) within these runs."""
    names = dict.fromkeys(name for run in runs for name in run)
    result = []
    for name in names:
        story = [run[name].outcome for run in runs if name in run and run[name].outcome in ("passed", "failed")]
        turns = sum(one != other for one, other in pairwise(story))
        if turns >= FLAKY_TURNS:
            result.append(name)
    return result

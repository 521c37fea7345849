"""Where each cluster of a fleet stands: its newest run, and what came before."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from winready.report.fleet.filters import Filter, FilterError
from winready.report.fleet.model import TONES, ClusterState, RunSummary, Sign, state_of, summarise
from winready.report.history import COLUMNS, Entry, History

RECENT = 24
"""So many of its runs are shown as one sign each."""
NEWEST = """with names as (select distinct cluster as name from runs),
  newest as (select (select id from runs where cluster = name order by at desc, folder desc limit 1) as number,
    (select count(*) from runs where cluster = name) as amount from names)"""
"""The newest run of each cluster by its number, and how many there are: found in an index alone."""
CHOICES = 500
"""Clusters to choose from; others are found by a part of their name."""
WHOLE = "cluster = ? and scope = 'complete' and exit_code <> 130"


class Newest(NamedTuple):
    """The newest run of a cluster, and how many it has."""

    entry: Entry
    runs: int


def _version(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"[0-9]{1,9}", text)[:3]]


SORTS: dict[str, Callable[[Newest], tuple[Any, ...]]] = {
    "state": lambda each: (("fail", "none", "pass").index(state_of(each.entry)), -each.entry.causes, each.entry.label),
    "cluster": lambda each: (each.entry.label.casefold(),),
    "kubernetes": lambda each: (_version(each.entry.version), each.entry.label),
    "windows": lambda each: ([_version(build) for build in each.entry.builds.split(", ")], each.entry.label),
    "age": lambda each: (-each.entry.at, each.entry.label),
    "runs": lambda each: (each.runs, each.entry.label),
}


def newest(index: History, wanted: Filter, sort: str = "state", before: float | None = None) -> list[Newest]:
    """The newest run of each cluster that fits, ``before``: and began before that time; raises `FilterError`."""
    where, values = wanted.where()
    if before is not None:
        where, values = f"{where} and at < ?", [*values, before]
    query = f"{NEWEST} select {COLUMNS}, amount from newest cross join runs on id = number where {where}"
    name = sort.removeprefix("-")
    if name not in SORTS:
        raise FilterError(f"sort is {sort[:40]!r}; it can be {', '.join(SORTS)}, each with - before it")
    found = [Newest(Entry(*row[:-1]), row[-1]) for row in index.rows(query, values)]
    return sorted(found, key=SORTS[name], reverse=sort.startswith("-"))


def states(index: History, found: Sequence[Newest], now: float) -> Iterator[ClusterState]:
    """These clusters with what came before; ask for as many as are shown."""
    outcomes = index.results([each.entry for each in found])
    for entry, runs in found:
        yield ClusterState(
            cluster=entry.cluster,
            label=entry.label,
            state=state_of(entry),
            age_s=max(0, round(now - entry.at)),
            runs=runs,
            newest=summarise(entry),
            complete=_complete(index, entry),
            counts=dict(Counter(item.outcome for item in outcomes[entry.folder].values())),
            recent=[
                Sign(run.folder, run.started, TONES[state_of(run)])
                for run in index.runs(RECENT, "cluster = ?", [entry.cluster])
            ],
        )


def _complete(index: History, entry: Entry) -> RunSummary | None:
    """Of a cluster whose newest run tells only a part: the newest that tells all."""
    if entry.scope == "complete" and not entry.interrupted:
        return None
    return next((summarise(run) for run in index.runs(1, WHOLE, [entry.cluster])), None)


def newest_by_version(index: History, q: str) -> list[Entry]:
    """The newest run of each cluster and Kubernetes version, by name and then version."""
    where, values = Filter(q=q).where()
    query = f"""with ranked as (select *, row_number() over (
        partition by cluster, version order by at desc, folder desc) as rank from runs where {where})
      select {COLUMNS} from ranked where rank = 1"""
    found = [Entry(*row) for row in index.rows(query, values)]
    return sorted(found, key=lambda entry: (entry.label.casefold(), entry.cluster, _version(entry.version)))


def sizes(index: History) -> tuple[int, int]:
    """How many runs and clusters there are."""
    runs, known = index.rows("select count(*), count(distinct cluster) from runs")[0]
    return runs, known


def choices(index: History) -> dict[str, list[tuple[str, str]]]:
    """What there is to choose from in a filter: (value, what people read)."""
    labels = index.rows(f"{NEWEST} select cluster, label from newest cross join runs on id = number")
    pairs = index.rows("select distinct minor, builds from runs")
    minors = {minor for minor, _ in pairs if minor}
    builds = {build for _, found in pairs for build in found.split(", ") if build}
    return {
        "cluster": sorted(labels, key=lambda pair: pair[1].casefold())[:CHOICES],
        "kubernetes": [(name, name) for name in sorted(minors, key=_version, reverse=True)],
        "windows": [(name, name) for name in sorted(builds, key=_version, reverse=True)],
    }

"""One requirement across clusters, and all of them: who fails what, and what cannot make up its mind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import groupby, pairwise
from typing import NamedTuple

from winready.engine.verdict import EXIT_INTERRUPTED
from winready.report.fleet.clusters import NEWEST
from winready.report.fleet.filters import Filter
from winready.report.fleet.model import ClusterOutcome, Flaky, RequirementSum, Sign, split
from winready.report.history import History
from winready.spec.loader import load_standard

LOOK_BACK = 20
"""Runs of a cluster among which the newest is looked for that judged a requirement, and among which it turns."""
TURNS = 2
UNKNOWN = 200
"""Requirements that are told although the standard does not have them."""
ORDER = ("failed", "error", "blocked", "passed", "not-applicable")
# What an interruption kept from being judged says nothing.
JUDGED = f"not (ranked.exit_code = {EXIT_INTERRUPTED} and results.outcome in ('blocked', 'error'))"


class Known(NamedTuple):
    """What the standard says of a requirement."""

    category: str
    level: str
    statement: str


def known() -> dict[str, Known]:
    """The requirements of the standard, in its order."""
    standard = load_standard()
    return {item.id: Known(item.category, standard.level(item), item.statement) for item in standard.requirements}


def _ranked(where: str) -> str:
    """The last runs of each cluster whose newest run fits."""
    return f"""{NEWEST}, fitting as (select cluster as chosen from newest cross join runs on id = number where {where}),
      every as (select id as number, row_number() over (partition by cluster order by at desc, folder desc) as rank
        from runs where cluster in (select chosen from fitting)),
      ranked as (select runs.*, rank from every cross join runs on runs.id = number where rank <= {LOOK_BACK})"""


def sums(index: History, wanted: Filter) -> list[RequirementSum]:
    """Every requirement that was ever judged, by how many clusters have which outcome now, in the standard's order."""
    where, values = wanted.where()
    query = f"""{_ranked(where)}, now as (
        select ranked.cluster, results.requirement, min(ranked.rank), results.outcome as outcome
        from ranked join results on results.run = ranked.id where {JUDGED} group by 1, 2)
      select name, outcome, count(*) from now join requirements on requirements.id = now.requirement group by 1, 2"""
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    for name, outcome, number in index.rows(query, values):
        counts[name][outcome] = number
    standard = known()
    names = [*(name for name in standard if name in counts), *sorted(set(counts) - set(standard))[:UNKNOWN]]
    return [_sum(name, counts[name], standard.get(name, Known("Others", "", ""))) for name in names]


def _sum(name: str, counts: Mapping[str, int], said: Known) -> RequirementSum:
    return RequirementSum(
        requirement=name,
        category=said.category,
        level=said.level,
        statement=said.statement,
        counts={outcome: counts[outcome] for outcome in ORDER if outcome in counts},
        clusters=sum(counts.values()),
    )


def across(index: History, requirement: str, wanted: Filter) -> list[ClusterOutcome]:
    """What each cluster makes of a requirement now, the worst first."""
    where, values = wanted.where()
    query = f"""{_ranked(where)}
      select ranked.cluster, label, version, builds, simulated, outcome, reason, folder, started
      from ranked join results on results.run = ranked.id
      where results.requirement = (select id from requirements where name = ?) and {JUDGED}
      order by ranked.cluster, rank"""
    found = []
    for _, rows in groupby(index.rows(query, (*values, requirement)), key=lambda row: row[0]):
        story = list(rows)
        cluster, label, version, builds, simulated, outcome, reason, folder, started = story[0]
        same = next((place for place, row in enumerate(story) if row[5] != outcome), len(story))
        found.append(
            ClusterOutcome(
                cluster=cluster,
                label=label,
                kubernetes=version,
                windows=split(builds),
                simulated=bool(simulated),
                outcome=outcome,
                reason=reason,
                run=folder,
                started=started,
                since=story[same - 1][8],
                recent=[Sign(row[7], row[8], row[5]) for row in story],
            )
        )
    return sorted(found, key=lambda item: (ORDER.index(item.outcome), item.label))


def flaky(index: History, wanted: Filter) -> list[Flaky]:
    """What passed and failed in turns among the last runs of a cluster on the version that it has now."""
    where, values = wanted.where()
    now = f"""{NEWEST}, fitting as (
        select cluster as chosen, version as current from newest cross join runs on id = number where {where}),
      every as (select id as number, row_number() over (partition by cluster order by at desc, folder desc) as rank
        from fitting cross join runs on cluster = chosen and version = current
        where exit_code <> {EXIT_INTERRUPTED}),
      ranked as (select runs.*, rank from every cross join runs on runs.id = number where rank <= {LOOK_BACK})"""
    # First those that are of two minds at all: they are few.
    torn = """select ranked.cluster, results.requirement from ranked join results on results.run = ranked.id
      where outcome in ('passed', 'failed') group by 1, 2 having min(outcome) <> max(outcome)"""
    query = f"""{now}, torn as ({torn})
      select name, ranked.cluster, label, version, outcome, reason, folder, started
      from torn join ranked on ranked.cluster = torn.cluster
        join results on results.run = ranked.id and results.requirement = torn.requirement
        join requirements on requirements.id = torn.requirement
      where outcome in ('passed', 'failed') order by ranked.cluster, name, rank"""
    found = []
    for (name, cluster), rows in groupby(index.rows(query, values), key=lambda row: (row[0], row[1])):
        story = list(rows)
        outcomes = [row[4] for row in story]
        turns = sum(one != other for one, other in pairwise(outcomes))
        if turns >= TURNS:
            found.append(
                Flaky(
                    requirement=name,
                    cluster=cluster,
                    label=story[0][2],
                    kubernetes=story[0][3],
                    turns=turns,
                    passed=outcomes.count("passed"),
                    failed=outcomes.count("failed"),
                    reason=next(row[5] for row in story if row[4] == "failed"),
                    recent=[Sign(row[6], row[7], row[4]) for row in story],
                )
            )
    return sorted(found, key=lambda item: (-item.turns, item.requirement, item.label))


def whole_name(index: History, text: str) -> str | None:
    """A requirement by its id, its key or the end of its id, if it was ever judged or the standard has it."""
    judged = {row[0] for row in index.rows("select name from requirements")}
    keys = {item.key.casefold(): item.id for item in load_standard().requirements}
    names = [*known(), *judged]
    if text in names:
        return text
    if text.casefold() in keys:
        return keys[text.casefold()]
    ends = {name for name in names if name.rpartition(".")[2] == text.casefold()}
    return ends.pop() if len(ends) == 1 else None

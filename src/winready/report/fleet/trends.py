"""What became of a fleet over months."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from winready.report.fleet.filters import STATES, Filter
from winready.report.fleet.model import Month, RequirementMonths
from winready.report.history import History
from winready.report.indexing import IN_TROUBLE

MONTHS = 24
"""The newest so many are shown."""
ROWS = 100
"""Requirements that are told; what a run made up itself must not fill the page."""
_END = 253402300800
"""The year 10000, of which SQLite knows no month."""
_MONTH = "strftime('%Y-%m', at, 'unixepoch')"


def months(index: History, wanted: Filter, most: int = MONTHS) -> list[Month]:
    """The newest months, oldest first; those without a run are there, too, so that time is even."""
    where, values = wanted.where()
    query = f"""with chosen as (
        select cluster, at, folder, verdict, exit_code, {_MONTH} as month from runs
        where at > 0 and at < {_END} and {where}),
      ranked as (select cluster, month, verdict, exit_code, row_number() over
        (partition by cluster, month order by at desc, folder desc) as rank
        from chosen)
      select month, count(*), sum({STATES["pass"]}), sum({STATES["fail"]}), sum({STATES["none"]}),
        count(distinct cluster), sum(rank = 1 and {STATES["pass"]})
      from ranked group by month order by month desc limit ?"""
    found = {row[0]: row[1:] for row in index.rows(query, (*values, most))}
    return [_month(name, found.get(name, (0,) * 6)) for name in _between(found)[-most:]]


def _month(name: str, row: tuple[int, ...]) -> Month:
    runs, passed, failed, none, clusters, passing = row
    return Month(
        month=name, runs=runs, passed=passed, failed=failed, none=none, clusters=clusters, clusters_passing=passing
    )


def _between(found: Iterable[str]) -> list[str]:
    """Every month from the first to the last; a run from another age does not make thousands of them."""
    made: list[int] = []
    for name in sorted(found):
        month = int(name[:-3]) * 12 + int(name[-2:]) - 1
        gap = range(made[-1] + 1, month) if made else range(0)
        made += [*(gap if len(gap) < MONTHS else ()), month]
    return [f"{each // 12:04}-{each % 12 + 1:02}" for each in made]


def failures(index: History, wanted: Filter, over: list[str]) -> list[RequirementMonths]:
    """In how many runs of these months each requirement failed, those that did most often first."""
    if not over:
        return []
    where, values = wanted.where()
    # Failures are few and have an index of their own: from them to their runs is the short way.
    query = f"""with bad as (select requirement, run from results where {IN_TROUBLE} and outcome = 'failed'),
      chosen as (select id as number, {_MONTH} as month from runs where at >= ? and {where}),
      counted as (select requirement, month, count(*) as amount
        from bad cross join chosen on number = run group by 1, 2)
      select name, month, amount from counted join requirements on requirements.id = counted.requirement"""
    places = {name: place for place, name in enumerate(over)}
    found: dict[str, list[int]] = {}
    for name, month, number in index.rows(query, (_begin(over[0]), *values)):
        if month in places:
            found.setdefault(name, [0] * len(over))[places[month]] = number
    made = [RequirementMonths(requirement=name, failed=row, total=sum(row)) for name, row in found.items()]
    return sorted(made, key=lambda item: (-item.total, item.requirement))[:ROWS]


def outcomes(index: History, requirement: str, wanted: Filter, over: list[str]) -> dict[str, list[int]]:
    """How often a requirement came out how in each of these months, by outcome."""
    if not over:
        return {}
    where, values = wanted.where()
    query = f"""with chosen as (select id, {_MONTH} as month from runs where at >= ? and {where})
      select outcome, month, count(*) from chosen join results on results.run = chosen.id and results.requirement =
        (select requirements.id from requirements where name = ?) group by 1, 2"""
    places = {name: place for place, name in enumerate(over)}
    found: dict[str, list[int]] = {}
    for outcome, month, number in index.rows(query, (_begin(over[0]), *values, requirement)):
        if month in places:
            found.setdefault(outcome, [0] * len(over))[places[month]] = number
    return found


def _begin(month: str) -> float:
    return datetime(int(month[:4]), int(month[5:7]), 1, tzinfo=UTC).timestamp()

"""The pages of a fleet: where clusters stand, requirements across them, flaky ones, and trends. All without script."""

from __future__ import annotations

from calendar import monthrange
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from winready.report.dashboard import charts
from winready.report.dashboard.site import Site, pages
from winready.report.fleet import clusters, filters, requirements, trends
from winready.report.fleet.model import state_of
from winready.report.history import History, unfinished

PER_PAGE = 50
OLDER = (1, 7, 30, 90)
"""Days: choices for clusters that nobody looked at for so long."""
Given = Mapping[str, str]


class FleetPages:
    """Pages over all clusters."""

    def __init__(self, site: Site) -> None:
        self.site = site

    async def fleet(self, request: web.Request) -> web.Response:
        """Clusters by where they stand."""
        return await self._page(request, "fleet.html", self._fleet)

    def _fleet(self, index: History, given: Given) -> dict[str, Any]:
        wanted, sort, now = filters.parse(given), given.get("sort") or "state", self.site.now()
        days = filters.number(given, "older", 0, 100_000)
        found = clusters.newest(index, wanted, sort, now - days * filters.DAY if days else None)
        page, last = pages(given, len(found), PER_PAGE)
        shown = found[(page - 1) * PER_PAGE : page * PER_PAGE]
        every = clusters.newest(index, filters.Filter(kind=wanted.kind))
        extra = {"sort": sort if sort != "state" else "", "older": str(days or "")}
        return {
            "clusters": list(clusters.states(index, shown, now)),
            "total": len(found),
            "every": len(every),
            "tally": Counter(state_of(each.entry) for each in every),
            "stale": sum(each.entry.at < now - 7 * filters.DAY for each in every),
            "runs": clusters.sizes(index)[0],
            "sort": sort,
            "older": days,
            "days": OLDER,
            "page": page,
            "last": last,
            "wanted": wanted,
            "link": lambda **changes: wanted.query(**{**extra, **changes}),
            "choices": clusters.choices(index),
            "unfinished": unfinished(self.site.base, found=self.site.looking.found),
            "damaged": index.damaged(),
        }

    async def requirements(self, request: web.Request) -> web.Response:
        """All requirements, by how many clusters have which outcome."""
        return await self._page(request, "requirements.html", self._requirements)

    def _requirements(self, index: History, given: Given) -> dict[str, Any]:
        wanted = filters.parse(given)
        found = requirements.sums(index, wanted)
        trouble = given.get("trouble") == "1"
        bad = [item for item in found if set(item.counts) & {"failed", "error", "blocked"}]
        groups: dict[str, list[Any]] = {}
        for item in bad if trouble else found:
            groups.setdefault(item.category, []).append((item, charts.share(item.counts, item.clusters)))
        return {
            "groups": groups,
            "trouble": trouble,
            "bad": len(bad),
            "found": len(found),
            "turning": Counter(item.requirement for item in requirements.flaky(index, wanted)),
            "wanted": wanted,
            "choices": clusters.choices(index),
        }

    async def requirement(self, request: web.Request) -> web.Response:
        """One requirement across clusters."""
        name = await self.site.ask(lambda index: requirements.whole_name(index, request.match_info["requirement"]))
        if name is None:
            raise self.site.missing(request, "There is no such requirement, neither in the standard nor in any run.")
        return await self._page(request, "requirement.html", lambda index, given: self._requirement(index, given, name))

    def _requirement(self, index: History, given: Given, name: str) -> dict[str, Any]:
        wanted = filters.parse(given)
        found = requirements.across(index, name, wanted)
        shown = [item for item in found if not given.get("now") or item.outcome == given["now"]]
        page, last = pages(given, len(shown), PER_PAGE)
        over = [month.month for month in trends.months(index, wanted)]
        outcomes = trends.outcomes(index, name, wanted, over)
        return {
            "name": name,
            "known": requirements.known().get(name),
            "found": shown[(page - 1) * PER_PAGE : page * PER_PAGE],
            "counts": Counter(item.outcome for item in found),
            "order": requirements.ORDER,
            "now": given.get("now", ""),
            "months": over,
            "outcomes": outcomes,
            "chart": charts.stacked(over, outcomes, "runs"),
            "page": page,
            "last": last,
            "wanted": wanted,
            "link": lambda **changes: wanted.query(**{"now": given.get("now", ""), **changes}),
            "choices": clusters.choices(index),
        }

    async def flaky(self, request: web.Request) -> web.Response:
        """What passes and fails in turns."""
        return await self._page(request, "flaky.html", self._flaky)

    def _flaky(self, index: History, given: Given) -> dict[str, Any]:
        wanted = filters.parse(given)
        found = requirements.flaky(index, wanted)
        page, last = pages(given, len(found), PER_PAGE)
        return {
            "found": found[(page - 1) * PER_PAGE : page * PER_PAGE],
            "total": len(found),
            "most": Counter(item.requirement for item in found).most_common(5),
            "look_back": requirements.LOOK_BACK,
            "page": page,
            "last": last,
            "wanted": wanted,
            "link": wanted.query,
            "choices": clusters.choices(index),
        }

    async def trends(self, request: web.Request) -> web.Response:
        """Months."""
        return await self._page(request, "trends.html", self._trends)

    def _trends(self, index: History, given: Given) -> dict[str, Any]:
        wanted = filters.parse(given)
        months = trends.months(index, wanted)
        names = [month.month for month in months]
        failures = trends.failures(index, wanted, names)
        most = max((value for item in failures for value in item.failed), default=1)
        runs = {
            "passed": [month.passed for month in months],
            "failed": [month.failed for month in months],
            "blocked": [month.none for month in months],
        }
        passing = {
            "passed": [month.clusters_passing for month in months],
            "failed": [month.clusters - month.clusters_passing for month in months],
        }
        return {
            "months": months,
            "ends": {name: f"{name}-{monthrange(int(name[:4]), int(name[5:]))[1]}" for name in names},
            "runs": charts.stacked(names, runs, "runs"),
            "passing": charts.stacked(names, passing, "clusters"),
            "failures": [(item, charts.spark(item.failed, most, names)) for item in failures],
            "wanted": wanted,
            "choices": clusters.choices(index),
        }

    async def _page(
        self, request: web.Request, template: str, make: Callable[[History, Given], dict[str, Any]]
    ) -> web.Response:
        try:
            return await self.site.ask(lambda index: self.site.page(request, template, **make(index, request.query)))
        except filters.FilterError as error:
            raise self.site.mistaken(request, error) from None

"""The API: what the pages show, as JSON. ``winready spec schema --of api`` describes every answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from winready.report.dashboard.site import Site, pages
from winready.report.fleet import answers, clusters, filters, requirements, trends
from winready.report.fleet.model import state_of, summarise
from winready.report.fleet.paging import page_of_runs
from winready.report.history import History

PER_PAGE, MOST = 100, 500
ROOT = "/api/v1"


class Api:
    """Answers under ``/api/v1``."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def routes(self) -> list[web.RouteDef]:
        """Its addresses."""
        return [
            web.get(ROOT, self._answering(self.fleet)),
            web.get(f"{ROOT}/clusters", self._answering(self.clusters)),
            web.get(f"{ROOT}/runs", self._answering(self.runs)),
            web.get(f"{ROOT}/runs/{{name}}", self._answering(self.run)),
            web.get(f"{ROOT}/requirements", self._answering(self.requirements)),
            web.get(f"{ROOT}/requirements/{{name}}", self._answering(self.requirement)),
            web.get(f"{ROOT}/flaky", self._answering(self.flaky)),
            web.get(f"{ROOT}/trends", self._answering(self.trends)),
        ]

    def _answering(self, answer: Callable[[History, Mapping[str, str]], answers.Answer | None]) -> Handler:
        async def handler(request: web.Request) -> web.Response:
            given = {**request.query, **request.match_info}
            try:
                found = await self.site.ask(lambda index: answer(index, given))
            except filters.FilterError as error:
                return _json(answers.Refused(error=str(error)), 400)
            if found is None:
                return _json(answers.Refused(error=f"there is no {request.match_info['name'][:200]!r} here"), 404)
            return _json(found)

        return handler

    def fleet(self, index: History, given: Mapping[str, str]) -> answers.Fleet:
        """How much there is."""
        number, known = clusters.sizes(index)
        done, total = self.site.looking.progress or (0, 0)
        return answers.Fleet(
            runs=number,
            clusters=known,
            states=dict(Counter(state_of(each.entry) for each in clusters.newest(index, filters.Filter()))),
            damaged=len(index.damaged()),
            pending=total - done,
        )

    def clusters(self, index: History, given: Mapping[str, str]) -> answers.Clusters:
        """Where clusters stand."""
        now = self.site.now()
        days = filters.number(given, "older", 0, 100_000)
        before = now - days * filters.DAY if days else None
        found = clusters.newest(index, filters.parse(given), given.get("sort") or "state", before)
        size = filters.number(given, "limit", PER_PAGE, MOST)
        page, last = pages(given, len(found), size)
        shown = found[(page - 1) * size : page * size]
        return answers.Clusters(
            clusters=list(clusters.states(index, shown, now)), total=len(found), page=page, pages=last
        )

    def runs(self, index: History, given: Mapping[str, str]) -> answers.Runs:
        """Runs, newest first."""
        limit = filters.number(given, "limit", PER_PAGE, MOST)
        found, after = page_of_runs(index, filters.parse(given), given.get("cursor", ""), limit)
        return answers.Runs(runs=[summarise(entry) for entry in found], next=after)

    def run(self, index: History, given: Mapping[str, str]) -> answers.Run | None:
        """One run with its outcomes."""
        for entry in index.runs(1, "folder = ?", [given["name"]]):
            results = [
                answers.RunResult(
                    requirement=name, outcome=item.outcome, reason=item.reason, duration_s=item.duration_s
                )
                for name, item in index.results([entry])[entry.folder].items()
            ]
            return answers.Run(run=summarise(entry), results=results)
        return None

    def requirements(self, index: History, given: Mapping[str, str]) -> answers.Requirements:
        """All of them, by how many clusters have which outcome."""
        return answers.Requirements(requirements=requirements.sums(index, filters.parse(given)))

    def requirement(self, index: History, given: Mapping[str, str]) -> answers.Requirement | None:
        """One of them across clusters."""
        name, wanted = requirements.whole_name(index, given["name"]), filters.parse(given)
        if name is None:
            return None
        over = [month.month for month in trends.months(index, wanted)]
        return answers.Requirement(
            requirement=name,
            clusters=requirements.across(index, name, wanted),
            months=over,
            outcomes=trends.outcomes(index, name, wanted, over),
        )

    def flaky(self, index: History, given: Mapping[str, str]) -> answers.FlakyOnes:
        """What cannot make up its mind."""
        return answers.FlakyOnes(flaky=requirements.flaky(index, filters.parse(given)))

    def trends(self, index: History, given: Mapping[str, str]) -> answers.Trends:
        """Months."""
        wanted = filters.parse(given)
        found = trends.months(index, wanted)
        return answers.Trends(
            months=found, requirements=trends.failures(index, wanted, [month.month for month in found])
        )


def _json(answer: answers.Answer, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(answer), status=status, content_type="application/json")

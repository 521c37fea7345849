"""The dashboard: its addresses, and the pages of runs. It only reads: run folders in, HTML and events out."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.client_exceptions import ClientConnectionResetError

from winready.engine import journal
from winready.report import comparison_forms, record
from winready.report.comparing import compare
from winready.report.dashboard.api import Api
from winready.report.dashboard.fleet_pages import FleetPages
from winready.report.dashboard.grid import make_grid
from winready.report.dashboard.guard import BASE, Access, make_guard, secure
from winready.report.dashboard.live import follow
from winready.report.dashboard.metrics import Metrics
from winready.report.dashboard.site import Site, static
from winready.report.fleet import clusters, filters
from winready.report.fleet.paging import page_of_runs
from winready.report.folders import inside
from winready.report.history import History, unfinished
from winready.report.html import page

COLUMNS, MOST_COLUMNS = 200, 1000
"""Runs on a page of the grid, and how many somebody may ask for."""
WARMING = web.AppKey("warming", asyncio.Task[Any])


class Dashboard:
    """Serves one report folder; what takes long is done beside the loop, so that live runs go on."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.site = Site(base)

    def app(self, access: Access | None = None) -> web.Application:
        """The application, with everything below the prefix."""
        access = access or Access()
        pages, api, metrics = FleetPages(self.site), Api(self.site), Metrics(self.site)
        routes = [
            web.get("/", self.home),
            web.get("/fleet", pages.fleet),
            web.get("/requirements", pages.requirements),
            web.get("/requirements/{requirement}", pages.requirement),
            web.get("/flaky", pages.flaky),
            web.get("/trends", pages.trends),
            web.get("/grid", self.grid),
            web.get("/grid.json", self.grid_data),
            web.get("/runs/{run}", self.run),
            web.get("/runs/{run}/live", self.live),
            web.get("/runs/{run}/events", self.events),
            web.get("/compare", self.compare),
            web.get("/static/{name}", static),
            web.get("/favicon.ico", _no_icon),
            web.get("/metrics", metrics.metrics),
            *api.routes(),
        ]
        app = web.Application(middlewares=[make_guard(access)])
        app.on_startup.append(self.warm_up)
        app.on_cleanup.append(self.close)
        if access.prefix:
            inner = web.Application()
            inner.add_routes(routes)
            app.router.add_get(access.prefix, _slash)
            app.add_subapp(access.prefix, inner)
        else:
            app.add_routes(routes)
        return app

    async def warm_up(self, app: web.Application) -> None:
        """Take in all runs before the first visitor asks, without keeping anybody waiting."""
        app[WARMING] = asyncio.create_task(self.site.ask(clusters.sizes))

    async def close(self, app: web.Application) -> None:
        """Let go of the index."""
        with contextlib.suppress(Exception):
            await app[WARMING]
        await asyncio.to_thread(self.site.looking.close)

    async def home(self, request: web.Request) -> web.Response:
        """The fleet, or where there is only one cluster, its runs."""
        _, number = await self.site.ask(clusters.sizes)
        raise web.HTTPFound(f"{request[BASE]}{'fleet' if number > 1 else 'grid'}")

    async def grid(self, request: web.Request) -> web.Response:
        """Requirements by runs, a page of them; its data comes along, so that one request shows it all."""
        try:
            return await self.site.ask(
                lambda index: self.site.page(request, "grid.html", **self.gridded(index, request.query))
            )
        except filters.FilterError as error:
            raise self.site.mistaken(request, error) from None

    async def grid_data(self, request: web.Request) -> web.Response:
        """The same for machines."""
        try:
            found = await self.site.ask(lambda index: self.gridded(index, request.query))
        except filters.FilterError as error:
            raise web.HTTPBadRequest(text=f"{error}\n") from None
        return web.Response(body=msgspec.json.encode(found["data"]), content_type="application/json")

    def gridded(self, index: History, query: Any) -> dict[str, Any]:
        """A page of the grid: the runs that fit, and what is around them."""
        wanted = filters.parse(query)
        limit = filters.number(query, "limit", COLUMNS, MOST_COLUMNS)
        entries, older = page_of_runs(index, wanted, query.get("before", ""), limit)
        kept = {name: query.get(name, "") for name in ("limit", "find", "trouble")}
        where, values = wanted.where()
        data = make_grid(index, entries)
        data["damaged"] = [{"run": name, "why": why} for name, why in index.damaged()]
        return {
            "data": data,
            "unfinished": unfinished(self.base, found=self.site.looking.found),
            "wanted": wanted,
            "choices": clusters.choices(index),
            "total": index.rows(f"select count(*) from runs where {where}", values)[0][0],  # noqa: S608
            "older": wanted.query(before=older, **kept) if older else "",
            "newest": wanted.query(**kept) or f"limit={COLUMNS}" if query.get("before") else "",
        }

    async def run(self, request: web.Request) -> web.Response:
        """A run's report, with the way back; one in progress is shown as it goes on."""
        folder = self._folder(request, request.match_info["run"])
        if not (folder / record.NAME).exists() and journal.in_progress(folder):
            raise web.HTTPFound(f"{request[BASE]}runs/{folder.name}/live")
        return _own_policy(await asyncio.to_thread(self._report, request, folder))

    def _report(self, request: web.Request, folder: Path) -> str:
        found, note = self._record(request, folder)
        return page.render(found, home=request[BASE], note=note)

    async def live(self, request: web.Request) -> web.Response:
        """A run in progress."""
        folder = self._folder(request, request.match_info["run"])
        return self.site.page(request, "live.html", run=folder.name)

    async def events(self, request: web.Request) -> web.StreamResponse:
        """The events of a run as they are written."""
        folder = self._folder(request, request.match_info["run"])
        last = request.headers.get("Last-Event-ID", "0")
        offset = int(last) if last.isdecimal() and len(last) < 16 else 0
        # A proxy that gathers what it passes on would keep a run that goes on to itself.
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
        secure(response)
        await response.prepare(request)
        with contextlib.suppress(ClientConnectionResetError, ConnectionResetError):
            async for at, event in follow(folder, offset, lambda: request.transport is not None):
                await response.write(b"id: %d\ndata: %s\n\n" % (at, msgspec.json.encode(event)))
        return response

    async def compare(self, request: web.Request) -> web.Response:
        """Two runs side by side."""
        folders = [self._folder(request, request.query.get(name, "")) for name in ("a", "b")]
        return _own_policy(await asyncio.to_thread(self._comparison, request, *folders))

    def _comparison(self, request: web.Request, a: Path, b: Path) -> str:
        found = compare(self._record(request, a)[0], self._record(request, b)[0])
        return comparison_forms.as_html(found, home=request[BASE], runs=(a.name, b.name))

    def _folder(self, request: web.Request, name: str) -> Path:
        """A run's folder by its name; names of anything else lead nowhere."""
        if name and not name.startswith(".") and not set(name) & set("/\\\x00"):
            folder = self.base / name
            if any((folder / part).is_file() for part in (record.NAME, journal.NAME)) and inside(self.base, folder):
                return folder
        raise self.site.missing(request, "There is no such run.")

    def _record(self, request: web.Request, folder: Path) -> tuple[record.Record, str]:
        """A run by its record, or by its journal; then with a note that says why."""
        note = "This run was cut off before it had a verdict. Below is what its journal tells."
        try:
            if (folder / record.NAME).exists():
                return record.read(folder), ""
        except journal.Unreadable as error:
            note = f"{error}. Below is what the run's journal tells."
        try:
            return record.read_story(folder), note
        except journal.Unreadable as error:
            raise self.site.missing(request, f"Run {folder.name} cannot be read: {error}.") from None


async def _no_icon(request: web.Request) -> web.Response:
    """Browsers ask for it unasked."""
    return web.Response(status=204)


async def _slash(request: web.Request) -> web.Response:
    """The prefix as somebody types it."""
    raise web.HTTPFound(request[BASE])


def _own_policy(text: str) -> web.Response:
    """A page that brings its own, stricter policy along, which the header must not take away."""
    headers = {"Content-Security-Policy": "frame-ancestors 'none'"}
    return web.Response(text=text, content_type="text/html", headers=headers)

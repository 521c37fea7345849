"""The dashboard's pages. It only reads: run folders in, HTML and events out."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from aiohttp import web
from aiohttp.client_exceptions import ClientConnectionResetError

from winready.engine import journal
from winready.report import comparison_forms, record
from winready.report.comparing import compare
from winready.report.dashboard.grid import make_grid
from winready.report.dashboard.guard import make_guard, secure
from winready.report.dashboard.live import follow
from winready.report.folders import inside
from winready.report.history import History, stamps, unfinished
from winready.report.html import page
from winready.report.words import MARKS

STATIC = {
    "base.css": "text/css",
    "dashboard.css": "text/css",
    "grid.js": "text/javascript",
    "live.js": "text/javascript",
}
WARMING = web.AppKey("warming", asyncio.Task[dict[str, Any]])


class Dashboard:
    """Serves one report folder; what takes long is done beside the loop, so that live runs go on."""

    def __init__(self, base: Path) -> None:
        self.base = base
        loaders = [jinja2.PackageLoader("winready.report.dashboard"), jinja2.PackageLoader("winready.report.html")]
        self._templates = jinja2.Environment(
            loader=jinja2.ChoiceLoader(loaders), autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
        )
        self._templates.globals |= {"MARKS": MARKS}
        self._making = threading.Lock()
        self._made: tuple[dict[str, str], dict[str, Any]] | None = None

    def app(self, token: str | None = None) -> web.Application:
        """The application; with a token, only for who has it."""
        app = web.Application(middlewares=[make_guard(token)])
        app.on_startup.append(self.warm_up)
        app.add_routes(
            [
                web.get("/", self.grid),
                web.get("/grid.json", self.grid_data),
                web.get("/runs/{run}", self.run),
                web.get("/runs/{run}/live", self.live),
                web.get("/runs/{run}/events", self.events),
                web.get("/compare", self.compare),
                web.get("/static/{name}", self.static),
                web.get("/favicon.ico", self.no_icon),
            ]
        )
        return app

    async def grid(self, request: web.Request) -> web.Response:
        """The grid of all runs; its data comes along, so that one request shows it all."""
        return await asyncio.to_thread(self._grid_page)

    def _grid_page(self) -> web.Response:
        return self._page("grid.html", data=self._grid(), unfinished=unfinished(self.base))

    async def grid_data(self, request: web.Request) -> web.Response:
        """The same for machines."""
        data = await asyncio.to_thread(self._grid)
        return web.Response(body=msgspec.json.encode(data), content_type="application/json")

    def _grid(self) -> dict[str, Any]:
        """The grid as it is now; made anew only when a run came, went or changed."""
        with self._making:
            seen = dict(stamps(self.base))
            if self._made is None or self._made[0] != seen:
                with History(self.base) as index:
                    index.sync()
                    data = make_grid(index)
                    data["damaged"] = [{"run": name, "why": why} for name, why in index.damaged()]
                self._made = seen, data
            return self._made[1]

    async def warm_up(self, app: web.Application) -> None:
        """Take in all runs before the first visitor asks, without keeping anybody waiting."""
        app[WARMING] = asyncio.create_task(asyncio.to_thread(self._grid))

    async def run(self, request: web.Request) -> web.Response:
        """A run's report, with the way back; one in progress is shown as it goes on."""
        folder = self._folder(request.match_info["run"])
        if not (folder / record.NAME).exists() and journal.in_progress(folder):
            raise web.HTTPFound(f"/runs/{folder.name}/live")
        return _own_policy(await asyncio.to_thread(self._report, folder))

    def _report(self, folder: Path) -> str:
        found, note = self._record(folder)
        return page.render(found, home="/", note=note)

    async def live(self, request: web.Request) -> web.Response:
        """A run in progress."""
        folder = self._folder(request.match_info["run"])
        return self._page("live.html", run=folder.name)

    async def events(self, request: web.Request) -> web.StreamResponse:
        """The events of a run as they are written."""
        folder = self._folder(request.match_info["run"])
        last = request.headers.get("Last-Event-ID", "0")
        offset = int(last) if last.isdecimal() and len(last) < 16 else 0
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        secure(response)
        await response.prepare(request)
        with contextlib.suppress(ClientConnectionResetError, ConnectionResetError):
            async for at, event in follow(folder, offset, lambda: request.transport is not None):
                await response.write(b"id: %d\ndata: %s\n\n" % (at, msgspec.json.encode(event)))
        return response

    async def compare(self, request: web.Request) -> web.Response:
        """Two runs side by side."""
        folders = [self._folder(request.query.get(name, "")) for name in ("a", "b")]
        return _own_policy(await asyncio.to_thread(self._comparison, *folders))

    def _comparison(self, a: Path, b: Path) -> str:
        found = compare(self._record(a)[0], self._record(b)[0])
        return comparison_forms.as_html(found, home="/", runs=(a.name, b.name))

    async def static(self, request: web.Request) -> web.Response:
        """Styles and scripts, from the package and nowhere else."""
        name = request.match_info["name"]
        if name not in STATIC:
            raise web.HTTPNotFound
        package = "winready.report.html" if name == "base.css" else "winready.report.dashboard"
        text = resources.files(package).joinpath("templates", name).read_text(encoding="utf-8")
        return web.Response(text=text, content_type=STATIC[name])

    async def no_icon(self, request: web.Request) -> web.Response:
        """Browsers ask for it unasked."""
        return web.Response(status=204)

    def _folder(self, name: str) -> Path:
        """A run's folder by its name; names of anything else lead nowhere."""
        if name and not name.startswith(".") and not set(name) & set("/\\\x00"):
            folder = self.base / name
            if any((folder / part).is_file() for part in (record.NAME, journal.NAME)) and inside(self.base, folder):
                return folder
        raise self._missing("There is no such run.")

    def _record(self, folder: Path) -> tuple[record.Record, str]:
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
            raise self._missing(f"Run {folder.name} cannot be read: {error}.") from None

    def _missing(self, why: str) -> web.HTTPNotFound:
        text = self._templates.get_template("missing.html").render(why=why)
        return web.HTTPNotFound(text=text, content_type="text/html")

    def _page(self, name: str, **values: Any) -> web.Response:
        return web.Response(text=self._templates.get_template(name).render(**values), content_type="text/html")


def _own_policy(text: str) -> web.Response:
    """A page that brings its own, stricter policy along, which the header must not take away."""
    headers = {"Content-Security-Policy": "frame-ancestors 'none'"}
    return web.Response(text=text, content_type="text/html", headers=headers)

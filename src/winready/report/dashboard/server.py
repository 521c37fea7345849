"""The dashboard's pages. It only reads: run folders in, HTML and events out."""

from __future__ import annotations

import contextlib
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
from winready.report.history import History, unfinished
from winready.report.html import page

STATIC = {
    "base.css": "text/css",
    "dashboard.css": "text/css",
    "grid.js": "text/javascript",
    "live.js": "text/javascript",
}


class Dashboard:
    """Serves one report folder."""

    def __init__(self, base: Path) -> None:
        self.base = base
        loaders = [jinja2.PackageLoader("winready.report.dashboard"), jinja2.PackageLoader("winready.report.html")]
        self._templates = jinja2.Environment(
            loader=jinja2.ChoiceLoader(loaders), autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
        )

    def app(self, token: str | None = None) -> web.Application:
        """The application; with a token, only for who has it."""
        app = web.Application(middlewares=[make_guard(token)])
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
        return self._page("grid.html", data=self._grid(), live=unfinished(self.base)[:20])

    async def grid_data(self, request: web.Request) -> web.Response:
        """The same for machines."""
        return web.Response(body=msgspec.json.encode(self._grid()), content_type="application/json")

    def _grid(self) -> dict[str, Any]:
        with History(self.base) as index:
            index.sync()
            data = make_grid(index)
            data["damaged"] = [{"run": name, "why": why} for name, why in index.damaged()]
        return data

    async def run(self, request: web.Request) -> web.Response:
        """A finished run: its report, with the way back."""
        folder = self._folder(request.match_info["run"])
        if not (folder / record.NAME).exists():
            raise web.HTTPFound(f"/runs/{folder.name}/live")
        text = page.render(self._record(folder), home="/")
        # The page brings its own, stricter policy along; the header must not take it away.
        headers = {"Content-Security-Policy": "frame-ancestors 'none'"}
        return web.Response(text=text, content_type="text/html", headers=headers)

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
        a, b = (self._record(self._folder(request.query.get(name, ""))) for name in ("a", "b"))
        text = comparison_forms.as_html(compare(a, b), home="/")
        return web.Response(
            text=text, content_type="text/html", headers={"Content-Security-Policy": "frame-ancestors 'none'"}
        )

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
        if not name or name.startswith(".") or "/" in name or "\\" in name or "\x00" in name:
            raise web.HTTPNotFound(text="There is no such run.\n")
        folder = self.base / name
        if not any((folder / part).is_file() for part in (record.NAME, journal.NAME)):
            raise web.HTTPNotFound(text="There is no such run.\n")
        return folder

    def _record(self, folder: Path) -> record.Record:
        try:
            return record.read(folder)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise web.HTTPNotFound(text=f"Run {folder.name} cannot be read: {error}\n") from None

    def _page(self, name: str, **values: Any) -> web.Response:
        return web.Response(text=self._templates.get_template(name).render(**values), content_type="text/html")

"""What all pages share: templates, the frame around them, and how a filter or a run that is not there is told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import jinja2
from aiohttp import web

from winready.report import words
from winready.report.dashboard.guard import BASE, USER
from winready.report.dashboard.looking import Looking
from winready.report.fleet.filters import FilterError, number
from winready.report.folding import short
from winready.report.history import History

STATIC = {
    "base.css": "text/css",
    "dashboard.css": "text/css",
    "fleet.css": "text/css",
    "grid.js": "text/javascript",
    "live.js": "text/javascript",
    "fleet.js": "text/javascript",
}
NAVIGATION = {
    "fleet": "Fleet",
    "grid": "Runs",
    "requirements": "Requirements",
    "flaky": "Flaky",
    "trends": "Trends",
}
T = TypeVar("T")


class Site:
    """A report folder, and how its pages are made."""

    def __init__(self, base: Path, now: Callable[[], float] = time.time) -> None:
        self.base = base
        self.now = now
        self.looking = Looking(base)
        loaders = [jinja2.PackageLoader("winready.report.dashboard"), jinja2.PackageLoader("winready.report.html")]
        self._templates = jinja2.Environment(
            loader=jinja2.ChoiceLoader(loaders), autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
        )
        self._templates.globals |= {"MARKS": words.MARKS, "NAVIGATION": NAVIGATION}
        self._templates.filters |= {"age": age, "when": when, "day": day, "short": short, "host": host}

    async def ask(self, question: Callable[[History], T]) -> T:
        """What the index answers, beside the loop, so that live runs go on."""
        return await asyncio.to_thread(lambda: question(self.looking.index()))

    def page(self, request: web.Request, template: str, /, **values: Any) -> web.Response:
        """A page in the frame that all have."""
        return web.Response(text=self._text(request, template, values), content_type="text/html")

    def missing(self, request: web.Request, why: str) -> web.HTTPNotFound:
        """There is no such thing; raised by who looked for it."""
        text = self._text(request, "missing.html", {"title": "not found", "why": why})
        return web.HTTPNotFound(text=text, content_type="text/html")

    def mistaken(self, request: web.Request, error: FilterError) -> web.HTTPBadRequest:
        """An address that makes no sense."""
        text = self._text(request, "missing.html", {"title": "not understood", "why": f"{error}."})
        return web.HTTPBadRequest(text=text, content_type="text/html")

    def _text(self, request: web.Request, template: str, values: Mapping[str, Any]) -> str:
        frame = {"base": request[BASE], "user": request[USER], "progress": self.looking.progress}
        return self._templates.get_template(template).render(**frame, **values)


async def static(request: web.Request) -> web.Response:
    """Styles and scripts, from the package and nowhere else."""
    name = request.match_info["name"]
    if name not in STATIC:
        raise web.HTTPNotFound
    package = "winready.report.html" if name == "base.css" else "winready.report.dashboard"
    text = resources.files(package).joinpath("templates", name).read_text(encoding="utf-8")
    return web.Response(text=text, content_type=STATIC[name])


def host(label: str) -> str:
    """A cluster's address without what all of them begin with."""
    return label.removeprefix("https://")


def age(seconds: float) -> str:
    """How long ago, as people say it."""
    for unit, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= unit:
            return f"{words.count(int(seconds // unit), name)} ago"
    return "just now"


def when(started: str) -> str:
    """A moment in UTC, to the minute."""
    try:
        found = datetime.fromisoformat(started)
        return f"{found.astimezone(UTC) if found.tzinfo else found:%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError):
        return started


def day(started: str) -> str:
    """A day in UTC."""
    return when(started)[:10]


def pages(found: Mapping[str, str], total: int, size: int) -> tuple[int, int]:
    """Which page of how many; raises `FilterError` where there is no such page."""
    last = max(1, -(-total // size))
    return min(number(found, "page", 1, 10**6), last), last

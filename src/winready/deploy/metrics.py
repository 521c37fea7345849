"""A run as Prometheus metrics: as a text file for a collector on the machine, and over HTTP while it goes on."""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from winready.deploy.publishing import Complain, Telling
from winready.engine import events
from winready.engine.outcomes import Outcome
from winready.report.exposition import CONTENT_TYPE, metric
from winready.report.files import write_whole
from winready.report.record import Record

if TYPE_CHECKING:
    from aiohttp import web
    from aiohttp.typedefs import Handler


def render(record: Record, *, finished: bool, now: float) -> str:
    """The run in the text format; a verdict is there once it is one."""
    return "".join(f"{text}\n" for text in _lines(record, finished, now))


def _lines(record: Record, finished: bool, now: float) -> Iterator[str]:
    version = record.cluster.version if record.cluster else ""
    yield from metric(
        "winready_run_info", "The run and what it is about; always 1.",
        [({"run": record.run_id, "tool": record.tool, "specification": record.spec.get("version", ""),
           "kubernetes": version, "simulated": str(record.simulated).lower()}, 1)],
    )  # fmt: skip
    if (began := _seconds(record.started)) is not None:
        yield from metric("winready_run_start_time_seconds", "When the run began.", [({}, began)])
        if finished:
            end = began + record.duration_s
            yield from metric("winready_run_end_time_seconds", "When the run had its verdict.", [({}, end)])
    yield from metric("winready_run_duration_seconds", "How long the run took so far.", [({}, record.duration_s)])
    yield from metric("winready_update_time_seconds", "When these numbers were written.", [({}, now)])
    yield from metric(
        "winready_requirements_selected", "Requirements that the run is about.", [({}, len(record.selected))]
    )
    if finished:
        if record.verdict:
            passed = int(record.verdict == "Pass")
            yield from metric("winready_verdict", "1 Pass, 0 Fail.", [({"scope": record.scope}, passed)])
        yield from metric("winready_exit_code", "The exit code of the run.", [({}, record.exit_code)])
        left = len(record.leftovers)
        yield from metric("winready_leftovers", "Objects that the run could not remove.", [({}, left)])
    names = [
        ({"requirement": item.id, "category": item.category, "level": item.level}, item) for item in record.requirements
    ]
    yield from metric(
        "winready_requirement_outcome",
        "1 for the outcome that a requirement has, 0 for those it has not.",
        [
            ({**labels, "outcome": outcome}, int(item.outcome == outcome))
            for labels, item in names
            for outcome in get_args(Outcome)
        ],
    )
    yield from metric(
        "winready_requirement_duration_seconds",
        "How long the verification of a requirement took.",
        [({"requirement": labels["requirement"]}, item.duration_s) for labels, item in names],
    )
    yield from metric(
        "winready_rule_outcome",
        "1 for the outcome that a rule has, 0 for those it has not.",
        [
            ({"rule": rule.id, "gates": rule.gates, "outcome": outcome}, int(rule.outcome == outcome))
            for rule in record.rules
            for outcome in get_args(Outcome)
        ],
    )


def _seconds(started: str) -> float | None:
    try:
        return datetime.fromisoformat(started).timestamp()
    except ValueError:
        return None


class MetricsFile(Telling):
    """A file for the text file collector of a node exporter: whole at every moment."""

    def __init__(self, path: Path, record: Record, complain: Complain) -> None:
        super().__init__(f"metrics file {path}", record, complain)
        self._path = path

    def take(self, event: events.AnyEvent) -> None:
        """Write it anew whenever something in it has changed."""
        if isinstance(event, events.RunStarted | events.RequirementFinished | events.RunFinished):
            write_whole(self._path, render(self.record, finished=self.finished, now=time.time()).encode())


def parse_listen(text: str) -> tuple[str, int]:
    """``[HOST:]PORT`` as host and port: loopback without a host, everywhere with an empty one."""
    host, colon, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 65536) or (colon and "]" in port):
        raise ValueError(f"{text[:80]!r} is no place to listen; write PORT, HOST:PORT, or :PORT for all addresses")
    if not colon:
        return "127.0.0.1", int(port)
    if not host or host == "localhost":
        return host, int(port)
    try:
        return str(ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))), int(port)
    except ValueError:
        raise ValueError(f"{host[:80]!r} is no address of this machine; write one in numbers, or localhost") from None


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections from now on; raises ``OSError``."""
    if not host and socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)


@asynccontextmanager
async def serve(bound: socket.socket, host: str, show: Callable[[], str]) -> AsyncIterator[None]:
    """Answer ``/metrics`` as long as this lasts."""
    from aiohttp import web

    from winready.report.dashboard.guard import Access, Runner, is_loopback, make_guard, secure

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=show().encode(), headers={"Content-Type": CONTENT_TYPE})

    @web.middleware
    async def headers(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            response = await handler(request)
        except web.HTTPException as answer:
            secure(answer)
            raise
        secure(response)
        return response

    # On loopback only under its own names, or a page on the web could make a browser ask.
    app = web.Application(middlewares=[make_guard(Access()) if host and is_loopback(host) else headers])
    app.router.add_get("/metrics", metrics)
    runner = Runner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.SockSite(runner, bound).start()
        yield
    finally:
        await runner.cleanup()

"""The server that Cluster API's controllers ask: HTTPS, small bodies, an answer within a second."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import msgspec
from aiohttp import web

from winready.deploy.capi import hooks
from winready.deploy.capi.gate import Gate
from winready.report.exposition import metric
from winready.report.printable import printable

MOST_BYTES = 2 << 20
"""A Cluster has at most 1.5 MiB, and a request holds it once."""
BODY_SECONDS = 3.0
GATE = web.AppKey("gate", Gate)


def application(gate: Gate, failure_policy: hooks.FailurePolicy = "Fail") -> web.Application:
    """Discovery, the nine hooks, and a page for whoever asks whether it is up."""
    app = web.Application(client_max_size=MOST_BYTES)
    app[GATE] = gate

    async def discovery(request: web.Request) -> web.Response:
        await request.read()
        return _answered(hooks.discovered(failure_policy))

    app.add_routes([web.post(hooks.path(hooks.DISCOVERY), discovery), web.get("/healthz", _healthy)])
    app.add_routes([web.post(hooks.path(hook), _handler(hook)) for hook in hooks.HOOKS])
    return app


def _handler(hook: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        gate = request.app[GATE]
        try:
            call = hooks.read(hook, await _body(request))
        except hooks.WrongRequest as error:
            gate.answered[hook, "failure"] += 1
            return _answered(hooks.response(hook, f"winready: {printable(str(error))}", failed=True))
        found = await gate.answer(call)
        return _answered(hooks.response(hook, found.message, found.retry))

    return handle


async def _body(request: web.Request) -> bytes:
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await request.read()
    except TimeoutError:
        raise hooks.WrongRequest(f"the body did not come within {BODY_SECONDS:g} s") from None
    except web.HTTPRequestEntityTooLarge:
        raise hooks.WrongRequest(f"the body has more than {MOST_BYTES >> 20} MiB") from None


def _answered(document: dict[str, object]) -> web.Response:
    return web.Response(body=msgspec.json.encode(document), content_type="application/json")


async def _healthy(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


def metrics(gate: Gate) -> str:
    """What goes on, in the text format of Prometheus."""
    lines = [
        *metric(
            "winready_capi_hooks_total", "Hooks that were answered: hold, release or failure.",
            [({"hook": hook, "answer": answer}, number) for (hook, answer), number in sorted(gate.answered.items())],
            "counter",
        ),
        *metric(
            "winready_capi_runs_total", "Runs that ended, by verdict; none where there is no verdict.",
            [({"verdict": verdict}, gate.runner.ended[verdict]) for verdict in ("Pass", "Fail", "none")], "counter",
        ),
        *metric(
            "winready_capi_held", "Hooks that hold a cluster now.",
            [({"hook": hook}, Counter(gate.held.values())[hook]) for hook in hooks.HOLDING],
        ),
        *metric(
            "winready_capi_runs", "Runs that go on, and those that wait.",
            [({"state": state}, sum((job.child is not None) == on for job in gate.runner.jobs.values()))
             for state, on in (("running", True), ("waiting", False))],
        ),
    ]  # fmt: skip
    return "".join(f"{text}\n" for text in lines)

"""An API server that does not answer, or answers nonsense, costs a run a note and a bounded wait, no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

from aiohttp import web

from report.samples import make_record, result
from winready.cluster.client import Client
from winready.cluster.kubeconfig import Target
from winready.deploy.places import Named, Places
from winready.deploy.publishing import MOST_EVENTS, Publisher, Telling
from winready.engine import events
from winready.engine.outcomes import RequirementResult
from winready.engine.verdict import Verdict

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
EVERYWHERE = Places(Named("ns", "job"), Named("ns", "summary"), Named("ns", "report"))
VERDICT = Verdict(verdict="Pass", scope="complete", exit_code=0, core_selected=24, core_total=24, reasons=[])
END = events.RunFinished(at_s=2.0, verdict=VERDICT, windows_pods=0)


@asynccontextmanager
async def server(answer: Answer) -> AsyncIterator[Client]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        target = Target(server=f"http://127.0.0.1:{runner.addresses[0][1]}")
        async with Client.connect(target) as client:
            yield client
    finally:
        await runner.cleanup()


async def accepted(request: web.Request) -> web.StreamResponse:
    """What an API server says that takes everything."""
    if request.method == "GET":
        return web.json_response({"kind": "APIResourceList", "resources": []})
    kinds = {"jobs": "Job", "configmaps": "ConfigMap", "events": "Event"}
    kind = next(kind for part, kind in kinds.items() if f"/{part}" in request.path)
    name = request.path.rpartition("/")[2]
    metadata = (await request.json())["metadata"] if request.method == "POST" else {"name": name}
    return web.json_response({"kind": kind, "metadata": {**metadata, "uid": "u"}})


def finished(item: RequirementResult) -> events.RequirementFinished:
    return events.RequirementFinished(at_s=1.0, result=item)


async def test_an_api_server_that_never_answers_keeps_nobody_waiting() -> None:
    asked = asyncio.Event()

    async def never(_: web.Request) -> web.StreamResponse:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    said: list[str] = []
    async with server(never) as client:
        async with Publisher(client, EVERYWHERE, make_record(), said.append, patience=0.3) as publisher:
            publisher.handle(END)
            await asked.wait()
        assert said == [
            "note: the cluster cannot be told: no answer within 0.3 s; the verdict does not depend on it"
        ]  # fmt: skip


async def test_one_place_that_does_not_answer_is_no_reason_for_others_to_hear_nothing() -> None:
    told: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        if "configmaps" in request.path:
            await asyncio.Event().wait()
        told.append(f"{request.method} {request.path}")
        return await accepted(request)

    said: list[str] = []
    publishing = partial(Publisher, places=EVERYWHERE, record=make_record(), complain=said.append, patience=1.0)
    async with server(answer) as client, publishing(client) as publisher:
        publisher.handle(END)
    assert "PATCH /apis/batch/v1/namespaces/ns/jobs/job" in told
    assert "POST /api/v1/namespaces/ns/events" in told
    assert len(said) == 1


async def test_what_was_in_the_way_once_is_tried_again_and_told_once() -> None:
    tries: list[int] = []
    heard = asyncio.Event()

    async def busy(request: web.Request) -> web.StreamResponse:
        tries.append(1)
        if len(tries) == 1:
            return web.json_response({"reason": "BadRequest", "message": "not now"}, status=400)
        heard.set()
        return await accepted(request)

    said: list[str] = []
    places = Places(configmap=Named("ns", "summary"))
    async with (
        server(busy) as client,
        Publisher(client, places, make_record(), said.append, pause=0.01) as publisher,
    ):
        publisher.handle(finished(result("core.network.dns-internal")))
        while not said:  # noqa: ASYNC110 - nobody else knows when
            await asyncio.sleep(0.01)
        publisher.handle(END)
        await heard.wait()
    words = "not now; the verdict does not depend on it"
    assert said == [f"note: ConfigMap ns/summary cannot be told: {words}"]


async def test_answers_that_make_no_sense_are_a_note() -> None:
    async def nonsense(_: web.Request) -> web.StreamResponse:
        return web.json_response(["what"])

    said: list[str] = []
    publishing = partial(Publisher, places=EVERYWHERE, record=make_record(), complain=said.append, patience=0.5)
    async with server(nonsense) as client, publishing(client) as publisher:
        publisher.handle(END)
    assert said == ["note: the cluster cannot be told: no answer within 0.5 s; the verdict does not depend on it"]


async def test_a_thousand_failures_are_few_events_and_the_verdict_is_among_them() -> None:
    reasons: list[str] = []

    async def keep(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/events"):
            reasons.append((await request.json())["reason"])
        return await accepted(request)

    places = Places(job=Named("ns", "job"))
    async with server(keep) as client, Publisher(client, places, make_record(), print) as publisher:
        for _ in range(1000):
            publisher.handle(finished(result("core.network.dns-internal", "failed")))
        publisher.handle(END)
    assert len(reasons) == MOST_EVENTS + 1
    assert reasons[-1] == "ReadinessPass"


def test_a_bug_of_ours_in_telling_is_a_note() -> None:
    class Broken(Telling):
        def take(self, event: events.AnyEvent) -> None:
            raise KeyError("x")

    said: list[str] = []
    broken = Broken("somebody", make_record(), said.append)
    broken.handle(END)
    broken.handle(END)
    assert len(said) == 1
    assert "winready itself failed: KeyError" in said[0]


def test_a_closed_standard_error_is_nobodys_trouble() -> None:
    def closed(_: str) -> None:
        raise BrokenPipeError

    Telling("somebody", make_record(), closed).say_once("somebody", "trouble")

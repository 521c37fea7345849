"""The components' API client against a scripted server: what an outage or a lost history looks like from above."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from winready_sandbox.apiclient import Access, ApiClient, ApiUnreachable, Conflict, NotFound, Transport


def pod(name: str, version: int, uid: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "d", "resourceVersion": str(version), "uid": uid or name}}


class Script:
    """A server that plays listings and watch streams in the order given."""

    def __init__(self) -> None:
        self.listings: list[tuple[list[dict[str, Any]], str]] = []
        self.streams: list[list[dict[str, Any]]] = []
        self.seen: list[tuple[str, str, dict[str, str], Any]] = []
        self.answers: list[tuple[int, dict[str, Any], dict[str, str]]] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else None
        self.seen.append((request.method, request.path, dict(request.query), body))
        if self.answers:
            code, answer, headers = self.answers.pop(0)
            return web.json_response(answer, status=code, headers=headers)
        if request.query.get("watch"):
            response = web.StreamResponse()
            await response.prepare(request)
            if not self.streams:
                await asyncio.sleep(60)
            for event in self.streams.pop(0):
                await response.write(json.dumps(event).encode() + b"\n")
            return response
        items, version = self.listings.pop(0)
        return web.json_response({"items": items, "metadata": {"resourceVersion": version}})


@pytest.fixture(params=["socket", "inside"])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Script, ApiClient]]:
    script = Script()
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", script.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    inside = runner.server if request.param == "inside" else None
    transport = Transport(Access(f"http://127.0.0.1:{runner.addresses[0][1]}"), inside)
    yield script, ApiClient(transport, token="t")
    await transport.close()
    await runner.cleanup()


async def collect(client: ApiClient, count: int) -> list[tuple[str, str]]:
    changes: list[tuple[str, str]] = []
    watch = client.watch("pods", fields="spec.nodeName=n")
    async for change in watch:
        changes.append((change.type, change.object.get("metadata", {}).get("name", "")))
        if len(changes) == count:
            break
    await watch.aclose()
    return changes


async def test_watch_lists_first_and_follows(server: tuple[Script, ApiClient]) -> None:
    script, client = server
    script.listings = [([pod("a", 1)], "5")]
    script.streams = [[{"type": "ADDED", "object": pod("b", 6)}, {"type": "DELETED", "object": pod("a", 7)}]]
    assert await collect(client, 4) == [("ADDED", "a"), ("SYNCED", ""), ("ADDED", "b"), ("DELETED", "a")]
    assert script.seen[1][2]["resourceVersion"] == "5"
    assert script.seen[1][2]["fieldSelector"] == "spec.nodeName=n"


async def test_watch_tells_the_differences_after_a_lost_history(server: tuple[Script, ApiClient]) -> None:
    script, client = server
    expired = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}
    script.listings = [
        ([pod("a", 1), pod("b", 2), pod("c", 3)], "5"),
        ([pod("a", 1), pod("b", 9), pod("c", 8, "other"), pod("d", 10)], "12"),
    ]
    script.streams = [[expired]]
    changes = await collect(client, 8)
    assert changes[4:] == [("MODIFIED", "b"), ("DELETED", "c"), ("ADDED", "c"), ("ADDED", "d")]


async def test_watch_goes_on_from_a_bookmark_when_the_server_hangs_up(server: tuple[Script, ApiClient]) -> None:
    script, client = server
    script.listings = [([], "5")]
    script.streams = [
        [{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "40"}}}],
        [{"type": "ADDED", "object": pod("x", 41)}],
    ]
    assert await collect(client, 2) == [("SYNCED", ""), ("ADDED", "x")]
    assert script.seen[2][2]["resourceVersion"] == "40"


async def test_a_busy_server_is_asked_again(server: tuple[Script, ApiClient]) -> None:
    script, client = server
    script.answers = [(429, {}, {"Retry-After": "0.01"}), (200, pod("a", 1), {})]
    assert (await client.get("pods", "a", "d"))["metadata"]["name"] == "a"
    assert len(script.seen) == 2


async def test_failures_are_typed_and_carry_the_reason(server: tuple[Script, ApiClient]) -> None:
    script, client = server
    script.answers = [(404, {"reason": "NotFound", "message": 'pods "a" not found'}, {}), (409, {}, {})]
    with pytest.raises(NotFound, match='pods "a" not found'):
        await client.get("pods", "a", "d")
    with pytest.raises(Conflict):
        await client.patch("pods", "a", {}, "d", subresource="status", kind="strategic")
    assert script.seen[1][:2] == ("PATCH", "/api/v1/namespaces/d/pods/a/status")


async def test_delete_sends_grace_and_precondition(server: tuple[Script, ApiClient]) -> None:
    script, client = server
    script.answers = [(200, {}, {})]
    await client.delete("pods", "a", "d", grace=0, uid="u")
    assert script.seen[0][3]["gracePeriodSeconds"] == 0
    assert script.seen[0][3]["preconditions"] == {"uid": "u"}


async def test_no_server_at_all_is_its_own_error() -> None:
    transport = Transport(Access("http://127.0.0.1:1"))
    with pytest.raises(ApiUnreachable):
        await ApiClient(transport).get("nodes", "a")
    await transport.close()

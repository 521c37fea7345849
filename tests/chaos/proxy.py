"""A proxy between a run and its API server that does to requests what networks, load balancers and busy servers do.

The same application serves in virtual time, over wires of the process that a sandbox and a run share, and as a process
of its own on loopback.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.client_proto import ResponseHandler

from chaos.kinds import Verb, Weather
from winready_sandbox.wire import Accept, WireConnector

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
PAGE = "<html><head><title>Sign in</title></head><body>Please sign in to continue.</body></html>"
REFUSALS: dict[str, tuple[int, str, str]] = {
    "too-many-requests": (429, "TooManyRequests", "the server has received too many requests, please try again later"),
    "internal-error": (500, "InternalError", "Internal error occurred: etcdserver: leader changed"),
    "unavailable": (503, "ServiceUnavailable", "apiserver not ready"),
    "gateway-timeout": (504, "Timeout", "the server was unable to return a response in the time allotted"),
    "unauthorized": (401, "Unauthorized", "Unauthorized"),
    "gone": (410, "Expired", "The provided continue parameter is too old to display a consistent list result."),
    "conflict": (409, "Conflict", "Operation cannot be fulfilled: the object has been modified; please try again"),
}
QUOTA = "Operation cannot be fulfilled on resourcequotas: the object has been modified; please try again"
SLOW_SECONDS = 20.0
HELD_SECONDS = 2.0
DROPPED = ("host", "content-length", "transfer-encoding", "connection", "upgrade", "accept-encoding")


class Proxy:
    """Passes requests on to one API server, and most of the answers back."""

    def __init__(self, upstream: str, connector: aiohttp.BaseConnector, weather: Weather, tls: Any = False) -> None:
        self.upstream = upstream
        self.weather = weather
        self.away = False
        """Whether nobody is there at all, as when the API server is being replaced."""
        self._tls = tls
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False)
        self.server = web.Server(self._answer)
        self._over = asyncio.Event()

    async def close(self) -> None:
        """Let go of everybody."""
        self._over.set()
        await self.server.shutdown(0)
        await self._session.close()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        verb = _verb(request)
        chance = self.weather.chance(f"{request.method} {_about(request)}")
        kind = "reset-before" if self.away else self.weather.strikes(verb, chance)
        if kind in ("reset-before", "handshake-fails"):
            return _drop(request)
        if kind == "hangs":
            return await self._hang(request)
        if kind == "bad-gateway":
            return web.Response(status=502, text="<html><body><h1>502 Bad Gateway</h1></body></html>")
        if kind in REFUSALS:
            return _refusal(kind, chance, created=request.method == "POST")
        if verb == "exec":
            return await self._exec(request, kind, chance)
        if verb == "watch":
            return await self._watch(request, kind, chance)
        return await self._call(request, kind, chance)

    async def _hang(self, request: web.BaseRequest) -> web.StreamResponse:
        await self._over.wait()
        return _drop(request)

    async def _call(self, request: web.BaseRequest, kind: str, chance: random.Random) -> web.StreamResponse:
        async with self._asked(request) as answer:
            body, status = await answer.read(), answer.status
            headers = _passed_back(answer)
        if kind == "hangs-after":
            return await self._hang(request)
        if kind == "reset-after":
            return _drop(request)
        if kind == "cut-body":
            return await _cut(request, body, status)
        if kind == "slow-bytes":
            return await _slowly(request, body, status, headers)
        if kind == "html":
            return web.Response(text=PAGE, content_type="text/html")
        if kind == "empty":
            return web.Response(status=200, content_type="application/json")
        if kind == "not-json":
            return web.Response(text="ok", content_type="application/json")
        if kind == "half-a-document":
            body, status = body[: len(body) // 2] or b"{", 200
        elif kind == "other-kind":
            body, status = _other_kind(chance), 200
        return web.Response(body=body, status=status, headers=headers)

    async def _watch(self, request: web.BaseRequest, kind: str, chance: random.Random) -> web.StreamResponse:
        async with self._asked(request) as answer:
            response = web.StreamResponse(status=answer.status, headers=_passed_back(answer))
            await response.prepare(request)
            if kind == "watch-ends-at-once":
                return response
            if kind == "watch-silent":
                return await self._hang(request)
            count, last = 0, chance.randint(1, 6)
            with contextlib.suppress(ConnectionError, aiohttp.ClientError):
                async for line in _disordered(answer, kind):
                    count += 1
                    if count == last and kind == "watch-cut":
                        await response.write(line[: len(line) // 2])
                        return _drop(request)
                    if count == last and kind == "watch-garbage":
                        await response.write(chance.choice([b"<html>\n", b'{"type":"MODIFIED"}\n', b"[]\n", b"\xff\n"]))
                        continue
                    await response.write(line)
                await response.write_eof()
        return response

    async def _exec(self, request: web.BaseRequest, kind: str, chance: random.Random) -> web.StreamResponse:
        if kind == "upgrade-refused":
            return web.Response(status=chance.choice([200, 400, 403, 500, 502]), text="no upgrade here")
        try:
            far = await self._session.ws_connect(
                f"{self.upstream}{request.raw_path}",
                protocols=PROTOCOLS,
                headers=_passed_on(request),
                ssl=self._tls,
                max_msg_size=0,
            )
        except aiohttp.WSServerHandshakeError as error:
            return web.Response(status=error.status)
        near = web.WebSocketResponse(protocols=[far.protocol or PROTOCOLS[0]], max_msg_size=0)
        await near.prepare(request)
        # A command may have many frames or only its status; cut early enough to hit most.
        left = chance.randint(0, 2) if kind in ("stream-cut", "stream-garbage", "stream-hangs") else -1

        async def inwards() -> None:
            async for message in near:
                await far.send_bytes(message.data)
            await far.close()

        sending = asyncio.create_task(inwards())
        try:
            async for message in far:
                if left == 0 or (left > 0 and message.data[:1] == b"\x03"):
                    break
                left -= 1
                await near.send_bytes(message.data)
            else:
                await near.close()
                return near
            if kind == "stream-hangs":
                await self._over.wait()
            elif kind == "stream-garbage":
                garbage = [b"\x03<html>", b"\x03[1]", b'\x03{"status":7}', b"\x07what", b"\x03\xff", b"\x03"]
                await near.send_bytes(chance.choice(garbage))
                await near.close()
            else:
                _drop(request)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            await far.close()
        return near

    @asynccontextmanager
    async def _asked(self, request: web.BaseRequest) -> AsyncIterator[aiohttp.ClientResponse]:
        body = await request.read()
        async with self._session.request(
            request.method,
            f"{self.upstream}{request.raw_path}",
            data=body or None,
            headers=_passed_on(request),
            ssl=self._tls,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None),
        ) as answer:
            yield answer


class StormyConnector(WireConnector):
    """The way to a proxy of the same process, on which handshakes fail now and then."""

    def __init__(self, accept: Accept, weather: Weather) -> None:
        super().__init__(accept)
        self._weather = weather
        self._rate = weather.rates.get("handshake-fails", 0.0)

    async def _create_connection(self, req: Any, traces: Any, timeout: Any) -> ResponseHandler:
        chance = self._weather.chance("connection")
        if chance.random() < self._rate:
            self._weather.met["handshake-fails"] += 1
            key = req.connection_key
            if chance.random() < 0.5:
                raise aiohttp.ClientConnectorSSLError(key, OSError(1, "[SSL] record layer failure"))
            raise aiohttp.ClientConnectorError(key, ConnectionResetError(104, "Connection reset by peer"))
        return await super()._create_connection(req, traces, timeout)


def _verb(request: web.BaseRequest) -> Verb:
    if "upgrade" in request.headers.get("Connection", "").lower():
        return "exec"
    if request.method == "GET":
        if request.query.get("watch"):
            return "watch"
        return "list" if "limit" in request.query else "read"
    return "delete" if request.method == "DELETE" else "write"


def _about(request: web.BaseRequest) -> str:
    return f"{request.path} {request.query.get('command', '')} {request.query.get('watch', '')}"


def _drop(request: web.BaseRequest) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _refusal(kind: str, chance: random.Random, *, created: bool) -> web.Response:
    code, reason, words = REFUSALS[kind]
    message = QUOTA if kind == "conflict" and created else words
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }
    headers = {"Retry-After": str(chance.randint(1, 3))} if kind == "too-many-requests" else {}
    return web.json_response(body, status=code, headers=headers)


def _other_kind(chance: random.Random) -> bytes:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    other = {"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "metadata": {}, "items": []}
    return json.dumps(chance.choice([status, other, [], "ok", None, {}])).encode()


async def _cut(request: web.BaseRequest, body: bytes, status: int) -> web.StreamResponse:
    response = web.StreamResponse(status=status, headers={"Content-Type": "application/json"})
    response.content_length = len(body) + 1
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    return _drop(request)


async def _slowly(request: web.BaseRequest, body: bytes, status: int, headers: dict[str, str]) -> web.StreamResponse:
    response = web.StreamResponse(status=status, headers=headers)
    await response.prepare(request)
    piece = len(body) // 8 + 1
    with contextlib.suppress(ConnectionError):
        for start in range(0, len(body), piece):
            await asyncio.sleep(SLOW_SECONDS / 8)
            await response.write(body[start : start + piece])
        await response.write_eof()
    return response


async def _disordered(answer: aiohttp.ClientResponse, kind: str) -> AsyncIterator[bytes]:
    """The lines of a watch; an event that is held back comes after the next one, or a moment later."""
    held: bytes | None = None
    reading: asyncio.Task[bytes] | None = None
    try:
        while True:
            reading = reading or asyncio.create_task(answer.content.readline())
            await asyncio.wait([reading], timeout=HELD_SECONDS if held else None)
            if not reading.done():
                assert held is not None
                yield held
                held = None
                continue
            line, reading = reading.result(), None
            if kind == "events-out-of-order" and held is None and line:
                held = line
                continue
            if line and not (kind == "bookmarks-lost" and b'"BOOKMARK"' in line[:40]):
                yield line
                if kind == "events-twice":
                    yield line
            if held is not None:
                yield held
                held = None
            if not line:
                return
    finally:
        if reading is not None:
            reading.cancel()


def _passed_on(request: web.BaseRequest) -> list[tuple[str, str]]:
    return [
        (name, value)
        for name, value in request.headers.items()
        if name.lower() not in DROPPED and not name.lower().startswith("sec-websocket")
    ]


def _passed_back(answer: aiohttp.ClientResponse) -> dict[str, str]:
    wanted = ("content-type", "retry-after")
    return {name: value for name, value in answer.headers.items() if name.lower() in wanted}

"""The two ways a request travels on to a simulated address: as plain HTTP, or as an upgraded stream.

An upgrade is passed through byte for byte, as a current API server does with WebSockets to a kubelet:
whatever protocol the two ends agree on inside, nothing here needs to know it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import aiohttp
from aiohttp import web
from aiohttp.client_proto import ResponseHandler
from yarl import URL

from winready_sandbox.egress import Egress
from winready_sandbox.wire import Accept, Wire, connect, open_streams, splice

if TYPE_CHECKING:
    from aiohttp.http_websocket import WebSocketReader

HOP_BY_HOP = frozenset(
    (
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)
PRIVATE = frozenset(("authorization", "host", "content-length", "cookie"))
STAYING = HOP_BY_HOP | PRIVATE
LARGEST_REFUSAL = 64 * 1024


Failure = Callable[[int, str], Exception]


class EgressConnector(aiohttp.BaseConnector):
    """Connections of an HTTP client into the simulated cluster."""

    def __init__(self, egress: Egress, tls: ssl.SSLContext) -> None:
        super().__init__(limit=0, force_close=True)
        self._egress = egress
        self._tls = tls

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: object, timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        host, port = req.url.host or "", req.url.port or 80
        if (accept := self._egress.inside(host, port)) is not None:
            inside = self._factory()
            connect(inside, accept())
            return inside
        sock = await self._egress.connect(host, port)
        secure = req.url.scheme == "https"
        _, protocol = await self._loop.create_connection(
            self._factory, sock=sock, ssl=self._tls if secure else None, server_hostname="" if secure else None
        )
        return protocol


def wants_upgrade(request: web.Request) -> bool:
    """Whether the client asks to leave HTTP."""
    return "upgrade" in request.headers.get("Connection", "").lower() and "Upgrade" in request.headers


def passed_on(request: web.Request) -> list[tuple[str, str]]:
    """The headers that go along: not those of this hop, and no credentials."""
    return [(key, value) for key, value in request.headers.items() if key.lower() not in STAYING]


async def forward(
    session: aiohttp.ClientSession, request: web.Request, url: URL, failure: Failure | None = None
) -> web.StreamResponse:
    """Send a request on and stream the answer back; with ``failure``, an error of the far end is put in its words."""
    body = request.content if request.can_read_body else None
    async with session.request(
        request.method, url, headers=passed_on(request), data=body, allow_redirects=False
    ) as answer:
        if failure is not None and answer.status >= 400:
            raise failure(answer.status, (await answer.content.read(LARGEST_REFUSAL)).decode(errors="replace").strip())
        response = web.StreamResponse(status=answer.status, reason=answer.reason)
        for key, value in answer.headers.items():
            if key.lower() not in HOP_BY_HOP:
                response.headers.add(key, value)
        await response.prepare(request)
        async for data in answer.content.iter_any():
            await response.write(data)
        await response.write_eof()
        return response


async def upgrade(egress: Egress, tls: ssl.SSLContext, request: web.Request, url: URL) -> web.StreamResponse:
    """Pass an upgrade on; once the far end agrees, bytes flow both ways until one side ends."""
    accept = egress.inside(url.host or "", url.port or 80)
    if accept is not None and isinstance(request.transport, Wire):
        return await _upgrade_inside(accept, request, request.transport, url)
    reader, writer = await _open(egress, tls, url)
    try:
        writer.write(_head(request, url))
        head = await reader.readuntil(b"\r\n\r\n")
        if int(head.split(b" ", 2)[1]) != 101:
            return await _refusal(head, reader)
        return await _join(request, head, reader, writer)
    finally:
        writer.close()


async def _upgrade_inside(accept: Accept, request: web.Request, near: Wire, url: URL) -> web.StreamResponse:
    """The same where all three are parts of this process: once the ends agree, nobody stands between them."""
    answer = _Answer()
    far = connect(answer, accept())
    try:
        far.write(_head(request, url))
        head, rest = await answer.head()
        if int(head.split(b" ", 2)[1]) != 101:
            reader = asyncio.StreamReader()
            reader.feed_data(rest)
            far.set_protocol(asyncio.StreamReaderProtocol(reader))
            return await _refusal(head, reader)
        near.write(head + rest)
        request.protocol.set_parser(cast("WebSocketReader", _Onwards(far)))
        try:
            await splice(near, far)
        finally:
            near.close()
    finally:
        far.close()
    return _Switched(status=101)


async def _open(egress: Egress, tls: ssl.SSLContext, url: URL) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port, secure = url.host or "", url.port or 80, url.scheme == "https"
    if (accept := egress.inside(host, port)) is not None:
        return open_streams(accept)
    sock = await egress.connect(host, port)
    return await asyncio.open_connection(sock=sock, ssl=tls if secure else None, server_hostname="" if secure else None)


def _head(request: web.Request, url: URL) -> bytes:
    lines = [f"{request.method} {url.raw_path_qs} HTTP/1.1", f"Host: {url.host}:{url.port}"]
    lines += [f"{key}: {value}" for key, value in passed_on(request)]
    lines += ["Connection: Upgrade", f"Upgrade: {request.headers['Upgrade']}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def _refusal(head: bytes, reader: asyncio.StreamReader) -> web.Response:
    """The far end's answer when it does not switch protocols."""
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {key.strip().lower(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    length = headers.get("content-length")
    body = await (reader.readexactly(int(length)) if length else reader.read(LARGEST_REFUSAL))
    content_type = headers.get("content-type", "text/plain")
    return web.Response(status=int(first.split(" ", 2)[1]), body=body, headers={"Content-Type": content_type})


class _Inbound:
    """What the client sends after the switch, as aiohttp hands it to a parser of the upgraded protocol."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self.reader = asyncio.StreamReader()
        self.reader.set_transport(transport)

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        self.reader.feed_data(data)
        return False, b""

    def feed_eof(self) -> None:
        self.reader.feed_eof()


class _Onwards:
    """Where what the client had sent before the switch, and what aiohttp has kept of it, goes."""

    def __init__(self, far: Wire) -> None:
        self._far = far

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        self._far.write(data)
        return False, b""

    def feed_eof(self) -> None:
        self._far.write_eof()


class _Answer(asyncio.Protocol):
    """What comes back from the far end before the switch."""

    def __init__(self) -> None:
        self._arrived = b""
        self._ended = False
        self._news = asyncio.Event()

    async def head(self) -> tuple[bytes, bytes]:
        """The head of the answer, and what came with it."""
        while (end := self._arrived.find(b"\r\n\r\n")) < 0:
            if self._ended:
                raise asyncio.IncompleteReadError(self._arrived, None)
            self._news.clear()
            await self._news.wait()
        return self._arrived[: end + 4], self._arrived[end + 4 :]

    def data_received(self, data: bytes) -> None:
        self._arrived += data
        self._news.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._news.set()


class _Switched(web.StreamResponse):
    """Stands for an answer that has already been written as raw bytes."""

    async def prepare(self, request: web.BaseRequest) -> None:
        return None

    async def write_eof(self, data: bytes | bytearray | memoryview = b"") -> None:
        return None


async def _join(
    request: web.Request, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> web.StreamResponse:
    transport = cast("asyncio.Transport", request.transport)
    inbound = _Inbound(transport)
    client = asyncio.StreamWriter(transport, request.protocol, None, asyncio.get_running_loop())
    client.write(head)
    request.protocol.set_parser(cast("WebSocketReader", inbound))
    upstream = asyncio.create_task(_copy(inbound.reader, writer))
    try:
        await _copy(reader, client)
    finally:
        upstream.cancel()
        client.close()
    return _Switched(status=101)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on until either side is gone."""
    try:
        while data := await reader.read(64 * 1024):
            writer.write(data)
            await writer.drain()
    except (ConnectionError, ssl.SSLError):
        return
    finally:
        writer.close()

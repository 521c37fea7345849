"""Exec, attach and port-forward over SPDY/3.1 itself, as kubectl before 1.30 and API servers before 1.36 want them.

After the switch of protocols each channel is a stream that the client opens, told apart by its header ``streamtype``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, cast

import msgspec
from aiohttp import web
from aiohttp.http_websocket import WebSocketReader

from winready_sandbox.nodes import spdy
from winready_sandbox.streams import FULL, Pipe

_NAMES = {0: "stdin", 1: "stdout", 2: "stderr", 3: "error", 4: "resize"}
_UNREAD = 0.05
"""Seconds between looks at a client who does not read."""
_STREAMS_WITHIN = 30.0


def wanted(request: web.Request) -> bool:
    """Does the client ask for SPDY itself?"""
    return request.headers.get("Upgrade", "").upper() == "SPDY/3.1"


class _Switched(web.StreamResponse):
    """Stands for an answer that has already been written as raw bytes."""

    async def prepare(self, request: web.BaseRequest) -> None:
        return None

    async def write_eof(self, data: bytes | bytearray | memoryview = b"") -> None:
        return None


class RawConnection:
    """A connection that has left HTTP behind."""

    def __init__(self, request: web.Request, protocols: tuple[str, ...]) -> None:
        offered = request.headers.getall("X-Stream-Protocol-Version", [])
        names = [name.strip() for value in offered for name in value.split(",")]
        chosen = next((name for name in protocols if name in names), None)
        if chosen is None:
            known = ", ".join(protocols)
            raise web.HTTPForbidden(text=f"unable to upgrade: unable to negotiate protocol: server supports {known}")
        if request.transport is None:
            raise ConnectionResetError("the client has left")
        self._transport = request.transport
        self._reader = asyncio.StreamReader()
        self.response = _Switched()
        head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
        self._transport.write(f"{head}X-Stream-Protocol-Version: {chosen}\r\n\r\n".encode())
        # aiohttp hands what follows to whatever parser is set, as it does for WebSockets.
        request.protocol.set_parser(cast("WebSocketReader", self))

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Take bytes from aiohttp."""
        self._reader.feed_data(data)
        return False, b""

    def feed_eof(self) -> None:
        """The client has hung up."""
        self._reader.feed_eof()

    async def send(self, data: bytes) -> None:
        """Write bytes; to a client that has left they are lost."""
        if not self._transport.is_closing():
            self._transport.write(data)
        # aiohttp, not we, is told when the client has read; so look.
        while self._transport.get_write_buffer_size() > FULL and not self._transport.is_closing():  # noqa: ASYNC110
            await asyncio.sleep(_UNREAD)

    async def run(self, session: spdy.Session) -> None:
        """Feed a session until the client leaves or does not speak SPDY."""
        with contextlib.suppress(ValueError):
            while data := await self._reader.read(65536):
                await session.feed(data)
        session.close()

    def close(self) -> None:
        """Hang up, after what was written has gone out."""
        self._transport.close()


class SpdyChannels:
    """The streams of one exec or attach, numbered as the WebSocket protocol numbers its channels."""

    def __init__(self, connection: RawConnection) -> None:
        self._connection = connection
        self._streams: dict[str, spdy.Stream] = {}
        self._arrived = asyncio.Event()
        self._session = spdy.Session(connection.send, self._accept)
        self._reading = asyncio.create_task(connection.run(self._session))

    @property
    def response(self) -> web.StreamResponse:
        """What the request handler returns."""
        return self._connection.response

    @classmethod
    async def accept(cls, request: web.Request, numbers: set[int]) -> SpdyChannels:
        """Switch protocols and wait for the streams that the request announced."""
        channels = cls(RawConnection(request, ("v5.channel.k8s.io", "v4.channel.k8s.io")))
        names = {_NAMES[number] for number in numbers}
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STREAMS_WITHIN):
                while not names <= channels._streams.keys() and not channels._reading.done():
                    channels._arrived.clear()
                    waiting = asyncio.create_task(channels._arrived.wait())
                    await asyncio.wait({waiting, channels._reading}, return_when=asyncio.FIRST_COMPLETED)
                    waiting.cancel()
        return channels

    def _accept(self, stream: spdy.Stream) -> None:
        self._streams[stream.headers.get("streamtype", "")] = stream
        self._arrived.set()

    async def send(self, channel: int, data: bytes) -> None:
        """Write to a channel, if the client opened it."""
        stream = self._streams.get(_NAMES[channel])
        if stream is not None:
            await stream.write(data)

    async def finish(self, status: dict[str, Any]) -> None:
        """Tell how it ended and hang up."""
        await self.send(3, msgspec.json.encode(status))
        for stream in self._streams.values():
            await stream.close()
        self._connection.close()
        await asyncio.wait([self._reading], timeout=1)
        self._reading.cancel()

    async def frames(
        self, on_frame: Callable[[int, bytes], None], on_close: Callable[[int], None], inbox: Pipe | None
    ) -> None:
        """Hand out what the client sends until it leaves."""
        stdin = self._streams.get("stdin")
        if stdin is not None:
            while data := await stdin.inbound.read():
                on_frame(0, data)
                if inbox is not None:
                    await inbox.room()
            on_close(0)
        await asyncio.wait([self._reading])

"""Connections inside one process: two transports that hand bytes to each other's protocol.

The parts of a sandbox talk to each other all the time, and HTTP is what they speak. Sockets and TLS between them would
cost more than what is said, and nobody else could listen anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

Accept = Callable[[], asyncio.BaseProtocol]
"""Makes the server's end of a new connection, as for `loop.create_server`."""
HIGH, LOW = 256 * 1024, 64 * 1024
"""Bytes under way at which a writer is asked to pause, and to go on."""
INSIDE = "inside"
"""Extra information of such a transport: whoever holds the other end is part of this process."""


class Wire(asyncio.Transport):
    """One end of a connection."""

    def __init__(self, protocol: asyncio.BaseProtocol) -> None:
        super().__init__({INSIDE: True})
        self._loop = asyncio.get_running_loop()
        self._protocol = protocol
        self._peer: Wire | None = None
        self._inbox = bytearray()
        self._ended = False
        self._paused = False
        self._held = False
        self._closing = False
        self._lost = False
        self._due = False
        self._over: asyncio.Future[None] | None = None

    def tie(self, peer: Wire) -> None:
        """Make these the two ends of one connection."""
        self._peer, peer._peer = peer, self

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Hand bytes over; they arrive at the next turn of the loop."""
        peer = self._peer
        if self._closing or peer is None or peer._lost or not data:
            return
        peer._inbox += data
        peer._wake()
        if len(peer._inbox) > HIGH and not self._held:
            self._held = True
            self._protocol.pause_writing()

    def write_eof(self) -> None:
        """Say that nothing more follows."""
        if self._peer is not None:
            self._peer._ended = True
            self._peer._wake()

    def can_write_eof(self) -> bool:
        """One direction can end before the other."""
        return True

    def close(self) -> None:
        """Hang up; what was written before still arrives."""
        if not self._closing:
            self._closing = True
            self.write_eof()
            self._loop.call_soon(self._lose, None)

    def abort(self) -> None:
        """Drop the connection at both ends."""
        self._closing = True
        self._loop.call_soon(self._lose, None)
        if self._peer is not None and not self._peer._closing:
            self._peer._closing = True
            self._loop.call_soon(self._peer._lose, ConnectionResetError("Connection reset by peer"))

    def is_closing(self) -> bool:
        """Whether it has been closed or is about to."""
        return self._closing

    def pause_reading(self) -> None:
        """Let what arrives wait."""
        self._paused = True

    def resume_reading(self) -> None:
        """Hand out what arrived."""
        self._paused = False
        self._wake()

    def is_reading(self) -> bool:
        """Whether what arrives is handed out."""
        return not self._paused and not self._closing

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Let another protocol have what arrives from now on."""
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Who gets what arrives."""
        return self._protocol

    def get_write_buffer_size(self) -> int:
        """Bytes that the other end has not taken yet."""
        return len(self._peer._inbox) if self._peer is not None else 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """The limits are fixed."""

    def _wake(self) -> None:
        if not self._due and not self._paused and not self._closing:
            self._due = True
            self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._due = False
        if self._closing or self._paused:
            return
        if self._inbox:
            data, self._inbox = bytes(self._inbox), bytearray()
            _feed(self._protocol, data)
            peer = self._peer
            if peer is not None and peer._held and len(self._inbox) < LOW:
                peer._held = False
                peer._protocol.resume_writing()
            self._wake_again()
        elif self._ended:
            self._end()

    def _wake_again(self) -> None:
        if self._inbox or self._ended:
            self._wake()

    def _end(self) -> None:
        self._ended = False
        ending = getattr(self._protocol, "eof_received", None)
        if ending is None or not ending():
            self.close()

    def _lose(self, error: Exception | None) -> None:
        if not self._lost:
            self._lost = True
            self._inbox.clear()
            self._protocol.connection_lost(error)
            if self._over is not None and not self._over.done():
                self._over.set_result(None)


def splice(near: Wire, far: Wire) -> asyncio.Future[None]:
    """Step out of the middle: whoever is at the other ends of these two talks directly from now on.

    What they had sent before arrives first. Closing or aborting one of the two still does so to its other end. The
    future is done as soon as one of the other ends has lost the connection.
    """
    one, other = near._peer, far._peer
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    if one is None or other is None or one._lost or other._lost:
        over.set_result(None)
        return over
    one.tie(other)
    one._over = other._over = over
    for middle, receiver in ((near, other), (far, one)):
        receiver._inbox += middle._inbox
        middle._inbox.clear()
        receiver._ended = receiver._ended or middle._ended
        receiver._wake_again()
    return over


def _feed(protocol: asyncio.BaseProtocol, data: bytes) -> None:
    if isinstance(protocol, asyncio.BufferedProtocol):
        view = memoryview(data)
        while view:
            room = memoryview(protocol.get_buffer(len(view)))
            size = min(len(room), len(view))
            room[:size] = view[:size]
            protocol.buffer_updated(size)
            view = view[size:]
    elif isinstance(protocol, asyncio.Protocol):
        protocol.data_received(data)


def connect(ours: asyncio.BaseProtocol, theirs: asyncio.BaseProtocol) -> Wire:
    """Connect two protocols; returns our end."""
    near, far = Wire(ours), Wire(theirs)
    near.tie(far)
    theirs.connection_made(far)
    ours.connection_made(near)
    return near


def open_streams(accept: Accept) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection as a pair of streams."""
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    return reader, asyncio.StreamWriter(connect(protocol, accept()), protocol, reader, asyncio.get_running_loop())


class WireConnector(aiohttp.BaseConnector):
    """Lets an HTTP client talk to a server of the same process, whatever the scheme and the address of its URL."""

    def __init__(self, accept: Accept) -> None:
        super().__init__(limit=0, keepalive_timeout=30)
        self._accept = accept

    async def _create_connection(self, req: Any, traces: Any, timeout: Any) -> ResponseHandler:
        protocol = self._factory()
        connect(protocol, self._accept())
        return protocol

"""Byte streams between simulated processes: pipes, and connections made of two of them."""

from __future__ import annotations

import asyncio

FULL = 2**20
"""Bytes in a pipe from which on a considerate writer waits for its reader."""
MOST = 64 * 2**20
"""Bytes that anybody gets who wants everything: more would be the host's memory, not that of a simulated machine."""


class Flooded(Exception):
    """More came than anybody can hold."""


def encoded(text: str) -> bytes:
    """A text as programs write it; what came in as other bytes than UTF-8 goes out as these bytes again."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


class Pipe:
    """A one-way byte stream; reading returns ``b""`` once it is closed and drained.

    Every simulated program talks through these, in lines mostly: asyncio's reader costs three calls for a line.
    Writing never waits; who writes much asks for `room` now and then, so that a slow reader slows the writer down.
    """

    def __init__(self) -> None:
        self._inside = bytearray()
        self._arrival: asyncio.Future[None] | None = None
        self._writers: list[asyncio.Future[None]] = []
        self._full = FULL
        self.closed = False

    def write(self, data: bytes) -> None:
        """Append bytes; what is written after closing is lost, as on a broken pipe."""
        if data and not self.closed:
            self._inside += data
            self._wake()

    def close(self) -> None:
        """No more bytes follow."""
        if not self.closed:
            self.closed = True
            self._wake()
            self._let_in()

    async def room(self) -> None:
        """Wait while it is full, as a write to a full pipe does; whoever closes it ends the wait."""
        while len(self._inside) >= self._full and not self.closed:
            future = asyncio.get_running_loop().create_future()
            self._writers.append(future)
            await future

    async def read(self, size: int = 65536) -> bytes:
        """Some bytes as soon as there are any."""
        while not self._inside and not self.closed:
            await self._more()
        return self._take(size)

    async def read_all(self) -> bytes:
        """Everything up to the end; raises `Flooded` where that is too much."""
        found = bytearray()
        while data := await self.read(FULL):
            found += data
            if len(found) > MOST:
                raise Flooded
        return bytes(found)

    async def read_head(self, size: int) -> bytes:
        """The first bytes up to a size; what follows is read, so that nobody waits, and forgotten."""
        found = bytearray()
        while data := await self.read(FULL):
            found += data[: size - len(found)]
        return bytes(found)

    async def readline(self) -> bytes:
        """One line with its end, or what is left."""
        seen = 0
        while not (end := self._inside.find(b"\n", seen) + 1) and not self.closed:
            seen = len(self._inside)
            if seen > MOST:
                raise Flooded
            self._want_more()
            await self._more()
        return self._take(end or len(self._inside))

    def take_head(self) -> bytes:
        """All lines through the first empty one; nothing if that has not arrived, or is not the end of such lines."""
        inside = self._inside
        end = 0 if inside.startswith(b"\r\n") else inside.find(b"\r\n\r\n") + 2
        if end == 1 or inside.find(b"\n\n", 0, end) >= 0 or inside.find(b"\n\r\n", 0, end) >= 0:
            return b""
        return self._take(end + 2)

    async def readexactly(self, size: int) -> bytes:
        """Exactly that many bytes; raises ``asyncio.IncompleteReadError`` at an early end."""
        while len(self._inside) < size:
            if self.closed:
                raise asyncio.IncompleteReadError(self._take(size), size)
            self._want_more()
            await self._more()
        return self._take(size)

    def _take(self, size: int) -> bytes:
        data = bytes(self._inside[:size])
        del self._inside[:size]
        self._full = FULL
        if self._writers:
            self._let_in()
        return data

    def _want_more(self) -> None:
        """A reader needs what is inside and more at once, so that writers may go on."""
        if len(self._inside) >= self._full:
            self._full = len(self._inside) + FULL
            self._let_in()

    def _let_in(self) -> None:
        """Those who wait for room look again."""
        writers, self._writers = self._writers, []
        for future in writers:
            if not future.done():
                future.set_result(None)

    async def _more(self) -> None:
        if self._arrival is not None:
            raise RuntimeError("somebody else reads from this pipe already")
        self._arrival = asyncio.get_running_loop().create_future()
        try:
            await self._arrival
        finally:
            self._arrival = None

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)


class Connection:
    """One end of an established stream connection between two simulated processes."""

    def __init__(self, inbound: Pipe, outbound: Pipe, local: tuple[str, int], remote: tuple[str, int]) -> None:
        self._inbound = inbound
        self._outbound = outbound
        self.local = local
        self.remote = remote
        """The peer as this end sees it: address translation on the way shows here."""
        self.read = inbound.read
        self.readline = inbound.readline
        self.readexactly = inbound.readexactly
        self.take_head = inbound.take_head
        self.read_all = inbound.read_all
        self.write = outbound.write
        self.room = outbound.room

    @property
    def ended(self) -> bool:
        """Whether the other end has hung up."""
        return self._inbound.closed

    def close_write(self) -> None:
        """Say that nothing more will be sent; reading goes on."""
        self._outbound.close()

    def close(self) -> None:
        """Hang up in both directions."""
        self._outbound.close()
        self._inbound.close()

"""Byte streams between simulated processes: pipes, and connections made of two of them."""

from __future__ import annotations

import asyncio


class Pipe:
    """A one-way byte stream; reading returns ``b""`` once it is closed and drained."""

    def __init__(self) -> None:
        self._reader = asyncio.StreamReader(limit=2**24)
        self.closed = False

    def write(self, data: bytes) -> None:
        """Append bytes; what is written after closing is lost, as on a broken pipe."""
        if data and not self.closed:
            self._reader.feed_data(data)

    def close(self) -> None:
        """No more bytes follow."""
        if not self.closed:
            self.closed = True
            self._reader.feed_eof()

    async def read(self, size: int = 65536) -> bytes:
        """Some bytes as soon as there are any."""
        return await self._reader.read(size)

    async def read_all(self) -> bytes:
        """Everything up to the end."""
        return await self._reader.read()

    async def readline(self) -> bytes:
        """One line with its end, or what is left."""
        return await self._reader.readline()

    async def readexactly(self, size: int) -> bytes:
        """Exactly that many bytes; raises ``asyncio.IncompleteReadError`` at an early end."""
        return await self._reader.readexactly(size)


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
        self.read_all = inbound.read_all
        self.write = outbound.write

    def close_write(self) -> None:
        """Say that nothing more will be sent; reading goes on."""
        self._outbound.close()

    def close(self) -> None:
        """Hang up in both directions."""
        self._outbound.close()
        self._inbound.close()

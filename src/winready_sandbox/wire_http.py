"""Plain HTTP requests to a server of this process: bytes out, bytes back, and nothing in between.

The nodes of a sandbox ask its API server thousands of things; a general HTTP client costs more than the answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from winready_sandbox.wire import Accept, Wire, connect

IDLE_SECONDS = 30.0
"""For which a connection is kept; less than what any server here waits for the next request."""
BODILESS = (204, 304)


class Answer(NamedTuple):
    """What a server said."""

    status: int
    headers: Mapping[str, str]
    """With lower-case names."""
    body: bytes


class WireClient:
    """Asks over connections that are used again, one request at a time on each."""

    def __init__(self, accept: Accept, host: str) -> None:
        self._accept = accept
        self._host = host
        self._idle: list[_Connection] = []
        self._busy: set[_Connection] = set()

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Answer:
        """One request; raises ``OSError`` where there is no answer, and ``TimeoutError``."""
        lines = [f"{method} {target} HTTP/1.1", f"Host: {self._host}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        connection = self._connection()
        self._busy.add(connection)
        try:
            async with asyncio.timeout(timeout):
                answer = await connection.ask(head + body if body else head)
        except BaseException:
            connection.wire.close()
            raise
        finally:
            self._busy.discard(connection)
        if answer.headers.get("connection", "").lower() == "close":
            connection.wire.close()
        elif not connection.wire.is_closing():
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
        return answer

    def close(self) -> None:
        """Hang up everywhere."""
        for connection in (*self._idle, *self._busy):
            connection.wire.close()
        self._idle.clear()

    def _connection(self) -> _Connection:
        latest = asyncio.get_running_loop().time() - IDLE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if connection.idle_since > latest and not connection.wire.is_closing():
                return connection
            connection.wire.close()
        return _Connection(self._accept)


class _Connection(asyncio.Protocol):
    """One connection, and the answer that is arriving on it."""

    def __init__(self, accept: Accept) -> None:
        self.idle_since = 0.0
        self._arrived = bytearray()
        self._waiting: asyncio.Future[Answer] | None = None
        self.wire: Wire = connect(self, accept())

    async def ask(self, request: bytes) -> Answer:
        """Send a request and wait for the answer."""
        self._arrived.clear()
        self._waiting = asyncio.get_running_loop().create_future()
        self.wire.write(request)
        try:
            return await self._waiting
        finally:
            self._waiting = None

    def data_received(self, data: bytes) -> None:
        """Part of an answer has come."""
        self._arrived += data
        self._look(ended=False)

    def eof_received(self) -> None:
        """Nothing more comes."""
        self._look(ended=True)

    def connection_lost(self, exc: Exception | None) -> None:
        """The server has gone."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(exc or ConnectionResetError("Server disconnected"))

    def _look(self, *, ended: bool) -> None:
        if self._waiting is None or self._waiting.done():
            return
        try:
            answer = _read(bytes(self._arrived), ended=ended)
        except (ValueError, IndexError):
            self._waiting.set_exception(ConnectionResetError("the answer is no HTTP"))
            return
        if answer is not None:
            self._waiting.set_result(answer)


def _read(arrived: bytes, *, ended: bool) -> Answer | None:
    """The answer, if all of it is there."""
    head, mark, body = arrived.partition(b"\r\n\r\n")
    if not mark:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    status = int(first.split(" ", 2)[1])
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if status in BODILESS:
        return Answer(status, headers, b"")
    if headers.get("transfer-encoding", "").lower() == "chunked":
        whole = _chunks(body)
        return None if whole is None else Answer(status, headers, whole)
    if "content-length" in headers:
        length = int(headers["content-length"])
        return Answer(status, headers, body[:length]) if len(body) >= length else None
    return Answer(status, headers, body) if ended else None


def _chunks(body: bytes) -> bytes | None:
    """What chunks are made of, if the last one is there."""
    parts: list[bytes] = []
    position = 0
    while (end := body.find(b"\r\n", position)) >= 0:
        size = int(body[position:end].split(b";")[0], 16)
        start, position = end + 2, end + 2 + size + 2
        if len(body) < position:
            return None
        if not size:
            return b"".join(parts)
        parts.append(body[start : start + size])
    return None

"""The part of SPDY/3.1 that port-forwarding needs: kubectl sends it through a WebSocket, one stream per connection.

kubectl offers the subprotocol ``SPDY/3.1+portforward.k8s.io`` and nothing else; the messages of that WebSocket are the
bytes of a SPDY session. Each forwarded connection is a pair of streams, ``error`` and ``data``, with one request id.
There is no flow control, as the other end keeps none either.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable

from winready_sandbox.streams import Pipe

SUBPROTOCOL = "SPDY/3.1+portforward.k8s.io"

_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie "
    "keep-alive origin"
)
_CODES = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
    "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,"
    "text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY, _HEADERS = 1, 2, 3, 6, 7, 8
_FIN = 1
_CONTROL = 0x80
_VERSION = 3


def _prefixed(text: str) -> bytes:
    return len(text).to_bytes(4, "big") + text.encode()


DICTIONARY = b"".join(_prefixed(word.replace("_", " ")) for word in _WORDS.split()) + _CODES.encode()
"""What header blocks are compressed against; the protocol fixes every byte of it."""


class Stream:
    """One stream that the client opened."""

    def __init__(self, session: Session, number: int, headers: dict[str, str]) -> None:
        self._session = session
        self.number = number
        self.headers = headers
        self.inbound = Pipe()
        self._closed = False

    async def write(self, data: bytes) -> None:
        """Send bytes to the client."""
        for start in range(0, len(data), 32768):
            await self._session.send_data(self.number, data[start : start + 32768])

    async def close(self) -> None:
        """Say that nothing more will be sent."""
        if not self._closed:
            self._closed = True
            await self._session.send_data(self.number, b"", fin=True)


class Session:
    """The server's end of a SPDY connection."""

    def __init__(self, send: Callable[[bytes], Awaitable[None]], accept: Callable[[Stream], None]) -> None:
        self._send = send
        self._accept = accept
        self._buffer = b""
        self._streams: dict[int, Stream] = {}
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    async def feed(self, data: bytes) -> None:
        """Take bytes from the client; raises ValueError for what is no SPDY."""
        self._buffer += data
        while len(self._buffer) >= 8:
            length = int.from_bytes(self._buffer[5:8], "big")
            if len(self._buffer) < 8 + length:
                return
            head, payload = self._buffer[:8], self._buffer[8 : 8 + length]
            self._buffer = self._buffer[8 + length :]
            if head[0] & _CONTROL:
                await self._control(int.from_bytes(head[2:4], "big"), head[4], payload)
            else:
                self._data(int.from_bytes(head[:4], "big"), head[4], payload)

    def close(self) -> None:
        """The client has left."""
        for stream in self._streams.values():
            stream.inbound.close()
        self._streams.clear()

    async def _control(self, kind: int, flags: int, payload: bytes) -> None:
        number = int.from_bytes(payload[:4], "big") & 0x7FFFFFFF
        if kind == _SYN_STREAM:
            stream = Stream(self, number, self._headers(payload[10:]))
            self._streams[number] = stream
            await self._send_control(_SYN_REPLY, number.to_bytes(4, "big") + self._compressed({}))
            if flags & _FIN:
                stream.inbound.close()
            self._accept(stream)
        elif kind == _RST_STREAM:
            if number in self._streams:
                self._streams.pop(number).inbound.close()
        elif kind == _PING:
            await self._send_control(_PING, payload)
        elif kind == _GOAWAY:
            self.close()
        elif kind == _HEADERS:
            # Unused, but the header stream has one compression state: skipping a block would spoil the next.
            self._headers(payload[4:])

    def _data(self, number: int, flags: int, payload: bytes) -> None:
        stream = self._streams.get(number)
        if stream is None:
            return
        stream.inbound.write(payload)
        if flags & _FIN:
            stream.inbound.close()

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            raw = self._inflate.decompress(block)
        except zlib.error as error:
            raise ValueError(f"header block cannot be read: {error}") from None
        result: dict[str, str] = {}
        count, position = int.from_bytes(raw[:4], "big"), 4
        texts = []
        for _ in range(2 * count):
            size = int.from_bytes(raw[position : position + 4], "big")
            texts.append(raw[position + 4 : position + 4 + size].decode("latin-1"))
            position += 4 + size
        for name, value in zip(texts[::2], texts[1::2], strict=True):
            result[name.lower()] = value
        return result

    def _compressed(self, headers: dict[str, str]) -> bytes:
        raw = len(headers).to_bytes(4, "big")
        raw += b"".join(_prefixed(name) + _prefixed(value) for name, value in headers.items())
        return self._deflate.compress(raw) + self._deflate.flush(zlib.Z_SYNC_FLUSH)

    async def _send_control(self, kind: int, payload: bytes) -> None:
        head = bytes([_CONTROL, _VERSION]) + kind.to_bytes(2, "big") + b"\0" + len(payload).to_bytes(3, "big")
        await self._send(head + payload)

    async def send_data(self, number: int, data: bytes, *, fin: bool = False) -> None:
        """Send one data frame."""
        await self._send(number.to_bytes(4, "big") + bytes([_FIN if fin else 0]) + len(data).to_bytes(3, "big") + data)

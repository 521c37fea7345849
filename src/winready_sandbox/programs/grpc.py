"""As much of gRPC as health checks need: one call over HTTP/2, with headers that are spelled out."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from enum import IntEnum

from winready_sandbox.network.endpoint import NetworkError
from winready_sandbox.programs.net import Stream

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
CHECK = "/grpc.health.v1.Health/Check"
_DATA, _HEADERS, _SETTINGS, _PING, _GO_AWAY = 0, 1, 4, 6, 7
_END_STREAM, _ACK, _END_HEADERS = 1, 1, 4


class Health(IntEnum):
    """What a service says of itself."""

    UNKNOWN = 0
    SERVING = 1
    NOT_SERVING = 2


class CallFailed(NetworkError):
    """The call did not succeed; the message is the server's, or says what was wrong with its answer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


NOT_FOUND, UNIMPLEMENTED, UNAVAILABLE = 5, 12, 14
State = Callable[[str], Health | None]
"""How a service is, by its name; None for one that nobody knows."""


async def check(stream: Stream, authority: str, service: str) -> Health:
    """Ask how a service is; raises `CallFailed`."""
    name = service.encode()
    message = b"\x0a" + bytes([len(name)]) + name if name else b""
    headers = {":method": "POST", ":scheme": "http", ":path": CHECK, ":authority": authority}
    headers |= {"content-type": "application/grpc", "te": "trailers"}
    stream.write(PREFACE + _frame(_SETTINGS, 0, 0, b""))
    stream.write(_frame(_HEADERS, _END_HEADERS, 1, _packed(headers)))
    stream.write(_frame(_DATA, _END_STREAM, 1, b"\0" + struct.pack(">I", len(message)) + message))
    body, told = b"", dict[str, str]()
    try:
        while "grpc-status" not in told:
            kind, flags, payload = await _read(stream)
            if kind == _SETTINGS and not flags & _ACK:
                stream.write(_frame(_SETTINGS, _ACK, 0, b""))
            elif kind == _DATA:
                body += payload
            elif kind == _HEADERS:
                told |= _unpacked(payload)
            elif kind == _GO_AWAY:
                break
    except (asyncio.IncompleteReadError, IndexError, UnicodeDecodeError):
        raise CallFailed(UNAVAILABLE, "error reading server preface: EOF") from None
    if code := int(told.get("grpc-status", UNAVAILABLE)):
        raise CallFailed(code, told.get("grpc-message", ""))
    return Health(body[6]) if len(body) > 6 else Health.UNKNOWN


async def serve(stream: Stream, state: State) -> None:
    """Answer calls of ``Health/Check`` until the peer hangs up."""
    await stream.readexactly(len(PREFACE))
    stream.write(_frame(_SETTINGS, 0, 0, b""))
    path = ""
    while True:
        try:
            kind, flags, payload = await _read(stream)
        except asyncio.IncompleteReadError:
            return
        if kind == _SETTINGS and not flags & _ACK:
            stream.write(_frame(_SETTINGS, _ACK, 0, b""))
        elif kind == _PING and not flags & _ACK:
            stream.write(_frame(_PING, _ACK, 0, payload))
        elif kind == _HEADERS:
            path = _unpacked(payload).get(":path", "")
        elif kind == _DATA and flags & _END_STREAM:
            _answer(stream, state(payload[7:].decode()) if path == CHECK else None, known=path == CHECK)


def _answer(stream: Stream, health: Health | None, *, known: bool) -> None:
    head = {":status": "200", "content-type": "application/grpc"}
    if health is None:
        code, words = (NOT_FOUND, "unknown service") if known else (UNIMPLEMENTED, "unknown method")
        head |= {"grpc-status": str(code), "grpc-message": words}
        stream.write(_frame(_HEADERS, _END_HEADERS | _END_STREAM, 1, _packed(head)))
        return
    message = b"\x08" + bytes([health])
    stream.write(_frame(_HEADERS, _END_HEADERS, 1, _packed(head)))
    stream.write(_frame(_DATA, 0, 1, b"\0" + struct.pack(">I", len(message)) + message))
    stream.write(_frame(_HEADERS, _END_HEADERS | _END_STREAM, 1, _packed({"grpc-status": "0", "grpc-message": ""})))


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


async def _read(stream: Stream) -> tuple[int, int, bytes]:
    head = await stream.readexactly(9)
    return head[3], head[4], await stream.readexactly(int.from_bytes(head[:3]))


def _packed(headers: dict[str, str]) -> bytes:
    """Literal fields without indexing; names and values are shorter than 127 bytes."""
    parts = [(name.encode(), value.encode()) for name, value in headers.items()]
    return b"".join(b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value for name, value in parts)


def _unpacked(data: bytes) -> dict[str, str]:
    found, at = dict[str, str](), 0
    while at < len(data):
        words = []
        at += 1
        for _ in range(2):
            size = data[at]
            words.append(data[at + 1 : at + 1 + size].decode())
            at += 1 + size
        found[words[0]] = words[1]
    return found

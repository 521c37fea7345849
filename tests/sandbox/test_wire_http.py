"""Requests inside a process: how answers are delimited, how connections are used again, and how they break."""

from __future__ import annotations

import asyncio

import pytest

from winready_sandbox.wire_http import IDLE_SECONDS, WireClient


class Scripted(asyncio.Protocol):
    """A server that plays what it is given, piece by piece, one list for each request."""

    def __init__(self, script: list[list[bytes | None]]) -> None:
        self.script = script
        self.asked: list[bytes] = []
        self.connections = 0
        self.ended = 0

    def __call__(self) -> asyncio.BaseProtocol:
        self.connections += 1
        return self

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended += 1

    def data_received(self, data: bytes) -> None:
        self.asked.append(data)
        for number, piece in enumerate(self.script.pop(0)):
            if piece is None:
                asyncio.get_running_loop().call_later(number, self.transport.close)
            else:
                asyncio.get_running_loop().call_later(number, self.transport.write, piece)


async def ask(client: WireClient, body: bytes | None = None, timeout: float = 30.0) -> tuple[int, bytes]:
    answer = await client.request("POST" if body else "GET", "/a?b=c", {"Accept": "x/y"}, body, timeout)
    return answer.status, answer.body


@pytest.mark.parametrize(
    ("pieces", "answer"),
    [
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"], (200, b"hello")),
        ([b"HTTP/1.1 200 OK\r\nConte", b"nt-Length: 5\r\n\r\nhe", b"llo"], (200, b"hello")),
        ([b"HTTP/1.1 204 No Content\r\n\r\n"], (204, b"")),
        (
            [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n", b"2;x\r\nlo\r", b"\n0\r\n\r\n"],
            (200, b"hello"),
        ),
        ([b"HTTP/1.1 409 Conflict\r\n\r\nuntil ", b"the end", None], (409, b"until the end")),
    ],
)
@pytest.mark.virtual_time
async def test_an_answer_is_whole_however_it_comes(pieces: list[bytes | None], answer: tuple[int, bytes]) -> None:
    server = Scripted([pieces])
    assert await ask(WireClient(server, "somewhere"), b"{}") == answer
    assert server.asked == [b"POST /a?b=c HTTP/1.1\r\nHost: somewhere\r\nAccept: x/y\r\nContent-Length: 2\r\n\r\n{}"]


@pytest.mark.virtual_time
async def test_a_connection_is_used_again_until_it_was_idle_for_long_or_the_server_wants_no_more() -> None:
    fine: list[bytes | None] = [b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]
    last: list[bytes | None] = [b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"]
    server = Scripted([fine, fine, fine, last, fine])
    client = WireClient(server, "somewhere")
    await ask(client)
    await ask(client)
    assert server.connections == 1
    await asyncio.sleep(IDLE_SECONDS + 1)
    await ask(client)
    assert server.connections == 2
    await ask(client)
    await ask(client)
    assert server.connections == 3
    client.close()
    await asyncio.sleep(1)
    assert server.ended == 3


@pytest.mark.parametrize(
    "pieces",
    [[None], [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe", None], [b"no HTTP at all\r\n\r\n"]],
)
@pytest.mark.virtual_time
async def test_a_server_that_hangs_up_or_talks_nonsense_is_an_error(pieces: list[bytes | None]) -> None:
    server = Scripted([pieces])
    with pytest.raises(OSError, match=r"disconnected|no HTTP"):
        await ask(WireClient(server, "somewhere"))


@pytest.mark.virtual_time
async def test_a_silent_server_is_given_up_and_hung_up_on() -> None:
    server = Scripted([[]])
    with pytest.raises(TimeoutError):
        await ask(WireClient(server, "somewhere"), timeout=5)
    await asyncio.sleep(1)
    assert server.ended == 1


@pytest.mark.virtual_time
async def test_who_is_cut_off_while_he_waits_learns_it() -> None:
    server = Scripted([[]])
    client = WireClient(server, "somewhere")
    asking = asyncio.create_task(ask(client))
    await asyncio.sleep(1)
    client.close()
    with pytest.raises(OSError, match="disconnected"):
        await asking

"""Connections inside a process: HTTP over them, and how they end."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from aiohttp import web

from winready_sandbox.wire import HIGH, INSIDE, WireConnector, connect, open_streams, splice


class Recorder(asyncio.Protocol):
    """Keeps what happens to it."""

    def __init__(self) -> None:
        self.data = b""
        self.said: list[str] = []
        self.resumed = asyncio.Event()
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data

    def eof_received(self) -> bool:
        self.said.append("eof")
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set_result(error)

    def pause_writing(self) -> None:
        self.said.append("pause")

    def resume_writing(self) -> None:
        self.resumed.set()


async def test_http_and_websockets_work_over_a_wire() -> None:
    async def hello(request: web.Request) -> web.Response:
        assert request.transport is not None
        return web.json_response({"inside": request.transport.get_extra_info(INSIDE), "said": await request.text()})

    async def echo(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            await socket.send_bytes(message.data[::-1])
        return socket

    app = web.Application()
    app.router.add_post("/hello", hello)
    app.router.add_get("/echo", echo)
    runner = web.AppRunner(app)
    await runner.setup()
    assert runner.server is not None
    async with aiohttp.ClientSession(connector=WireConnector(runner.server)) as session:
        for text in ("one", "x" * 2_000_000):
            async with session.post("https://anywhere/hello", data=text[:900_000]) as answer:
                assert await answer.json() == {"inside": True, "said": text[:900_000]}
        async with session.ws_connect("https://anywhere/echo") as socket:
            await socket.send_bytes(b"abc")
            assert await socket.receive_bytes() == b"cba"
    await runner.cleanup()


async def test_what_was_written_before_the_end_arrives() -> None:
    ours, theirs = Recorder(), Recorder()
    wire = connect(ours, theirs)
    wire.write(b"last words")
    wire.close()
    wire.write(b"too late")
    assert await theirs.lost is None
    assert await ours.lost is None
    assert (theirs.data, theirs.said) == (b"last words", ["eof"])


async def test_a_dropped_connection_is_an_error_at_the_other_end_only() -> None:
    ours, theirs = Recorder(), Recorder()
    connect(ours, theirs).abort()
    assert isinstance(await theirs.lost, ConnectionResetError)
    assert await ours.lost is None


async def test_a_writer_waits_for_a_slow_reader() -> None:
    ours, theirs = Recorder(), Recorder()
    wire = connect(ours, theirs)
    reading = theirs.transport
    assert isinstance(reading, asyncio.ReadTransport)
    reading.pause_reading()
    wire.write(b"x" * (HIGH + 1))
    await asyncio.sleep(0)
    assert (ours.said, theirs.data) == (["pause"], b"")
    assert wire.get_write_buffer_size() == HIGH + 1
    reading.resume_reading()
    await ours.resumed.wait()
    assert len(theirs.data) == HIGH + 1


async def test_who_steps_out_of_the_middle_leaves_two_ends_that_talk_directly() -> None:
    client, server, middle = Recorder(), Recorder(), Recorder()
    near, far = connect(middle, client), connect(Recorder(), server)
    assert isinstance(client.transport, asyncio.Transport)
    assert isinstance(server.transport, asyncio.Transport)
    client.transport.write(b"sent before, ")
    server.transport.write(b"answered before, ")
    over = splice(near, far)
    client.transport.write(b"sent after")
    server.transport.write(b"answered after")
    for _ in range(3):
        await asyncio.sleep(0)
    assert (server.data, client.data) == (b"sent before, sent after", b"answered before, answered after")
    assert (middle.data, over.done()) == (b"", False)
    client.transport.close()
    await over
    assert await server.lost is None
    assert await client.lost is None


async def test_who_stands_aside_can_still_cut_the_connection() -> None:
    client, server = Recorder(), Recorder()
    near, far = connect(Recorder(), client), connect(Recorder(), server)
    over = splice(near, far)
    near.abort()
    far.close()
    await over
    assert isinstance(await client.lost, ConnectionResetError)
    assert await server.lost is None


async def test_there_is_nothing_to_step_out_of_where_one_end_has_gone() -> None:
    client, server = Recorder(), Recorder()
    near, far = connect(Recorder(), client), connect(Recorder(), server)
    near.abort()
    await client.lost
    assert splice(near, far).done()


async def test_streams_end_with_what_the_server_sends() -> None:
    class Greeter(Recorder):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.WriteTransport)
            transport.write(b"hello\n")
            transport.close()

    reader, writer = open_streams(Greeter)
    assert await reader.readline() == b"hello\n"
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()
    with pytest.raises(asyncio.IncompleteReadError):
        await reader.readexactly(1)

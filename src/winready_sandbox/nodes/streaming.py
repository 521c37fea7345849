"""Exec, attach and port-forward: WebSocket with ``v5.channel.k8s.io`` or one of its forebears, or SPDY.

Every frame begins with its channel: 0 stdin, 1 stdout, 2 stderr, 3 the final Status, 4 the terminal's size. v5 adds
255, "this channel is closed", without which a command that reads its input to the end would never end.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import WSMsgType, web

from winready_sandbox.network.endpoint import NetworkError
from winready_sandbox.nodes import spdy, spdy_channels
from winready_sandbox.nodes.actions import dial_words
from winready_sandbox.nodes.contained import Runs
from winready_sandbox.nodes.spdy_channels import RawConnection, SpdyChannels
from winready_sandbox.streams import Connection, Pipe

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io", "channel.k8s.io")
_LAG = 8 * 2**20
"""Bytes that an attached client may be behind; whoever reads more slowly is let go."""
_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255


def success() -> dict[str, Any]:
    """The Status of a command that ended with 0."""
    return {"metadata": {}, "status": "Success"}


def exit_status(code: int, argv: list[str]) -> dict[str, Any]:
    """The Status of a command that ended with another code."""
    if code == 0:
        return success()
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: error executing command {_go_list(argv)}, "
        f"exit code {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def internal_error(message: str) -> dict[str, Any]:
    """The Status of a command that the runtime could not start."""
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {message}",
        "reason": "InternalError",
        "details": {"causes": [{"message": message}]},
        "code": 500,
    }


def _go_list(argv: list[str]) -> str:
    return "[" + " ".join(argv) + "]"


class Channels:
    """One WebSocket seen as numbered channels."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self.socket = socket

    @property
    def response(self) -> web.StreamResponse:
        """What the request handler returns."""
        return self.socket

    @classmethod
    async def accept(cls, request: web.Request) -> Channels:
        """Answer the upgrade."""
        socket = web.WebSocketResponse(protocols=PROTOCOLS, compress=False, max_msg_size=0, heartbeat=None)
        await socket.prepare(request)
        return cls(socket)

    async def send(self, channel: int, data: bytes) -> None:
        """Write to a channel; a client that has left is not an error here."""
        with contextlib.suppress(ConnectionError):
            await self.socket.send_bytes(bytes([channel]) + data)

    async def finish(self, status: dict[str, Any]) -> None:
        """Tell how it ended and hang up; before v4 only a failure was told, as a sentence."""
        if self.socket.ws_protocol in PROTOCOLS[:2]:
            await self.send(_ERROR, msgspec.json.encode(status))
        elif status["status"] != "Success":
            await self.send(_ERROR, status["message"].encode())
        await self.socket.close()

    async def frames(
        self, on_frame: Callable[[int, bytes], None], on_close: Callable[[int], None], inbox: Pipe | None
    ) -> None:
        """Hand out what the client sends until it leaves, as fast as its input is read; text counts like binary."""
        async for message in self.socket:
            if message.type not in (WSMsgType.BINARY, WSMsgType.TEXT):
                continue
            data = message.data if message.type == WSMsgType.BINARY else message.data.encode()
            if not data:
                continue
            if data[0] == _CLOSE and len(data) > 1:
                on_close(data[1])
            elif data[1:]:
                on_frame(data[0], data[1:])
                if inbox is not None:
                    await inbox.room()


def asked(request: web.Request) -> set[int]:
    """The channels that a request announces in its query."""
    options = {"input": _STDIN, "output": _STDOUT, "error": _STDERR, "tty": _RESIZE}
    return {number for name, number in options.items() if request.query.get(name, "").lower() in ("1", "true")}


async def _open(request: web.Request, numbers: set[int]) -> Channels | SpdyChannels:
    """The channels of a request, over whichever protocol it asks for."""
    if spdy_channels.wanted(request):
        return await SpdyChannels.accept(request, numbers | {_ERROR})
    return await Channels.accept(request)


async def _pump(channels: Channels | SpdyChannels, pipe: Pipe, channel: int) -> None:
    """Send everything from a pipe to a channel."""
    while data := await pipe.read(32768):
        await channels.send(channel, data)


async def serve_process(
    request: web.Request, start: Callable[[], Awaitable[Runs | str]], argv: list[str], *, stdin: bool, tty: bool
) -> web.StreamResponse:
    """Run a process for a client; ``start`` gives it, or the runtime's words for why there is none."""
    numbers = {_STDOUT, _RESIZE} if tty else {_STDOUT, _STDERR}
    channels = await _open(request, numbers & asked(request) | ({_STDIN} if stdin else set()))
    started = await start()
    if isinstance(started, str):
        await channels.finish(internal_error(f"error executing command in container: {started}"))
        return channels.response
    process = started
    if not stdin:
        process.stdin.close()

    def on_frame(channel: int, data: bytes) -> None:
        if channel == _STDIN:
            process.stdin.write(data)

    def on_close(channel: int) -> None:
        if channel == _STDIN:
            process.stdin.close()

    client = asyncio.create_task(channels.frames(on_frame, on_close, process.stdin))
    pumps = [asyncio.create_task(_pump(channels, process.stdout, _STDOUT))]
    if not tty:
        pumps.append(asyncio.create_task(_pump(channels, process.stderr, _STDERR)))
    ended = asyncio.create_task(process.wait())
    try:
        done, _ = await asyncio.wait({client, ended}, return_when=asyncio.FIRST_COMPLETED)
        if ended in done:
            if any(not pump.done() for pump in pumps):
                await asyncio.wait(pumps, timeout=5)
            await channels.finish(exit_status(ended.result(), argv))
        else:
            await process.kill()
    finally:
        tasks = (client, ended, *pumps)
        for task in tasks:
            task.cancel()
        if left := [task for task in tasks if not task.done()]:
            await asyncio.gather(*left, return_exceptions=True)
        for task in tasks:
            task.cancelled() or task.exception()  # what a client that has left did to them is nobody's trouble
        if not process.stdin.closed:
            process.stdin.close()
    return channels.response


async def serve_attach(
    request: web.Request,
    listen: Callable[[Callable[[int, bytes], None]], Callable[[], None]],
    stdin: Pipe | None,
    ended: Callable[[], Awaitable[int]],
    *,
    stdin_once: bool,
) -> web.StreamResponse:
    """Show a client what a running container writes; ``listen`` subscribes and returns how to unsubscribe."""
    channels = await _open(request, asked(request) - {_RESIZE})
    queue: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue()
    behind = 0

    def show(channel: int, data: bytes) -> None:
        nonlocal behind
        behind += len(data)
        if behind > _LAG:
            client.cancel()
        else:
            queue.put_nowait((channel, data))

    def on_frame(channel: int, data: bytes) -> None:
        if channel == _STDIN and stdin is not None:
            stdin.write(data)

    def on_close(channel: int) -> None:
        if channel == _STDIN and stdin is not None and stdin_once:
            stdin.close()

    async def forward() -> None:
        nonlocal behind
        while True:
            channel, data = await queue.get()
            behind -= len(data)
            if data:
                await channels.send(channel, data)
            queue.task_done()

    client = asyncio.create_task(channels.frames(on_frame, on_close, stdin))
    sender, end = asyncio.create_task(forward()), asyncio.ensure_future(ended())
    unsubscribe = listen(show)
    try:
        done, _ = await asyncio.wait({client, end}, return_when=asyncio.FIRST_COMPLETED)
        if end in done:
            await queue.join()
            await channels.finish(success())
    finally:
        unsubscribe()
        for task in (client, sender, end):
            task.cancel()
        await asyncio.gather(client, sender, end, return_exceptions=True)
    return channels.response


async def serve_tunnel(request: web.Request, connect: Callable[[int], Awaitable[Connection]]) -> web.StreamResponse:
    """Forward ports for kubectl: a SPDY session, inside a WebSocket or alone, a pair of streams for each connection."""
    halves: dict[str, dict[str, spdy.Stream]] = {}
    tasks: set[asyncio.Task[None]] = set()

    def accept(stream: spdy.Stream) -> None:
        pair = halves.setdefault(stream.headers.get("requestid", ""), {})
        pair[stream.headers.get("streamtype", "")] = stream
        if {"error", "data"} <= pair.keys():
            del halves[stream.headers.get("requestid", "")]
            task = asyncio.create_task(_forward(pair["data"], pair["error"], connect))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    try:
        if spdy_channels.wanted(request):
            connection = RawConnection(request, ("portforward.k8s.io",))
            await connection.run(spdy.Session(connection.send, accept))
            return connection.response
        return await _inside_socket(request, accept)
    finally:
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _inside_socket(request: web.Request, accept: Callable[[spdy.Stream], None]) -> web.StreamResponse:
    socket = web.WebSocketResponse(protocols=(spdy.SUBPROTOCOL,), compress=False, max_msg_size=0)
    await socket.prepare(request)

    async def send(data: bytes) -> None:
        with contextlib.suppress(ConnectionError):
            await socket.send_bytes(data)

    session = spdy.Session(send, accept)
    try:
        async for message in socket:
            if message.type == WSMsgType.BINARY:
                await session.feed(message.data)
    except ValueError:
        await socket.close(code=1002)
    finally:
        session.close()
    return socket


async def _forward(data: spdy.Stream, error: spdy.Stream, connect: Callable[[int], Awaitable[Connection]]) -> None:
    port = int(data.headers.get("port", "0"))
    try:
        connection = await connect(port)
    except NetworkError as failure:
        await error.write(_forwarding_words(port, failure).encode())
        await error.close()
        await data.close()
        return

    async def inwards() -> None:
        while received := await data.inbound.read():
            connection.write(received)
        connection.close_write()

    sender = asyncio.create_task(inwards())
    try:
        while answer := await connection.read(32768):
            await data.write(answer)
        await data.close()
        await error.close()
    finally:
        sender.cancel()
        connection.close()


def _forwarding_words(port: int, error: NetworkError) -> str:
    return f"failed to connect to localhost:{port} inside the pod: {dial_words('127.0.0.1', port, error)}"


async def serve_ports(
    request: web.Request, ports: list[int], connect: Callable[[int], Awaitable[Connection]]
) -> web.StreamResponse:
    """Forward ports: for the n-th port, channel 2n carries data and 2n+1 an error; both begin with the port number."""
    channels = await Channels.accept(request)
    connections: dict[int, Connection] = {}
    tasks: list[asyncio.Task[None]] = []

    async def back(channel: int, connection: Connection) -> None:
        while data := await connection.read(32768):
            await channels.send(channel, data)

    for position, port in enumerate(ports):
        number = port.to_bytes(2, "little")
        await channels.send(2 * position, number)
        await channels.send(2 * position + 1, number)
        try:
            connections[2 * position] = await connect(port)
        except NetworkError as error:
            await channels.send(2 * position + 1, _forwarding_words(port, error).encode())
            continue
        tasks.append(asyncio.create_task(back(2 * position, connections[2 * position])))

    def on_frame(channel: int, data: bytes) -> None:
        if channel in connections:
            connections[channel].write(data)

    try:
        await channels.frames(on_frame, lambda channel: None, None)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in connections.values():
            connection.close()
    return channels.response

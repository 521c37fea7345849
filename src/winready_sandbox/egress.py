"""The way from the control plane to simulated addresses.

Nodes and pods have addresses of their own (10.250.0.N, 10.244.N.M) that no real interface carries. Whatever the
API server opens towards the cluster comes through here: kubelet ports lead to real ports on loopback, all other
addresses into the simulated network. A real API server gets the same table as an HTTP CONNECT proxy on a Unix socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

from winready_sandbox.streams import Connection
from winready_sandbox.wire import Accept

Dial = Callable[[str, int], Awaitable[Connection]]


class NoRoute(Exception):
    """Nothing simulated answers at that address."""


class Egress:
    """Which simulated address leads where."""

    def __init__(self) -> None:
        self._table: dict[tuple[str, int], tuple[str, int]] = {}
        self._inside: dict[tuple[str, int], Accept] = {}
        self.dial: Dial | None = None
        """Opens connections into the simulated network, for pods and services; raises on failure."""
        self._server: asyncio.AbstractServer | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def register(self, ip: str, port: int, host: str, real_port: int, accept: Accept | None = None) -> None:
        """From now on that simulated address is served there; ``accept`` is the way for parts of this process."""
        self._table[ip, port] = (host, real_port)
        if accept is not None:
            self._inside[ip, port] = accept

    def unregister(self, ip: str, port: int) -> None:
        """The address answers no more."""
        self._table.pop((ip, port), None)
        self._inside.pop((ip, port), None)

    def inside(self, ip: str, port: int) -> Accept | None:
        """The way to whoever serves an address in this process, past sockets and TLS."""
        return self._inside.get((ip, port))

    def resolve(self, ip: str, port: int) -> tuple[str, int]:
        """The real host and port behind a simulated address; raises `NoRoute`."""
        try:
            return self._table[ip, port]
        except KeyError:
            raise NoRoute(f"dial tcp {ip}:{port}: connect: no route to host") from None

    async def open(self, ip: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A byte stream to a simulated address; raises `NoRoute` or what the network answered."""
        return await asyncio.open_connection(sock=await self.connect(ip, port))

    async def connect(self, ip: str, port: int) -> socket.socket:
        """The same as a connected socket, for whoever speaks TLS or HTTP over it."""
        if (ip, port) in self._table or self.dial is None:
            sock = socket.socket()
            sock.setblocking(False)
            try:
                await asyncio.get_running_loop().sock_connect(sock, self.resolve(ip, port))
            except (OSError, NoRoute):
                sock.close()
                raise NoRoute(f"dial tcp {ip}:{port}: connect: no route to host") from None
            return sock
        connection = await self.dial(ip, port)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self._keep(asyncio.create_task(_join(connection, theirs), name=f"egress {ip}:{port}"))
        return ours

    async def serve_connect(self, path: Path) -> None:
        """Answer HTTP CONNECT on a Unix socket, as an API server's egress selector asks for."""
        self._server = await asyncio.start_unix_server(self._connect, path=str(path))

    async def close(self) -> None:
        """Stop answering and cut what is open."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._keep(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            method, target, _ = head.split("\r\n", 1)[0].split(" ", 2)
            host, _, port = target.rpartition(":")
            if method != "CONNECT":
                raise NoRoute(f"{method} is not served here, only CONNECT")
            far_reader, far_writer = await self.open(host.strip("[]"), int(port))
        except (ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            writer.close()
            return
        except Exception as error:  # whatever the simulated network answered becomes the proxy's answer
            reason = " ".join(str(error).split()) or type(error).__name__
            writer.write(f"HTTP/1.1 502 {reason}\r\nContent-Length: 0\r\n\r\n".encode("latin-1", "replace"))
            writer.close()
            return
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on until the end, then say so; a vanished peer is an end as well."""
    with contextlib.suppress(ConnectionError, OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def _join(connection: Connection, sock: socket.socket) -> None:
    """Tie a simulated connection to one end of a socket pair."""
    reader, writer = await asyncio.open_connection(sock=sock)

    async def inwards() -> None:
        with contextlib.suppress(ConnectionError, OSError):
            while data := await reader.read(65536):
                connection.write(data)
        connection.close_write()

    async def outwards() -> None:
        with contextlib.suppress(ConnectionError, OSError):
            while data := await connection.read():
                writer.write(data)
                await writer.drain()
        writer.close()

    try:
        await asyncio.gather(inwards(), outwards())
    finally:
        connection.close()
        writer.close()

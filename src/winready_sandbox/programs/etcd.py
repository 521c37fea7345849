"""etcd, as far as somebody asks it how it is: over gRPC or HTTP on its port for clients."""

from __future__ import annotations

import asyncio
import re

from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import Listener, NetworkError
from winready_sandbox.programs import grpc, http1
from winready_sandbox.programs.grpc import Health
from winready_sandbox.programs.http1 import Request, Response
from winready_sandbox.programs.net import endpoint_of
from winready_sandbox.streams import Connection

PORT = 2379
_JSON = {"Content-Type": "application/json"}


async def etcd(process: Process) -> int:
    """Serve until stopped."""
    urls = re.search(r"--listen-client-urls[= ](\S+)", " ".join(process.argv))
    ports = [int(port) for port in re.findall(r":(\d+)(?:,|$)", urls[1])] if urls else [PORT]
    listeners: list[Listener] = []
    try:
        for port in ports:
            listeners.append(endpoint_of(process).listen(port, _serve))
            process.err(f'{{"level":"info","msg":"serving client traffic insecurely","address":"[::]:{port}"}}\n')
        await process.stop_requested.wait()
        return 0
    except NetworkError as error:
        process.err(f'{{"level":"fatal","msg":"discovery failed","error":"listen tcp: {error}"}}\n')
        return 1
    finally:
        for listener in listeners:
            listener.close()


async def _serve(connection: Connection) -> None:
    """Both protocols share the port; HTTP/2 begins with words that no request of HTTP/1 does."""
    opened = _Peeked(connection, await connection.read(len(grpc.PREFACE)))
    if grpc.PREFACE.startswith(opened.first) and opened.first:
        await grpc.serve(opened, lambda service: Health.SERVING if service in ("", "etcdserverpb.KV") else None)
    elif opened.first:
        await http1.serve(opened, _page, connection.remote, connection.local)


async def _page(request: Request) -> Response:
    if request.path == "/health":
        return Response('{"health":"true","reason":""}', headers=_JSON)
    if request.path == "/version":
        return Response('{"etcdserver":"3.6.8","etcdcluster":"3.6.0","storage":"3.6.0"}', headers=_JSON)
    return http1.error("404 page not found", 404)


class _Peeked:
    """A connection whose first bytes were read already."""

    def __init__(self, connection: Connection, first: bytes) -> None:
        self._connection = connection
        self.first = first
        self._left = first

    async def read(self, size: int = 65536) -> bytes:
        """Some bytes, or none at the end."""
        if self._left:
            data, self._left = self._left[:size], self._left[size:]
            return data
        return await self._connection.read(size)

    async def readexactly(self, size: int) -> bytes:
        """Exactly that many bytes."""
        data, self._left = self._left[:size], self._left[size:]
        try:
            return data + await self._connection.readexactly(size - len(data))
        except asyncio.IncompleteReadError as error:
            raise asyncio.IncompleteReadError(data + error.partial, size) from None

    async def readline(self) -> bytes:
        """One line."""
        head, end, self._left = self._left.partition(b"\n")
        return head + end if end else head + await self._connection.readline()

    def take_head(self) -> bytes:
        """Nothing: it may have begun already."""
        return b""

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._connection.write(data)

    def close(self) -> None:
        """Hang up."""
        self._connection.close()

    @property
    def ended(self) -> bool:
        """Whether the other end has hung up."""
        return self._connection.ended

"""What network programs share: the endpoint of their container, names, and streams with or without TLS."""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import ssl
from typing import Protocol

from winready_sandbox.machine.errors import FileError
from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import Unreachable
from winready_sandbox.network.pod_endpoint import NetworkEndpoint
from winready_sandbox.pki import KeyPair
from winready_sandbox.streams import Connection

HOSTS_FILE = {"linux": "/etc/hosts", "windows": "C:\\Windows\\System32\\drivers\\etc\\hosts"}


class Stream(Protocol):
    """What HTTP needs of a connection."""

    async def read(self, size: int = 65536) -> bytes:
        """Some bytes, or none at the end."""

    async def readline(self) -> bytes:
        """One line."""

    async def readexactly(self, size: int) -> bytes:
        """Exactly that many bytes."""

    def take_head(self) -> bytes:
        """All lines through the first empty one if they have arrived, else nothing."""

    def write(self, data: bytes) -> None:
        """Send bytes."""

    def close(self) -> None:
        """Hang up."""

    @property
    def ended(self) -> bool:
        """Whether the other end has hung up."""


def endpoint_of(process: Process) -> NetworkEndpoint:
    """The network of the process's container."""
    endpoint = process.container.endpoint
    if not isinstance(endpoint, NetworkEndpoint):
        raise Unreachable("the container has no network")
    return endpoint


def hosts_text(process: Process) -> str:
    """The hosts file as the container sees it."""
    try:
        return process.files.read(HOSTS_FILE[process.container.os]).decode("utf-8", "replace")
    except FileError:
        return ""


@functools.lru_cache(maxsize=4096)
def is_address(host: str) -> bool:
    """Whether a host is an IP address rather than a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


async def addresses(process: Process, host: str, *, families: tuple[int, ...] = (), timeout: float = 10.0) -> list[str]:
    """The addresses of a host as the container's resolver finds them; an address stands for itself."""
    if is_address(host):
        return [host]
    if host.lower() in (process.container.hostname.lower(), "localhost") and "." not in host:
        return ["127.0.0.1"] if host.lower() == "localhost" else endpoint_of(process).addresses[:1]
    endpoint = endpoint_of(process)
    return await endpoint.resolve(host, timeout=timeout, hosts=hosts_text(process), families=families)


def join_host_port(host: str, port: int | str) -> str:
    """The usual notation, with brackets around IPv6 addresses."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class TlsStream:
    """TLS over a simulated connection, with the real protocol: the other end may be a real API server."""

    def __init__(
        self, connection: Connection, context: ssl.SSLContext, *, server_name: str = "", serves: bool = False
    ) -> None:
        self._connection = connection
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=serves, server_hostname=server_name or None
        )
        self._buffer = b""

    async def handshake(self) -> None:
        """Agree on keys; raises ``ssl.SSLError``, or ``EOFError`` when the peer hangs up."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
                await self._feed()
                continue
            except ssl.SSLError:
                self._flush()
                raise
            self._flush()
            return

    def _flush(self) -> None:
        if data := self._outgoing.read():
            self._connection.write(data)

    async def _feed(self) -> None:
        data = await self._connection.read()
        if not data:
            raise EOFError("the peer closed the connection")
        self._incoming.write(data)

    async def read(self, size: int = 65536) -> bytes:
        """Some bytes, or none at the end."""
        if self._buffer:
            data, self._buffer = self._buffer[:size], self._buffer[size:]
            return data
        while True:
            try:
                return self._tls.read(size)
            except ssl.SSLWantReadError:
                self._flush()
                try:
                    await self._feed()
                except EOFError:
                    return b""
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""

    async def readline(self) -> bytes:
        """One line, or what is left."""
        line = b""
        while b"\n" not in line and (data := await self.read()):
            line += data
        head, newline, rest = line.partition(b"\n")
        self._buffer = rest + self._buffer
        return head + newline

    def take_head(self) -> bytes:
        """Nothing: what has arrived is not known before it is decrypted."""
        return b""

    async def readexactly(self, size: int) -> bytes:
        """Exactly that many bytes."""
        data = b""
        while len(data) < size:
            more = await self.read(size - len(data))
            if not more:
                raise asyncio.IncompleteReadError(data, size)
            data += more
        return data

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._tls.write(data)
        self._flush()

    def close(self) -> None:
        """Hang up."""
        self._connection.close()

    @property
    def ended(self) -> bool:
        """Whether the other end has hung up."""
        return self._connection.ended


def client_tls(*, verify: bool, authorities: str = "") -> ssl.SSLContext:
    """A client's TLS settings; without authorities (PEM) nobody is trusted, as images carry no private CA."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authorities:
        context.load_verify_locations(cadata=authorities)
    return context


def server_tls(certificate: bytes, key: bytes) -> ssl.SSLContext:
    """A server's TLS settings (PEM); raises ``ssl.SSLError`` for what is no certificate with its key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    KeyPair(certificate, key).load_into(context)
    return context

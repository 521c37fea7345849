"""What a process sees of the network: its pod's (or host's) endpoint, and how attempts end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from winready_sandbox.streams import Connection


class NetworkError(Exception):
    """An attempt that did not succeed."""


class Refused(NetworkError):
    """The peer answered that nothing listens there."""


class TimedOut(NetworkError):
    """No answer within the time the caller allowed."""

    def __init__(self, message: str = "", *, gave_up: bool = False) -> None:
        super().__init__(message)
        self.gave_up = gave_up
        """The operating system gave up before the caller's own time was over."""


class Unreachable(NetworkError):
    """There is no route to the address."""


class NoSuchName(NetworkError):
    """DNS answered that the name does not exist."""


class DnsFailure(NetworkError):
    """DNS did not answer, or answered with a server failure."""


class AddressInUse(NetworkError):
    """The port is taken on that address."""


class Listener(Protocol):
    """A bound TCP or UDP port."""

    def close(self) -> None:
        """Stop listening."""


class Endpoint(Protocol):
    """The network compartment (Windows) or namespace (Linux) of a pod, or a node's own."""

    @property
    def node(self) -> str:
        """Name of the node that it is on."""

    @property
    def addresses(self) -> list[str]:
        """IPv4 first when there are both."""

    async def connect(self, address: str, port: int, *, timeout: float, protocol: str = "TCP") -> Connection:
        """Open a stream connection to an IP address; ``timeout`` is in cluster seconds, 0 leaves it to the OS."""

    def listen(
        self, port: int, serve: Callable[[Connection], Awaitable[None]], *, address: str = "", protocol: str = "TCP"
    ) -> Listener:
        """Serve connections on a port of this endpoint (or on one address of it)."""

    async def exchange(self, address: str, port: int, payload: bytes, *, timeout: float) -> bytes:
        """Send one UDP datagram and wait for the answer."""

    def bind_udp(
        self, port: int, answer: Callable[[bytes, tuple[str, int]], Awaitable[bytes | None]], *, address: str = ""
    ) -> Listener:
        """Answer UDP datagrams on a port; ``None`` stays silent."""

    async def ping(self, address: str, *, timeout: float) -> float:
        """Round-trip time of one ICMP echo in cluster seconds."""

    async def resolve(
        self, name: str, *, timeout: float = 10.0, hosts: str = "", families: tuple[int, ...] = ()
    ) -> list[str]:
        """Addresses of a name: the hosts file's text first, then DNS with the search rules of this endpoint's OS."""

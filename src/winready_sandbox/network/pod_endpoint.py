"""The endpoint that processes hold: it asks `routing` for the way and lets the time pass that the way takes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from winready_sandbox.network.defects import DnsDefects
from winready_sandbox.network.endpoint import Refused, TimedOut, Unreachable
from winready_sandbox.network.messages import Message
from winready_sandbox.network.questions import Questions
from winready_sandbox.network.resolver import DnsConfig, Resolver, Wires
from winready_sandbox.network.routing import Path, answers_ping, route
from winready_sandbox.network.stack import Answer, LinkPipe, PortListener, Serve, Stack
from winready_sandbox.network.world import RESOLVER
from winready_sandbox.streams import Connection, Pipe

if TYPE_CHECKING:
    from winready_sandbox.network.fabric import Fabric

GIVE_UP = {"windows": 21.0, "linux": 130.0}
"""Cluster seconds after which the OS itself stops trying to connect."""
FIRST_RETRY = {"windows": 3.0, "linux": 1.0}
"""Cluster seconds after which it sends a first packet again; each time it waits twice as long."""
WINDOWS_REFUSAL = 2.0
"""Windows tries a refused connection three times before it tells."""


class NetworkEndpoint:
    """A stack with a resolver: a pod's compartment or namespace, or the host's as one pod sees it."""

    def __init__(self, fabric: Fabric, stack: Stack, dns: DnsConfig) -> None:
        self.fabric = fabric
        self.stack = stack
        defects = stack.node.defects.dns if stack.node is not None and stack.is_pod else DnsDefects()
        questions = Questions(fabric.domain, fabric.view, defects, fabric.clock)
        self.resolver = Resolver(stack.os, dns, fabric.cni_dns, fabric.node_dns, questions, defects, fabric.clock)
        self._wires = Wires(self._send, self._send_stream)

    @property
    def node(self) -> str:
        """Name of the node that it is on."""
        return self.stack.node.name if self.stack.node is not None else self.stack.name

    @property
    def addresses(self) -> list[str]:
        """IPv4 first when there are both."""
        return self.stack.addresses

    @property
    def os(self) -> str:
        """Operating system of the node."""
        return self.stack.os

    @property
    def dns(self) -> DnsConfig:
        """The resolver settings in force."""
        return self.resolver.config

    async def connect(self, address: str, port: int, *, timeout: float = 0, protocol: str = "TCP") -> Connection:
        """Open a stream connection to an IP address; ``timeout`` is in cluster seconds, 0 leaves it to the OS."""
        if protocol == "SCTP" and self.os == "windows":
            raise Unreachable("protocol not supported")
        path = route(self.fabric, self.stack, address, port, protocol)
        if path.lossy and (again := self._retries(path, address)):
            path = replace(path, latency=path.latency + again / 2)
        await self._travel(path, timeout, address, refusal=WINDOWS_REFUSAL if self.os == "windows" else 0.0)
        local = (self.stack.source_for(address) or address, self.stack.ephemeral_port())
        if address == "::1" or address.startswith("127."):
            local = (address, local[1])
        towards, back = self._pipe(path, path.max_payload), self._pipe(path, path.max_answer)
        client = Connection(back, towards, local, (address, port))
        server = Connection(towards, back, path.target, (path.source or local[0], local[1]))
        self.stack.connections.add(client)
        if path.cut_after:
            asyncio.get_running_loop().call_later(self.fabric.clock.wall(path.cut_after), client.close)
        if path.listener is not None:
            path.listener.accept(server)
        else:
            self.fabric.serve_outside(server)
        return client

    def _retries(self, path: Path, address: str) -> float:
        """Cluster seconds that pass until a first packet and its answer get through.

        Later packets of a connection are sent again within a fraction of a second, which nobody here notices.
        """
        waited, pause = 0.0, FIRST_RETRY[self.os]
        while waited < GIVE_UP[self.os] and self._lost(path, address):
            waited += pause
            pause *= 2
        return waited

    def _lost(self, path: Path, address: str) -> bool:
        """Whether a packet or its answer vanishes on one of the wires."""
        lost = [node.loses_packet(self.stack.name, address) for node in path.lossy for _ in ("there", "back")]
        return any(lost)

    def _pipe(self, path: Path, largest: int) -> Pipe:
        if path.extra_delay or largest or path.stalls_after:
            clock = self.fabric.clock
            return LinkPipe(clock.wall(path.extra_delay), largest, clock.wall(path.stalls_after))
        return Pipe()

    async def _travel(self, path: Path, timeout: float, address: str, *, refusal: float = 0.0) -> None:
        """Let the time of one attempt pass; returns only when it got through."""
        limit = GIVE_UP[self.os]
        allowed = min(timeout, limit) if timeout > 0 else limit
        gave_up = timeout <= 0 or timeout > limit
        clock = self.fabric.clock
        match path.outcome:
            case "drop":
                await clock.sleep(allowed)
                raise TimedOut(address, gave_up=gave_up)
            case "unreachable":
                await self._within(path.latency, allowed, address, gave_up)
                raise Unreachable(address)
            case "refuse":
                await self._within(max(2 * path.latency, refusal), allowed, address, gave_up)
                raise Refused(address)
        await self._within(2 * (path.latency + path.extra_delay), allowed, address, gave_up)

    async def _within(self, duration: float, allowed: float, address: str, gave_up: bool) -> None:
        clock = self.fabric.clock
        await clock.sleep(min(duration, allowed))
        if duration > allowed:
            raise TimedOut(address, gave_up=gave_up)

    def listen(self, port: int, serve: Serve, *, address: str = "", protocol: str = "TCP") -> PortListener:
        """Serve connections on a port of this endpoint (or on one address of it)."""
        return self.stack.bind(protocol, port, address, serve=serve)

    async def exchange(self, address: str, port: int, payload: bytes, *, timeout: float) -> bytes:
        """Send one UDP datagram and wait for the answer."""
        path = route(self.fabric, self.stack, address, port, "UDP")
        if (path.max_payload and len(payload) > path.max_payload) or self._lost(path, address):
            path = Path("drop")
        await self._travel(path, timeout, address)
        if path.listener is None:
            answer = self.fabric.world.answer_dns(payload) if address == RESOLVER else None
        else:
            source = (path.source or address, self.stack.ephemeral_port())
            answer = await self._answer(path.listener, payload, source, timeout)
        if answer is None or (path.max_answer and len(answer) > path.max_answer):
            await self._silence(timeout, address)
        return answer

    async def _answer(
        self, listener: PortListener, payload: bytes, source: tuple[str, int], timeout: float
    ) -> bytes | None:
        if listener.answer is None:
            return None
        if timeout <= 0:
            return await listener.answer(payload, source)
        try:
            return await asyncio.wait_for(listener.answer(payload, source), self.fabric.clock.patience(timeout))
        except TimeoutError:
            raise TimedOut(source[0]) from None

    async def _silence(self, timeout: float, address: str) -> NoReturn:
        await self.fabric.clock.sleep(timeout if timeout > 0 else GIVE_UP[self.os])
        raise TimedOut(address)

    def bind_udp(self, port: int, answer: Answer, *, address: str = "") -> PortListener:
        """Answer UDP datagrams on a port; ``None`` stays silent."""
        return self.stack.bind("UDP", port, address, answer=answer)

    async def ping(self, address: str, *, timeout: float) -> float:
        """Round-trip time of one ICMP echo in cluster seconds."""
        path = answers_ping(self.fabric, self.stack, address)
        await self._travel(path, timeout, address)
        return 2 * (path.latency + path.extra_delay)

    async def query(self, server: str, name: str, kind: str, *, timeout: float = 5.0, tcp: bool = False) -> Message:
        """Ask a nameserver directly, as dig does."""
        return await self.resolver.query(self._wires, server, name, kind, timeout, tcp=tcp)

    async def resolve(
        self, name: str, *, timeout: float = 10.0, hosts: str = "", families: tuple[int, ...] = ()
    ) -> list[str]:
        """Addresses of a name: the hosts file's text first, then DNS with the search rules of this endpoint's OS."""
        if not families:
            families = (4, 6) if any(":" in address for address in self.addresses) else (4,)
        return await self.resolver.resolve(self._wires, name, hosts=hosts, families=families, timeout=timeout)

    async def _send(self, server: str, port: int, payload: bytes, timeout: float) -> bytes:
        return await self.exchange(server, port, payload, timeout=timeout)

    async def _send_stream(self, server: str, port: int, payload: bytes, timeout: float) -> bytes:
        connection = await self.connect(server, port, timeout=timeout)
        try:
            connection.write(len(payload).to_bytes(2, "big") + payload)
            size = int.from_bytes(await connection.readexactly(2), "big")
            return await connection.readexactly(size)
        except asyncio.IncompleteReadError:
            raise Refused(server) from None
        finally:
            connection.close()

"""A network stack: the addresses, open ports and connections of one pod (its compartment or namespace) or machine."""

from __future__ import annotations

import asyncio
import logging
import math
import weakref
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from winready_sandbox.network.endpoint import AddressInUse
from winready_sandbox.streams import Connection, Pipe

if TYPE_CHECKING:
    from winready_sandbox.network.fabric import NodeNetwork

log = logging.getLogger(__name__)
Serve = Callable[[Connection], Awaitable[None]]
Answer = Callable[[bytes, tuple[str, int]], Awaitable[bytes | None]]


@dataclass(frozen=True)
class PodIdentity:
    """Whose stack it is."""

    namespace: str
    name: str
    uid: str
    labels: dict[str, str] = field(default_factory=dict)


class LinkPipe(Pipe):
    """A pipe over a bad wire: bytes arrive late, too large packets never, and after a while nothing does."""

    def __init__(self, delay: float, max_payload: int, stalls_after: float = 0.0) -> None:
        super().__init__()
        self._delay = delay
        self._max_payload = max_payload
        self._stalls = asyncio.get_running_loop().time() + stalls_after if stalls_after else math.inf
        self._done = False
        self._under_way: deque[bytes] = deque()
        """What was sent and has not arrived, in its order; nothing at all for the end."""

    def write(self, data: bytes) -> None:
        """Send bytes on their way."""
        if data and not (self._done or (self._max_payload and len(data) > self._max_payload) or self._stalled):
            self._send(data)

    def close(self) -> None:
        """End the stream behind what is still under way."""
        if not self._done and not self._stalled:
            self._done = True
            self._send(b"")

    def _send(self, data: bytes) -> None:
        self._under_way.append(data)
        # Timers may come in another order than they were set in; bytes never do.
        asyncio.get_running_loop().call_later(self._delay, self._arrive)

    def _arrive(self) -> None:
        if data := self._under_way.popleft():
            super().write(data)
        else:
            super().close()

    @property
    def _stalled(self) -> bool:
        return asyncio.get_running_loop().time() >= self._stalls


class PortListener:
    """A bound port; closing it ends what it serves, as the end of its process would."""

    def __init__(self, stack: Stack, key: tuple[str, str, int], serve: Serve | None, answer: Answer | None) -> None:
        self._stack = stack
        self._key = key
        self._serve = serve
        self.answer = answer
        self._tasks: dict[asyncio.Task[None], Connection] = {}

    def accept(self, connection: Connection) -> None:
        """Serve one connection in a task of its own."""
        if self._serve is None:
            raise TypeError(f"{self._key} is no stream port")
        self._stack.connections.add(connection)
        task = asyncio.ensure_future(self._serve_one(self._serve, connection))
        self._tasks[task] = connection
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def _serve_one(self, serve: Serve, connection: Connection) -> None:
        try:
            await serve(connection)
        except (asyncio.IncompleteReadError, ConnectionError):
            log.debug("peer of %s hung up early", connection.local)
        except Exception:
            log.exception("serving %s failed", connection.local)
        finally:
            connection.close()

    def close(self) -> None:
        """Stop listening and hang up."""
        if self._stack.ports.get(self._key) is self:
            del self._stack.ports[self._key]
        for task, connection in list(self._tasks.items()):
            connection.close()
            task.cancel()


class Stack:
    """Addresses and ports. Equal port numbers in several pods never clash: each has a stack of its own."""

    def __init__(
        self, name: str, os: str, addresses: list[str], node: NodeNetwork | None, pod: PodIdentity | None
    ) -> None:
        self.name = name
        self.os = os
        self.addresses = addresses
        self.node = node
        self.pod = pod
        self.up = True
        self.number = 0
        """Which one it is of the pods that its node has had."""
        self.new = True
        """False for a pod that its node starts again."""
        self.ports: dict[tuple[str, str, int], PortListener] = {}
        self.connections: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._first_port, self._last_port = (49152, 65535) if os == "windows" else (32768, 60999)
        self._next_port = self._first_port

    @property
    def is_pod(self) -> bool:
        """Whether this is a pod's own stack rather than a machine's."""
        return self.pod is not None

    def source_for(self, address: str) -> str | None:
        """The own address that packets to that address leave with."""
        wants_v6 = ":" in address
        return next((own for own in self.addresses if (":" in own) == wants_v6), None)

    def ephemeral_port(self) -> int:
        """A source port of the OS's dynamic range."""
        port = self._next_port
        self._next_port = port + 1 if port < self._last_port else self._first_port
        return port

    def bind(
        self, protocol: str, port: int, address: str, *, serve: Serve | None = None, answer: Answer | None = None
    ) -> PortListener:
        """Open a port."""
        key = (protocol, "" if address in ("", "0.0.0.0", "::") else address, port)
        taken = any(p == protocol and n == port and (not a or not key[1] or a == key[1]) for p, a, n in self.ports)
        if taken:
            raise AddressInUse(f"port {port}/{protocol} is in use on {self.name}")
        listener = PortListener(self, key, serve, answer)
        self.ports[key] = listener
        return listener

    def find(self, protocol: str, address: str, port: int) -> PortListener | None:
        """Who listens there."""
        return self.ports.get((protocol, address, port)) or self.ports.get((protocol, "", port))

    def shut(self) -> None:
        """Everything open ends: the pod is gone or the machine goes down."""
        for listener in list(self.ports.values()):
            listener.close()
        for connection in list(self.connections):
            connection.close()

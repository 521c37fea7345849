"""What a sandbox expects of its control plane, whichever it is: embedded or real."""

from __future__ import annotations

import asyncio
import errno
from typing import Any, Protocol

from winready_sandbox.api.identity import MASTERS, User
from winready_sandbox.state import StateError
from winready_sandbox.wire import Accept

HOST = "127.0.0.1"
SERVICE_IP = "10.96.0.1"
MACHINE_IP = "10.250.0.1"
"""Where pods find the API server's machine in the simulated network."""
SANDBOX = User("winready:sandbox", (MASTERS,))
"""Who the simulated network and the sandbox itself are to the API."""
_NAMES = (
    HOST,
    "::1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    SERVICE_IP,
    MACHINE_IP,
)


def server_names(domain: str) -> tuple[str, ...]:
    """Whom the serving certificate of a cluster's API server is for."""
    return (*_NAMES, f"kubernetes.default.svc.{domain}")


class ControlPlane(Protocol):
    """A Kubernetes API with its controllers."""

    @property
    def version(self) -> str:
        """Its Kubernetes version, such as ``v1.36.3``; known once it has started."""

    @property
    def port(self) -> int:
        """The real port of the API on loopback."""

    @property
    def url(self) -> str:
        """Where the API is served."""

    @property
    def inside(self) -> Accept | None:
        """The way to it for parts of the same process, if that is where it is."""

    @property
    def address(self) -> tuple[str, int]:
        """Where the simulated network finds it."""

    @property
    def work(self) -> asyncio.Task[None] | None:
        """Ends only when a part of it fails, with that part's error."""

    def token(self, user: User) -> str:
        """A bearer token for a user."""

    def node_token(self, name: str) -> str:
        """A credential for the kubelet of a node."""

    def defects(self, part: str, node: str) -> Any:
        """The defects of one of its parts, where it concerns a node; raises `CannotBreak` when it has none."""

    async def start(self, port: int) -> None:
        """Serve the API on that port (0: a free one) and start the controllers."""

    async def stop(self) -> None:
        """End everything."""


def port_trouble(error: OSError, port: int) -> Exception:
    """A port that cannot be had is the user's to change; anything else is not."""
    reasons = {errno.EADDRINUSE: "is taken by another program", errno.EACCES: "needs more rights than you have"}
    if error.errno not in reasons:
        return error
    why = reasons[error.errno]
    return StateError(f"port {port} on {HOST} {why}; choose another --port, or leave it out for a free one")

"""What a kubelet needs of a container and its processes, whoever makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from winready_sandbox.streams import Connection, Pipe


class Runs(Protocol):
    """A process, from its start to its end."""

    @property
    def stdin(self) -> Pipe:
        """What it reads."""

    @property
    def stdout(self) -> Pipe:
        """What it writes."""

    @property
    def stderr(self) -> Pipe:
        """What it complains about."""

    @property
    def running(self) -> bool:
        """Has it not ended yet?"""

    async def wait(self) -> int:
        """Its exit code."""

    async def kill(self) -> None:
        """End it."""


class Contains(Protocol):
    """A container that runs."""

    @property
    def id(self) -> str:
        """As the runtime names it."""

    @property
    def oom_killed(self) -> bool:
        """Did it end for want of memory?"""

    def spawn(self, argv: Sequence[str], *, stdin: Pipe | None = None, tty: bool = False) -> Runs:
        """Start one more process in it; raises `ExecError`."""

    async def stop(self, grace: float) -> int:
        """Ask it to end, and end it after the grace."""


class Leaves(Protocol):
    """Where a container can leave a last word."""

    @property
    def data(self) -> bytes:
        """What it left."""


class Dials(Protocol):
    """A network from which somebody connects."""

    async def connect(self, host: str, port: int, *, timeout: float) -> Connection:
        """A connection; raises `NetworkError`."""


class Volumes(Protocol):
    """The volumes of a pod."""

    async def set_up(self) -> None:
        """Make what is not there yet; raises `VolumeError`."""

    async def refresh(self, pod: dict[str, object]) -> None:
        """Bring up to date what comes from API objects."""

    def tear_down(self) -> None:
        """The pod is gone."""

    def size(self, name: str) -> int:
        """Bytes in a volume."""

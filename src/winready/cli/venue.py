"""Where a command does its work: on a cluster out there, or on a sandbox in this process with a time of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from winready.cli.options import colour_wanted, fail

if TYPE_CHECKING:
    import aiohttp

    from winready.cluster.client import Client
    from winready.cluster.kubeconfig import Target

T = TypeVar("T")


@dataclass(frozen=True)
class Venue:
    """A cluster, and the event loop in which it is worked with."""

    target: Target
    runner: asyncio.Runner
    connector: type[aiohttp.BaseConnector] | Any = None
    """Makes connections that replace TCP."""
    virtual: bool = False
    """Whether its clock jumps when everybody waits."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something there, to its end."""
        return self.runner.run(work)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Client]:
        """A client for as long as it is wanted."""
        from winready.cluster.client import Client

        connector = self.connector() if self.connector else None
        async with Client.connect(self.target, connector) as client:
            yield client

    def clock(self) -> float:
        """Seconds as they pass there."""
        return self.runner.get_loop().time() if self.virtual else time.monotonic()


@contextmanager
def outside(target: Target) -> Iterator[Venue]:
    """A cluster of others, by the clock on the wall."""
    with asyncio.Runner() as runner:
        yield Venue(target, runner)


@contextmanager
def simulated(faults: tuple[str, ...], offers: dict[str, Any]) -> Iterator[Venue]:
    """A sandbox in this process and in virtual time: it cannot be slower than whoever watches it.

    ``offers`` are options of its plan, for what is to be verified on it. It is broken once it has come up in good
    health, as clusters break.
    """
    from winready.cluster.kubeconfig import Target
    from winready.report.terminal import waiting
    from winready_sandbox.api.identity import ADMIN
    from winready_sandbox.faults.breaker import CannotBreak
    from winready_sandbox.faults.table import UnknownFault
    from winready_sandbox.garbage import left_alone
    from winready_sandbox.plan import Plan
    from winready_sandbox.up import Sandbox
    from winready_sandbox.virtual_time import VirtualTimeLoop
    from winready_sandbox.wire import WireConnector

    async def come_up() -> Sandbox:
        sandbox = Sandbox(Plan(name="run", **offers))
        await sandbox.__aenter__()
        try:
            await sandbox.settled()
            for fault in faults:
                name, _, node = fault.partition("@")
                await sandbox.break_fault(name, node or None)
        except BaseException:
            await sandbox.__aexit__(None, None, None)
            raise
        return sandbox

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        try:
            with waiting("starting the sandbox", colour=colour_wanted()):
                sandbox = runner.run(come_up())
        except (UnknownFault, CannotBreak) as error:
            fail(str(error))
        plane = sandbox.embedded
        target = Target(plane.url, ca=sandbox.authority.certificate, token=plane.token(ADMIN))
        try:
            with left_alone():
                yield Venue(target, runner, lambda: WireConnector(plane.inside), virtual=True)
        finally:
            runner.run(sandbox.__aexit__(None, None, None))

"""Does a name resolve inside a pod, and does what is behind it answer?"""

from __future__ import annotations

from enum import Enum

from winready.checks.context import Context
from winready.cluster.commands import connect, name_error
from winready.cluster.pods import Pod
from winready.cluster.probes import Try


class Resolved(Enum):
    """How far a name led."""

    NO = "the name is not resolved"
    ONLY = "the name is resolved, the connection is not made"
    CONNECTED = "connected"


async def resolves(
    ctx: Context, pod: Pod, address: str, *, window: float, connected: bool = False, absent: bool = False
) -> Resolved:
    """Connect to ``name:port``. Without ``connected`` it is enough that the name resolves; ``absent``: it must not."""
    state = Resolved.NO

    async def attempt() -> Try:
        nonlocal state
        result = await ctx.probe.connects(pod, address)
        if result.ok:
            state = Resolved.CONNECTED
        elif result.execution is not None and name_error(result.execution.stderr):
            state = Resolved.NO
        else:
            state = Resolved.ONLY
        enough = state is Resolved.CONNECTED or (state is Resolved.ONLY and not connected)
        return Try(state is Resolved.NO if absent else enough, result.seen, result.execution)

    await ctx.probe.until(
        f"{pod.name} asks for {address}",
        attempt,
        window=window,
        pod=pod,
        command=connect(address),
        expected="no such name" if absent else "connected" if connected else "resolved",
        target=address,
    )
    return state

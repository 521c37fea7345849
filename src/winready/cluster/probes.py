"""Probes and how they are judged: wait for the first success, then it must hold; never one lucky or unlucky try.

The first packets after a pod or a service appears may be lost while Windows programs its network, so
a warm-up window comes first. A connection that works once and then not is a defect, so a hold phase follows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from winready.cluster.errors import ClusterError
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.keeping import keep_connection
from winready.cluster.pods import Pod
from winready.cluster.questions import Questions, Try, describe
from winready.cluster.reaching import Goal, Reaching
from winready.cluster.timing import LEAST_ATTEMPTS

__all__ = ["LEAST_ATTEMPTS", "Prober", "Try", "describe", "every"]

T = TypeVar("T")


class Prober(Questions):
    """Puts questions to the cluster on behalf of one requirement and records the answers."""

    async def reach(
        self,
        pod: Pod,
        address: str,
        port: int,
        servers: Sequence[Pod],
        what: str,
        *,
        window: float,
        everyone: bool = False,
        hint: str = "",
        udp: int = 0,
        also: Sequence[int] = (),
        hold: float | None = None,
        watched: bool = False,
        keep: bool = False,
    ) -> None:
        """Require that ``pod`` reaches one of ``servers`` (``everyone``: each of them) at an address, and goes on to.

        ``address`` may be a name. The servers must answer small and large bodies at ``port``, connections at the
        ports ``also``, and datagrams at the port ``udp`` if there is one. ``hold`` is how many cluster seconds it must
        go on; 0 asks once, and ``watched`` asks every few of them. ``keep`` also keeps one connection open meanwhile.
        Raises `CheckFailed` that names the pod, its node and what did not answer, with the nodes that it is on.
        """
        names = {server.name: server for server in servers}
        goal = Goal(pod, address, port, names, what, hint, udp, tuple(also), watched)
        reaching = Reaching(self, goal)
        await reaching.first_answer(window)
        hold = self.timing.table.hold if hold is None else hold
        lasting = [keep_connection(self, goal, hold)] if keep else []
        # What is lost altogether is told once, and not as a connection that does not last as well.
        for ending in await asyncio.gather(reaching.go_on(window, hold), *lasting, return_exceptions=True):
            if ending is not None:
                raise ending
        if everyone:
            await reaching.see_everyone()


async def every(*probes: Awaitable[T]) -> list[T]:
    """Run all; if some fail, raise one failure that names them all. A failure outweighs a block and an error."""
    results = await asyncio.gather(*probes, return_exceptions=True)
    failures = [item for item in results if isinstance(item, CheckFailed)]
    if failures:
        first = failures[0]
        reasons = list(dict.fromkeys(item.reason for item in failures))
        raise CheckFailed(
            "; ".join(reasons[:4]) + (f"; and {len(reasons) - 4} more" if len(reasons) > 4 else ""),
            expected=first.expected,
            observed=first.observed,
            next_step=first.next_step,
        )
    for kind in (ClusterError, CheckBlocked, BaseException):
        for item in results:
            if isinstance(item, kind):
                raise item
    return [item for item in results if not isinstance(item, BaseException)]

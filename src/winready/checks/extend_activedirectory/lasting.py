"""What an account may do it can do for minutes: accesses to the domain are counted, and judged by the share that fails.

A credential guard that ends and tickets that run out are seen only later; of several controllers one may be broken.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from winready.checks.context import Context
from winready.checks.hosting import said
from winready.cluster.execution import Execution
from winready.cluster.failures import CheckFailed
from winready.cluster.pods import Pod
from winready.cluster.probes import Try, describe
from winready.cluster.timing import now, uneven

ROUNDS = 4
"""At the beginning, twice between and at the end: few commands, spread over the whole time."""
MOST_FAILED = 0.05
"""The share of accesses that may fail."""
ENOUGH = 60
"""So many make a share out of single failures."""
LOOK = "Microsoft-Windows-Containers-CCG/Admin"


@dataclass(frozen=True)
class Round:
    """What came of the accesses of one command."""

    asked: int
    worked: int
    execution: Execution


@dataclass
class Tally:
    """What came of all of them."""

    asked: int = 0
    failed: int = 0
    lost: bool = False
    """Whether nothing worked the last time."""
    error: str = ""

    def add(self, one: Round) -> None:
        """Count a round."""
        self.asked += one.asked
        self.failed += one.asked - one.worked
        self.lost = not one.worked
        if one.worked < one.asked:
            self.error = said(one.execution)

    @property
    def borne(self) -> bool:
        """Whether no more failed than may."""
        return self.failed <= MOST_FAILED * self.asked

    @property
    def undecided(self) -> bool:
        """Whether some failed, and too few were tried to call that a share."""
        return 0 < self.failed <= MOST_FAILED * ENOUGH and self.asked < ENOUGH

    def __str__(self) -> str:
        told = f"{self.asked - self.failed} of {self.asked} accesses worked"
        if self.failed:
            told += f", {self.failed / self.asked:.1%} failed (bound {MOST_FAILED:.0%}): {self.error}"
        return told


async def go_on(
    ctx: Context,
    pod: Pod,
    who: str,
    what: str,
    attempt: Callable[[], Awaitable[Round]],
    *,
    command: list[str],
    target: str,
) -> None:
    """Do something again and again while other things are observed; ``who`` does ``what``, in the words of a reason."""
    start, tally = now(), Tally()
    for pause in (0.0, *uneven(ctx.times.observe, ROUNDS - 1, f"{pod.name} {who} {what}")):
        await ctx.timing.pause(pause)
        tally.add(await attempt())
    while tally.undecided:
        tally.add(await attempt())
    expected = f"at most {MOST_FAILED:.0%} of accesses fail, over {ctx.times.observe:g} s"
    title = f"{who} of {pod.name} goes on: {what}"
    ctx.probe.record(title, Try(tally.borne, str(tally)), pod, command, expected, target, start=start)
    if not tally.borne:
        how = "no longer does what it did at first" if tally.lost else "fails now and then"
        raise CheckFailed(
            f"{who} of {describe(pod)} {how}: {what}: {tally}",
            expected=expected,
            observed=str(tally),
            next_step=f"look at the event log {LOOK} of node {pod.node.name} around that time, and at each of the "
            "domain's controllers",
        )

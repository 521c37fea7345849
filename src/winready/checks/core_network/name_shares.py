"""How often names fail: single questions to cluster DNS, spread over minutes, and the share of them that is borne.

Windows repeats a question that got no answer, so single losses delay a look-up and do no harm. A server failure it
takes for the last word, and so does whoever asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from winready.checks.context import Context
from winready.cluster.commands import Reply, dig, read_replies
from winready.cluster.errors import ExecFailed
from winready.cluster.execution import Execution
from winready.cluster.pods import Pod
from winready.cluster.probes import Try, describe
from winready.cluster.timing import uneven

SAMPLE = 60
"""Questions that are put when one of the first few failed: enough to tell an accident from a share."""
PARTS = 6
"""They are put at so many moments: an outage may be over when all are put at one."""
MOST_LOST = 0.10
"""The share of questions without an answer that is borne."""
MOST_FAILED = 0.05
"""The share of look-ups that may fail."""


@dataclass
class Share:
    """What came of the questions so far."""

    asked: int = 0
    lost: int = 0
    failed: int = 0

    def count(self, replies: Sequence[Reply], asked: int) -> None:
        """Add the replies to so many questions. That a name does not exist is an answer like any other."""
        self.asked += asked
        self.lost += asked - len(replies) + sum(not reply.status for reply in replies)
        self.failed += sum(reply.status not in ("", "NOERROR", "NXDOMAIN") for reply in replies)

    @property
    def clean(self) -> bool:
        """Whether nothing went wrong."""
        return not self.lost and not self.failed

    @property
    def borne(self) -> bool:
        """Whether what went wrong stays within the bounds."""
        return self.lost <= MOST_LOST * self.asked and self.failed <= MOST_FAILED * self.asked

    def beyond(self, asked: int) -> bool:
        """Whether more went wrong than is borne even among so many more."""
        total = self.asked + asked
        return self.lost > MOST_LOST * total or self.failed > MOST_FAILED * total

    def __str__(self) -> str:
        if not self.asked:
            return "nothing was asked"
        return (
            f"of {self.asked} questions {self.lost} got no answer ({self.lost / self.asked:.0%}; bound "
            f"{MOST_LOST:.0%}) and {self.failed} a failure ({self.failed / self.asked:.0%}; bound {MOST_FAILED:.0%})"
        )


async def question(
    pod: Pod, names: Sequence[str], seconds: float, *, server: str = ""
) -> tuple[list[Reply], Execution]:
    """Ask for each name once."""
    limit = seconds * len(names) + pod.settings.timing.table.exec_answer
    result = await pod.run(dig(names, server=server, tries=1, seconds=seconds), seconds=limit)
    replies = read_replies(result.stdout)
    if not replies:
        told = (result.stderr or result.stdout)[:200].decode(errors="replace").strip()
        raise ExecFailed(f"{describe(pod)}: dig did not say what came of its questions: {told}")
    return replies, result


async def sample(ctx: Context, pod: Pod, names: Sequence[str], seconds: float, share: Share) -> None:
    """Ask so often that a share can be told, and record it."""
    many = [names[number % len(names)] for number in range(SAMPLE)]
    size = SAMPLE // PARTS
    for number, pause in enumerate(uneven(ctx.times.observe, PARTS, f"{pod.name} {names[0]} more")):
        part = many[number * size : (number + 1) * size]
        replies, result = await question(pod, part, seconds)
        share.count(replies, len(part))
        if share.beyond(SAMPLE):
            break
        await ctx.timing.pause(pause)
    title = f"{pod.name} puts many questions to cluster DNS"
    expected = f"at most {MOST_LOST:.0%} without an answer, at most {MOST_FAILED:.0%} failed"
    ctx.probe.record(title, Try(share.borne, str(share), result), pod, dig(names, tries=1, seconds=seconds), expected)

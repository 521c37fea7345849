"""Does a connection last? One is kept open for minutes and used now and then, by one command that waits by itself.

New connections may all be answered while those that are open break: each is a flow that somebody on the way remembers.
"""

from __future__ import annotations

from collections.abc import Sequence

from winready.cluster import commands
from winready.cluster.commands import Use
from winready.cluster.errors import ExecFailed
from winready.cluster.failures import CheckFailed
from winready.cluster.pods import RETRIES
from winready.cluster.questions import Questions, Try, describe
from winready.cluster.reaching import Goal, places
from winready.cluster.timing import now


async def keep_connection(questions: Questions, goal: Goal, hold: float) -> None:
    """Require that a connection lasts for so many cluster seconds. Where one does not, another gets the chance."""
    uses: list[Use] = []
    for number in (1, 2):
        start = now()
        uses, command = await _use(questions, goal, hold)
        lasted = _lasted(uses, goal)
        title = f"{goal.pod.name} keeps {'a' if number == 1 else 'another'} connection to {goal.what}"
        told = Try(lasted, _text(uses))
        questions.record(title, told, goal.pod, command, f"one connection for {hold:g} s", goal.target, start=start)
        if lasted:
            return
    raise CheckFailed(
        f"{describe(goal.pod)} reaches {goal.what} at {goal.target} ({places(goal.servers)}), but connections do not "
        f"last: {_text(uses)}",
        expected=f"one connection for {hold:g} s",
        observed=_text(uses),
        next_step=_where_to_look(goal),
    )


async def _use(questions: Questions, goal: Goal, hold: float) -> tuple[list[Use], list[str]]:
    host = f"[{goal.address}]" if ":" in goal.address else goal.address
    url = f"http://{host}:{goal.port}/hostname"
    looks = max(2, round(hold / commands.KEPT_PAUSE) + 1)
    command = commands.keep(goal.pod.os, url, looks)
    seconds = looks * 2 * commands.dial_seconds(commands.KEPT_TRIES)
    for _ in range(RETRIES):
        result = await goal.pod.run(command, seconds=seconds, beside=True)
        if uses := commands.read_kept(result.stdout, looks):
            return uses, command
    told = (result.stderr or result.stdout)[:200].decode(errors="replace").strip()
    raise ExecFailed(f"{describe(goal.pod)} did not say what came of its connection to {goal.target}: {told}")


def _lasted(uses: Sequence[Use], goal: Goal) -> bool:
    return all(use.answer in goal.servers for use in uses) and not any(use.connects for use in uses[1:])


def _text(uses: Sequence[Use]) -> str:
    """What came of it, with the moments at which it was lost; each use comes so long after the one before."""
    answered = [use.answer for use in uses if use.answer]
    text = f"{len(answered)} of {len(uses)} requests answered"
    if answered:
        text += f" by {', '.join(dict.fromkeys(answered))}"
    new = [number for number, use in enumerate(uses) if number and (use.connects or not use.answer)]
    if not new:
        return f"{text} over one connection"
    return f"{text}; a new connection was needed at request {', '.join(str(number + 1) for number in new)}"


def _where_to_look(goal: Goal) -> str:
    nodes = " and ".join(dict.fromkeys(pod.node.name for pod in goal.servers.values()))
    if goal.direct:
        return (
            f"look for what ends open connections between nodes {goal.pod.node.name} and {nodes}: a firewall, or a pod "
            f"network that is set up anew"
        )
    return (
        f"look whether the service proxy sets up its load balancers anew while connections are open, and for firewalls "
        f"between nodes {goal.pod.node.name} and {nodes}"
    )

"""Does a pod reach servers at an address, with small and large bodies, over TCP and UDP, and does it go on to?

First with patience, then many new connections, spread over a time; who answers is asked each time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from winready.cluster import commands
from winready.cluster.commands import BODY, DATAGRAM, DIAL_MOST, PAUSE, Ask
from winready.cluster.failures import CheckFailed
from winready.cluster.holding import BOUNDS, ENOUGH, Count, Sample, pool_of, tally
from winready.cluster.pods import Pod
from winready.cluster.questions import Questions, Try, describe
from winready.cluster.timing import moments, now, uneven

ROUNDS = 3
"""At the beginning, in the middle and at the end of a hold: few commands, spread over the whole time."""
CONNECTIONS, DATAGRAMS = 3, 2
"""New ones in each round."""
DIALS_AT_ONCE = 3


@dataclass(frozen=True)
class Goal:
    """Who is to reach whom, and where."""

    pod: Pod
    address: str
    port: int
    servers: Mapping[str, Pod]
    what: str
    hint: str = ""
    udp: int = 0
    also: tuple[int, ...] = ()
    watched: bool = False
    """Whether it is asked every few seconds: somebody must be there when it is gone for a moment."""

    @property
    def target(self) -> str:
        """The address with its port."""
        return f"{self.address}:{self.port}"

    @property
    def direct(self) -> bool:
        """Whether nothing stands between the pod and the server but the pod network."""
        return any(self.address in server.addresses for server in self.servers.values())

    @property
    def main(self) -> Ask:
        """The plain question: who answers at the first port?"""
        return Ask(self.address, self.port)

    @property
    def others(self) -> list[Ask]:
        """The same question at the other ports: each has back-ends of its own."""
        asks = [Ask(self.address, port) for port in self.also]
        return asks + ([Ask(self.address, self.udp, protocol="udp")] if self.udp else [])

    def round(self) -> list[Ask]:
        """What is asked in each round of a hold."""
        # One large body after the other may go to the same one of two servers, and what is wrong with the other unseen.
        large = Ask(self.address, self.port, CONNECTIONS if len(self.servers) > 1 else 1, body=BODY)
        asks = [replace(self.main, tries=CONNECTIONS), large]
        asks += [replace(ask, tries=DATAGRAMS) if ask.protocol == "udp" else ask for ask in self.others]
        return asks + ([replace(large, port=self.udp, protocol="udp", body=DATAGRAM)] if self.udp else [])


@dataclass
class Reaching:
    """One goal on its way to being shown."""

    questions: Questions
    goal: Goal
    sample: Sample = field(init=False)
    late: Counter[str] = field(default_factory=Counter)
    """Who answered at the end of the hold."""

    def __post_init__(self) -> None:
        self.sample = Sample(self.goal.servers)

    async def first_answer(self, window: float) -> None:
        """Wait for one of the servers to answer once; where they do at once, that was the first round of the hold."""
        goal, pod, start, asks = self.goal, self.goal.pod, now(), self.goal.round()
        title = f"{pod.name} reaches {goal.what}"
        host = f"[{goal.address}]" if ":" in goal.address else goal.address
        url = f"http://{host}:{goal.port}/hostname"
        wanted = f"an answer from {listed(goal.servers)}"
        self.late = await self._ask(asks)
        if self.sample.clean:
            self._record(title, True, listed(set(self.late)), wanted, asks, start)
            return
        # Tables may still be changing: what is seen meanwhile says nothing about what they come to.
        self.sample, self.late = Sample(goal.servers), Counter()
        # A round that nobody answers takes long itself: it is part of the time that is given.
        spent = (now() - start) * self.questions.timing.scale
        first = await self.questions.until(
            title,
            lambda: self.questions.fetch_name(pod, url, goal.servers),
            window=max(window - spent, 1.0) if window else 0,
            pod=pod,
            command=commands.fetch(pod.os, url),
            expected=wanted,
            target=goal.target,
        )
        if not first.ok:
            code = first.execution.exit_code if first.execution else 0
            seen = f"{first.seen!r} answered" if code == 0 else first.seen
            raise CheckFailed(
                f"{describe(pod)} does not reach {goal.what} at {goal.target} ({places(goal.servers)}): {seen}",
                expected=wanted,
                observed=f"{seen} for {window:g} s",
                next_step=goal.hint or f"look at the service proxy and the pod network on node {pod.node.name}",
            )

    async def go_on(self, window: float, hold: float) -> None:
        """Ask again and again over ``hold`` cluster seconds, and judge by what share was lost."""
        start, asks = now(), self.goal.round()
        self.late = self.late or await self._ask(asks)
        if (missing := self._late_ports()) and await self._answer_later(missing, window):
            self.sample = Sample(self.goal.servers)
            self.late = await self._ask(asks)
        if self.goal.watched:
            await self._watch(hold)
            self.late = await self._ask(asks)
        for pause in uneven(hold, ROUNDS - 1, self._whose) if hold and not self.goal.watched else ():
            if self._decided:
                break
            await self.questions.timing.pause(pause)
            self.late = await self._ask(asks)
        await self._take_enough()
        title = f"{self.goal.pod.name} goes on reaching {self.goal.what}"
        self._record(title, self.sample.ok, self.sample.text(), self._expected(), asks, start)
        await self._require_soundness()
        if hold >= self.questions.timing.table.observe and self.sample.pool("connections").failed:
            await self._look_at_many_moments(hold)

    @property
    def _whose(self) -> str:
        return f"{self.goal.pod.name} {self.goal.what}"

    @property
    def _decided(self) -> bool:
        return any(self.sample.decided(which) for which in BOUNDS)

    async def _watch(self, hold: float) -> None:
        """Ask every few seconds, all by one command that lets the time pass by itself."""
        looks = max(1, round(hold / self.questions.timing.table.dial_try))
        asks = [self.goal.main, PAUSE] * looks
        dialled = await self.questions.dial(self.goal.pod, asks, beside=True)
        self.sample.add(asks[::2], dialled[::2])

    async def _look_at_many_moments(self, hold: float) -> None:
        """One connection at each of many moments: what comes and goes is gone for a share of the time.

        Nobody waits for the one before: a connection that is lost takes long, and meanwhile the others would not be.
        """
        start, kinds = now(), self.sample.kinds
        ask = max((ask for ask in kinds if pool_of(ask) == "connections"), key=lambda ask: kinds[ask].failed)
        self.sample = Sample(self.goal.servers)

        async def look(moment: float) -> None:
            await self.questions.timing.pause(moment)
            if not self._decided:
                await self._ask([ask])

        await asyncio.gather(*(look(moment) for moment in moments(hold, ENOUGH, self._whose)))
        title = f"{self.goal.pod.name} tries to reach {self.goal.what} at many moments"
        self.sample.kinds.setdefault(self.goal.main, Count())
        # The last that was heard of was not the last that was asked.
        self.sample.kinds[ask].answering = not self.sample.kinds[ask].silent
        self._record(title, self.sample.ok, self.sample.text(), self._expected(), [ask], start)
        await self._require_soundness()

    async def see_everyone(self) -> None:
        """Ask on until each of the servers has answered, and is still there at the end."""
        goal, start = self.goal, now()
        most, asked = len(goal.servers) ** 2 + 30, 0
        at_once = DIALS_AT_ONCE if len(goal.servers) > DIAL_MOST // 2 else 1
        asks = [Ask(goal.address, goal.port, DIAL_MOST)] * at_once
        while set(goal.servers) - set(self.late) and asked < most:
            self.late += await self._ask(asks)
            asked += DIAL_MOST * at_once
        incomplete = await self._see_everyone_at_other_ports(most)
        await self._take_enough()
        await self._require_soundness()
        missing = {name: pod for name, pod in goal.servers.items() if name not in self.late}
        summary = f"answered: {tally(self.late)}" + (f"; never: {listed(missing)}" if missing else "")
        expected = f"answers from each of {listed(goal.servers)}"
        title = f"{goal.pod.name} is answered by everyone behind {goal.what}"
        self._record(title, not missing, summary, expected, asks, start)
        if missing:
            raise CheckFailed(
                f"{describe(goal.pod)} is never answered by {places(missing)} behind {goal.what} at {goal.target} "
                f"({self.late.total()} connections)",
                expected=expected,
                observed=summary,
                next_step=f"compare the back-ends that the service proxy of node {goal.pod.node.name} has with "
                f"the service's EndpointSlices",
            )
        for ask in incomplete:
            self._require_everyone_at(ask)

    async def _see_everyone_at_other_ports(self, most: int) -> list[Ask]:
        """Ask on at the other ports; those at which somebody never answered."""
        asked = 0
        while (asks := [ask for ask in self.goal.others if self._unseen(ask)]) and asked < most:
            await self._ask([replace(ask, tries=DIAL_MOST) for ask in asks])
            asked += DIAL_MOST
        return asks

    def _unseen(self, ask: Ask) -> dict[str, Pod]:
        """The servers that have not answered this question."""
        seen = self.sample.kinds[ask].seen if ask in self.sample.kinds else set()
        return {name: pod for name, pod in self.goal.servers.items() if name not in seen}

    def _require_everyone_at(self, ask: Ask) -> None:
        """A service proxy programs each port by itself, and may know fewer back-ends of one of them."""
        goal, missing, count = self.goal, self._unseen(ask), self.sample.kinds[ask]
        summary = f"answered: {listed(count.seen) or 'nobody'}; never: {listed(missing)}"
        expected = f"answers from each of {listed(goal.servers)}"
        title = f"{goal.pod.name} is answered by everyone behind {goal.what} at {_ports([ask])}"
        self._record(title, False, summary, expected, [ask], now())
        raise CheckFailed(
            f"{describe(goal.pod)} is never answered by {places(missing)} behind {goal.what} at {goal.address}, "
            f"{_ports([ask])} (asked {count.asked} times); at port {goal.port} all of them answer",
            expected=expected,
            observed=summary,
            next_step=f"compare the back-ends that the service proxy of node {goal.pod.node.name} has for that port "
            f"with the service's EndpointSlices",
        )

    def _late_ports(self) -> list[Ask]:
        """The other ports of a service, if they do not answer while the first one does."""
        kinds = self.sample.kinds
        if kinds[self.goal.main].silent:
            return []
        return [ask for ask, count in kinds.items() if count.silent and ask.port != self.goal.port and not ask.body]

    async def _answer_later(self, missing: list[Ask], window: float) -> bool:
        """Each port of a service is programmed by itself: one that is late is waited for, too."""
        goal = self.goal

        async def attempt() -> Try:
            nonlocal missing
            results = await self.questions.dial(self.goal.pod, missing)
            missing = [ask for ask, result in zip(missing, results, strict=True) if not result.answers]
            errors = [error for result in results for error in result.errors]
            return Try(not missing, errors[-1] if missing and errors else "answers")

        result = await self.questions.until(
            f"{goal.pod.name} reaches {goal.what} at {_ports(missing)}",
            attempt,
            window=window,
            pod=goal.pod,
            command=commands.dial_all(goal.pod.os, missing),
            expected="an answer at each port",
            target=goal.address,
        )
        return result.ok

    async def _ask(self, asks: Sequence[Ask]) -> Counter[str]:
        """Ask and count; returns who answered connections to the first port."""
        dialled = await self.questions.dial(self.goal.pod, asks)
        self.sample.add(asks, dialled)
        both = zip(asks, dialled, strict=True)
        return Counter(name for ask, result in both if ask.one == self.goal.main for name in result.answers)

    async def _take_enough(self) -> None:
        """Where some were lost, try so many that the share says something."""
        while suspects := self.sample.suspects():
            await self._ask([replace(ask, tries=DIAL_MOST) for ask in suspects])

    def _expected(self) -> str:
        goal = self.goal
        bounds = f"at most {BOUNDS['connections']:.0%} of connections"
        if goal.udp:
            bounds += f" and {BOUNDS['datagrams']:.0%} of datagrams"
        return f"answers from {listed(goal.servers)}, {bounds} lost among {ENOUGH}"

    def _record(self, title: str, ok: bool, seen: str, expected: str, asks: Sequence[Ask], start: float) -> None:
        goal = self.goal
        command = commands.dial_all(goal.pod.os, asks)
        self.questions.record(title, Try(ok, seen), goal.pod, command, expected, goal.target, start=start)

    async def _require_soundness(self) -> None:
        sample, goal = self.sample, self.goal
        if sample.ok:
            return
        if sample.strangers:
            reason = f"asked {goal.what} at {goal.target} and was answered by {listed(sample.strangers)}, "
            reason += f"which is none of {places(goal.servers)}"
            step = goal.hint or f"look at the service proxy on node {goal.pod.node.name}"
        elif lost := sample.lost_kinds(goal.main):
            reason, step = await self._some_kind_is_lost(lost)
        else:
            gone = {name: pod for name, pod in goal.servers.items() if name not in sample.seen} or goal.servers
            which = "connections" if sample.broken("connections") else "datagrams"
            how = f"loses some {which} to" if sample.kinds[goal.main].answering else "then lost"
            reason = f"reached {goal.what} at {goal.target} and {how} {places(gone)}"
            step = goal.hint or await self._where_to_look()
        raise CheckFailed(
            f"{describe(goal.pod)} {reason}: {sample.text()}",
            expected=self._expected(),
            observed=sample.text(),
            next_step=step,
        )

    async def _some_kind_is_lost(self, lost: Sequence[Ask]) -> tuple[str, str]:
        """What is answered and what is not, and where to look for that."""
        goal = self.goal
        reached = f"reaches {goal.what} at {goal.target} ({places(goal.servers)})"
        if all(ask.body and ask.protocol == "udp" for ask in lost):
            nodes = " and ".join(dict.fromkeys(pod.node.name for pod in goal.servers.values()))
            return (
                f"{reached} with small datagrams and loses those of {DATAGRAM:,} bytes",
                f"look at the MTU of the pod network between nodes {goal.pod.node.name} and {nodes}",
            )
        if all(ask.body for ask in lost):
            (result,) = await self.questions.dial(self.goal.pod, [replace(lost[0], back=False)])
            way = "on the way back" if result.answers else "on the way there"
            nodes = " and ".join(dict.fromkeys(pod.node.name for pod in goal.servers.values()))
            return (
                f"{reached} with small requests and loses bodies of {BODY:,} bytes {way}",
                f"look at the MTU of the pod network between nodes {goal.pod.node.name} and {nodes}",
            )
        return f"{reached}, but not at {_ports(lost)}", goal.hint or await self._where_to_look()

    async def _where_to_look(self) -> str:
        """Whether the servers are reached without whatever stands before them."""
        goal, pod = self.goal, self.goal.pod
        nodes = " and ".join(dict.fromkeys(server.node.name for server in goal.servers.values()))
        wire = f"look for packet loss between nodes {pod.node.name} and {nodes}"
        if goal.direct:
            return wire
        asks = [Ask(server.address, commands.NETEXEC_HTTP, DIAL_MOST) for server in goal.servers.values()]
        control = Sample(goal.servers)
        start = now()
        control.add(asks, await self.questions.dial(self.goal.pod, asks))
        self._record(f"control: {pod.name} asks the pods themselves", control.ok, control.text(), "", asks, start)
        return f"the pods themselves answer: look at the service proxy on node {pod.node.name}" if control.ok else wire


def listed(names: Collection[str]) -> str:
    """Names, not too many of them."""
    ordered = sorted(names)
    return ", ".join(ordered[:6]) + (f" and {len(ordered) - 6} more" if len(ordered) > 6 else "")


def places(pods: Mapping[str, Pod]) -> str:
    """Pods with their nodes, not too many of them."""
    found = [f"{name} on node {pod.node.name}" for name, pod in sorted(pods.items())]
    return ", ".join(found[:4]) + (f" and {len(found) - 4} more" if len(found) > 4 else "")


def _ports(asks: Sequence[Ask]) -> str:
    found = (f"{'UDP' if pool_of(ask) == 'datagrams' else 'TCP'} port {ask.port}" for ask in asks)
    return " and ".join(dict.fromkeys(found))

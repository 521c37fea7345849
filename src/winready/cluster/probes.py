"""Probes and how they are judged: wait for the first success, then it must hold; never one lucky or unlucky try.

The first packets after a pod or a service appears may be lost while Windows programs its network, so
a warm-up window comes first. A connection that works once and then not is a defect, so a hold phase follows.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from winready.cluster import commands
from winready.cluster.errors import ClusterError
from winready.cluster.evidence import Evidence, Probe, bounded
from winready.cluster.execution import Execution
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.pods import Pod
from winready.cluster.timing import Timing, now

T = TypeVar("T")
HOLD_ROUNDS = (3, 3, 4)
"""How many new connections each round of a hold makes: few commands, spread over the whole time."""


LEAST_ATTEMPTS = 6
"""A window that a slow way to the cluster used up is not a reason to judge by a single attempt."""


@dataclass
class Try:
    """One attempt: whether it gave what was wanted, and what was seen."""

    ok: bool
    seen: str
    execution: Execution | None = None


@dataclass
class Prober:
    """Puts questions to the cluster on behalf of one requirement and records the answers."""

    evidence: Evidence
    timing: Timing
    began: float
    """When the run began, on the monotonic clock."""
    answers: Counter[str] = field(default_factory=Counter)

    async def until(
        self,
        title: str,
        attempt: Callable[[], Awaitable[Try]],
        *,
        window: float,
        pod: Pod,
        command: list[str],
        expected: str,
        target: str = "",
    ) -> Try:
        """Try every poll interval until it succeeds or ``window`` cluster seconds have passed; records one probe."""
        start = now()
        end = start + self.timing.deadline(window)
        attempts = 0
        while True:
            attempts += 1
            result = await attempt()
            if result.ok or (now() > end and (attempts >= LEAST_ATTEMPTS or not window)):
                break
            await self.timing.pause(self.timing.table.poll)
        self.record(title, result, pod, command, expected, target, attempts=attempts, start=start)
        return result

    def record(
        self,
        title: str,
        result: Try,
        pod: Pod,
        command: list[str],
        expected: str,
        target: str = "",
        *,
        attempts: int = 1,
        start: float | None = None,
    ) -> None:
        """Keep a probe as evidence."""
        end = now()
        start = end if start is None else start
        self.evidence.probe(
            Probe(
                title=title,
                ok=result.ok,
                pod=f"{pod.namespace}/{pod.name}",
                node=pod.node.name,
                target=target,
                command=command,
                expected=expected,
                observed=bounded(result.seen),
                exit_code=result.execution.exit_code if result.execution else None,
                attempts=attempts,
                at_s=round(start - self.began, 3),
                seconds=round(end - start, 3),
            )
        )

    def record_output(
        self, title: str, ok: bool, pod: Pod, command: list[str], expected: str, execution: Execution
    ) -> None:
        """Keep what a command printed as evidence."""
        text = execution.stdout.decode(errors="replace").strip() or execution.stderr.decode(errors="replace").strip()
        self.record(title, Try(ok, text, execution), pod, command, expected)

    async def fetch_name(self, pod: Pod, url: str, names: Collection[str]) -> Try:
        """GET a URL once; right when one of ``names`` answers."""
        result = await pod.run(commands.fetch(pod.os, url))
        said = result.stdout.decode(errors="replace").strip()
        if result.exit_code != 0:
            error = result.stderr.decode(errors="replace").strip()
            return Try(False, error or f"curl ended with exit code {result.exit_code}", result)
        return Try(said in names, said, result)

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
    ) -> None:
        """Require that ``pod`` reaches one of ``servers`` (``everyone``: each of them) at an address, and goes on to.

        Raises `CheckFailed` that names the pod, its node and what did not answer, with the nodes that it is on.
        """
        names = {server.name: server.node.name for server in servers}
        host = f"[{address}]" if ":" in address else address
        url = f"http://{host}:{port}/hostname"
        wanted = f"an answer from {_list(names)}"
        first = await self.until(
            f"{pod.name} reaches {what}",
            lambda: self.fetch_name(pod, url, names),
            window=window,
            pod=pod,
            command=commands.fetch(pod.os, url),
            expected=wanted,
            target=f"{address}:{port}",
        )
        if not first.ok:
            raise CheckFailed(
                f"{describe(pod)} does not reach {what} at {address}:{port} ({_places(names)}): {_observed(first)}",
                expected=wanted,
                observed=f"{_observed(first)} for {window:g} s",
                next_step=hint or f"look at the service proxy and the pod network on node {pod.node.name}",
            )
        seen = await self._hold(pod, address, port, names, what, hint)
        seen[first.seen] += 1
        if everyone:
            await self._see_everyone(pod, address, port, names, what, seen)

    async def _hold(
        self, pod: Pod, address: str, port: int, names: Mapping[str, str], what: str, hint: str
    ) -> Counter[str]:
        start = now()
        wanted = sum(HOLD_ROUNDS)
        seen: Counter[str] = Counter()
        errors: list[str] = []
        for number, tries in enumerate(HOLD_ROUNDS):
            if number:
                await self.timing.pause(self.timing.table.hold / (len(HOLD_ROUNDS) - 1))
            dialled = await self._dial(pod, address, port, tries)
            seen.update(dialled.answers)
            errors += dialled.errors
        strangers = sorted(set(seen) - set(names))
        ok = not errors and not strangers and seen.total() == wanted
        summary = f"{seen.total()} of {wanted} answered: {_tally(seen)}"
        if errors:
            summary += f"; {errors[-1]}"
        silent = {name: node for name, node in names.items() if name not in seen} or names
        command = commands.dial(pod.os, address, port, HOLD_ROUNDS[0])
        expected = f"{wanted} answers from {_list(names)}"
        title = f"{pod.name} goes on reaching {what}"
        self.record(title, Try(ok, summary), pod, command, expected, f"{address}:{port}", start=start)
        if strangers:
            raise CheckFailed(
                f"{describe(pod)} asked {what} at {address}:{port} and was answered by {_list(strangers)}, "
                f"which is none of {_places(names)}",
                expected=expected,
                observed=summary,
                next_step=hint or f"look at the service proxy on node {pod.node.name}",
            )
        if not ok:
            raise CheckFailed(
                f"{describe(pod)} reached {what} at {address}:{port} and then lost {_places(silent)}: {summary}",
                expected=expected,
                observed=summary,
                next_step=hint or f"look for packet loss between node {pod.node.name} and {address}",
            )
        return seen

    async def _see_everyone(
        self, pod: Pod, address: str, port: int, names: Mapping[str, str], what: str, seen: Counter[str]
    ) -> None:
        start = now()
        most = len(names) ** 2 + 30
        dialled = 0
        while set(names) - set(seen) and dialled < most:
            result = await self._dial(pod, address, port, commands.DIAL_MOST)
            dialled += commands.DIAL_MOST
            seen.update(name for name in result.answers if name in names)
        missing = {name: node for name, node in names.items() if name not in seen}
        summary = f"answered: {_tally(seen)}" + (f"; never: {_list(missing)}" if missing else "")
        command = commands.dial(pod.os, address, port, commands.DIAL_MOST)
        title = f"{pod.name} is answered by everyone behind {what}"
        expected = f"answers from each of {_list(names)}"
        self.record(title, Try(not missing, summary), pod, command, expected, f"{address}:{port}", start=start)
        if missing:
            raise CheckFailed(
                f"{describe(pod)} is never answered by {_places(missing)} behind {what} at {address}:{port} "
                f"({seen.total()} connections)",
                expected=expected,
                observed=summary,
                next_step=f"compare the back-ends that the service proxy of node {pod.node.name} has with "
                f"the service's EndpointSlices",
            )

    async def _dial(self, pod: Pod, address: str, port: int, tries: int) -> commands.Dialled:
        """Open new connections; who answered may have to be asked again, but what failed has failed."""
        errors: list[str] = []
        for _ in range(2):
            result = await pod.run(
                commands.dial(pod.os, address, port, tries), seconds=commands.dial_seconds(tries) + 5
            )
            dialled = commands.read_dial(result.stdout)
            errors += dialled.errors
            if dialled.understood:
                break
        return replace(dialled, errors=errors)

    async def connects(self, pod: Pod, address: str) -> Try:
        """One TCP connection by name or address; the text says how it ended."""
        result = await pod.run(commands.connect(address))
        text = (result.stderr or result.stdout).decode(errors="replace").strip()
        return Try(result.exit_code == 0, text or "connected", result)


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


def describe(pod: Pod) -> str:
    """A pod as reasons name it."""
    return f"{'Windows' if pod.os == 'windows' else 'Linux'} pod {pod.name} on node {pod.node.name}"


def _observed(result: Try) -> str:
    code = result.execution.exit_code if result.execution else 0
    return f"{result.seen!r} answered" if code == 0 else result.seen


def _list(names: Collection[str]) -> str:
    ordered = sorted(names)
    return ", ".join(ordered[:6]) + (f" and {len(ordered) - 6} more" if len(ordered) > 6 else "")


def _places(names: Mapping[str, str]) -> str:
    found = [f"{name} on node {node}" for name, node in sorted(names.items())]
    return ", ".join(found[:4]) + (f" and {len(found) - 4} more" if len(found) > 4 else "")


def _tally(seen: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(seen.items())) or "nobody"

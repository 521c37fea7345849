"""Questions to the cluster on behalf of one requirement: asked with patience, and every answer is kept as evidence."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

from winready.cluster import commands
from winready.cluster.errors import ExecFailed
from winready.cluster.evidence import Evidence, Probe, bounded
from winready.cluster.execution import Execution
from winready.cluster.pods import RETRIES, Pod
from winready.cluster.timing import LEAST_ATTEMPTS, Timing, now


@dataclass
class Try:
    """One attempt: whether it gave what was wanted, and what was seen."""

    ok: bool
    seen: str
    execution: Execution | None = None


@dataclass
class Questions:
    """Puts single questions and records the answers."""

    evidence: Evidence
    timing: Timing
    began: float
    """When the run began, on the monotonic clock."""

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
                command=commands.without_padding(command),
                expected=expected,
                observed=bounded(result.seen),
                exit_code=result.execution.exit_code if result.execution else None,
                attempts=attempts,
                again=result.execution.again if result.execution else 0,
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

    async def dial(self, pod: Pod, asks: Sequence[commands.Ask], *, beside: bool = False) -> list[commands.Dialled]:
        """Let a netexec pod open new connections. A command that did not get to say what came of them says nothing."""
        seconds = sum(commands.dial_seconds(ask.tries) for ask in asks)
        for _ in range(RETRIES):
            result = await pod.run(commands.dial_all(pod.os, asks), seconds=seconds, beside=beside)
            if dialled := commands.read_dials(result.stdout, asks):
                return dialled
        told = (result.stderr or result.stdout)[:200].decode(errors="replace").strip()
        raise ExecFailed(f"{describe(pod)} did not say what came of its connections to {asks[0].host}: {told}")

    async def connects(self, pod: Pod, address: str) -> Try:
        """One TCP connection by name or address; the text says how it ended."""
        result = await pod.run(commands.connect(address))
        text = (result.stderr or result.stdout).decode(errors="replace").strip()
        return Try(result.exit_code == 0, text or "connected", result)


def describe(pod: Pod) -> str:
    """A pod as reasons name it."""
    return f"{'Windows' if pod.os == 'windows' else 'Linux'} pod {pod.name} on node {pod.node.name}"

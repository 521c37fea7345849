"""The workloads that a run is to answer for: told at its beginning, tried if that was asked for, judged at its end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from winready.checks.world import World
from winready.engine import events
from winready.engine.trying import Attempt, try_workloads
from winready.engine.workloads import Answer, Step, Workload, WorkloadResult, judge_workload, key


class Answering:
    """The workloads of one run; ``tell`` lets an event out and gives it back without secrets."""

    def __init__(
        self, workloads: Sequence[Workload], tell: Callable[..., events.AnyEvent], now: Callable[[], float]
    ) -> None:
        self._workloads = {key(each): each for each in workloads}
        self._tried: dict[tuple[str, ...], list[Step]] = {}
        self._tell = tell
        self._now = now

    def begin(self) -> None:
        """Say what the run is to answer for."""
        if self._workloads:
            self._tell(events.WorkloadsRead(at_s=self._now(), workloads=list(self._workloads.values())))

    def carry_over(self, tried: Iterable[tuple[tuple[str, ...], Step]]) -> None:
        """What an earlier run has tried holds; what it could not try is tried again."""
        for whose, step in tried:
            if whose in self._workloads and step.outcome in ("passed", "failed"):
                self._ended(self._workloads[whose], step)

    async def try_all(self, world: World, attempts: Sequence[Attempt]) -> None:
        """Start the workloads' own pods on every judged node."""
        if attempts:
            await try_workloads(world, attempts, self._tried, self._ended)

    def judge(self, answers: Mapping[str, Answer], nodes: Collection[str]) -> list[WorkloadResult]:
        """What the run has shown of what each workload relies on."""
        judged = []
        for whose, each in self._workloads.items():
            result = judge_workload(each, answers, nodes, self._tried.get(whose, ()))
            told = self._tell(events.WorkloadJudged(at_s=self._now(), result=result))
            judged.append(told.result if isinstance(told, events.WorkloadJudged) else result)
        return judged

    def _ended(self, workload: Workload, step: Step) -> None:
        event = events.WorkloadTried(
            at_s=self._now(),
            path=workload.path,
            kind=workload.kind,
            namespace=workload.namespace,
            name=workload.name,
            step=step,
        )
        told = self._tell(event)
        self._tried.setdefault(key(workload), []).append(told.step if isinstance(told, events.WorkloadTried) else step)

"""Running the chosen specs: stages of shards, every spec's end put together from report, output and what was seen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from winready.cluster.client import Client
from winready.cluster.evidence import bounded
from winready.cluster.export import exported
from winready.cluster.inventory import Node
from winready.cluster.settings import Settings
from winready.upstream.binary import Binary, BinaryError
from winready.upstream.flags import Invocation
from winready.upstream.listing import plain
from winready.upstream.output import Seen
from winready.upstream.process import GRACE_SECONDS, Ended, run_process
from winready.upstream.shards import Selected, Shard, split
from winready.upstream.watcher import Watcher, Witnessed

Status = Literal["passed", "failed", "skipped", "unfinished", "crashed"]


@dataclass(frozen=True)
class Result:
    """How one spec ended, with everything that was seen of it."""

    name: str
    text: str
    status: Status
    message: str = ""
    seconds: float = 0.0
    log: str = ""
    """The file with all that its process said."""
    pods: tuple[Witnessed, ...] = ()


@dataclass(frozen=True)
class Order:
    """What to run and how."""

    binary: Binary
    specs: tuple[Selected, ...]
    folder: Path
    provider: str = "skeleton"
    parallel: int = 4
    non_blocking_taints: tuple[str, ...] = ()
    grace: float = GRACE_SECONDS
    extra: tuple[str, ...] = ()
    echo: Callable[[bytes], object] | None = None


@dataclass
class Suite:
    """One order being carried out; ``stopping`` ends it early and keeps what was finished."""

    client: Client
    settings: Settings
    nodes: dict[str, Node]
    order: Order
    stopping: asyncio.Event
    tell: Callable[[Selected, str], None]
    """Told of every start (``started``) and end (``passed`` ...) of a spec as it happens."""
    results: dict[str, Result] = field(default_factory=dict)
    impostors: list[str] = field(default_factory=list)
    _run_ids: set[str] = field(default_factory=set)

    async def run(self, finished: Callable[[dict[str, Result]], Awaitable[None]]) -> None:
        """Carry the order out; ``finished`` gets the results of every stage before the next one begins.

        Every spec of the order has a result afterwards.
        """
        with exported(self.client.transport.target) as kubeconfig:
            async with Watcher(self.client, self.settings, self.nodes, self._ours) as watcher:
                for stage in split(self.order.specs, self.order.parallel):
                    if self.stopping.is_set():
                        break
                    async with asyncio.TaskGroup() as group:
                        for shard in stage:
                            group.create_task(self._run_shard(shard, kubeconfig, watcher))
                    await finished({spec.name: self.results[spec.name] for shard in stage for spec in shard.specs})
                self.impostors = sorted({pod.impostor for pod in watcher.pods.values() if pod.impostor})
        never = "the run was stopped before it began"
        left = [spec for spec in self.order.specs if spec.name not in self.results]
        await finished({spec.name: Result(spec.name, spec.text, "unfinished", never) for spec in left})

    def _ours(self, run_id: str) -> bool:
        return run_id in self._run_ids

    async def _run_shard(self, shard: Shard, kubeconfig: Path, watcher: Watcher) -> None:
        folder = (self.order.folder / shard.name).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        by_text = {plain(spec.text): spec for spec in shard.specs}
        call = Invocation(
            kubeconfig=kubeconfig,
            report_dir=folder,
            texts=list(by_text),
            deadline=shard.deadline,
            provider=self.order.provider,
            non_blocking_taints=self.order.non_blocking_taints,
            extra=self.order.extra,
        )

        def heard(seen: Seen) -> None:
            self.tell(by_text[seen.text], seen.status or "started")

        log = folder / "output.log"
        environment = {"KUBE_TEST_REPO": self.settings.image_registry} if self.settings.image_registry else {}
        try:
            ended = await run_process(
                self.order.binary,
                call,
                log,
                heard,
                stopping=self.stopping,
                started=self._run_ids.add,
                environment=environment,
                grace=self.order.grace,
                echo=self.order.echo,
            )
        except BinaryError as error:
            for spec in shard.specs:
                self.results[spec.name] = Result(spec.name, spec.text, "crashed", error.message)
            return
        for text, spec in by_text.items():
            seen = ended.follower.seen.get(text)
            pods = watcher.in_namespaces(seen.namespaces) if seen else []
            base = Result(spec.name, spec.text, "unfinished", log=str(log), pods=tuple(replace(pod) for pod in pods))
            self.results[spec.name] = put_together(base, text, ended)


def put_together(base: Result, text: str, ended: Ended) -> Result:
    """How a spec ended, from the report of its process, from what was heard of it, and from how the process ended."""
    seen, case = ended.follower.seen.get(text), ended.cases.get(text)
    if case is not None and ended.stopped and case.state in ("interrupted", "aborted"):
        return replace(base, message="the run was stopped while it was at it", seconds=case.seconds)
    if case is not None and (case.status != "skipped" or case.skipped_itself):
        return replace(base, status=case.status, message=case.message, seconds=case.seconds)
    if seen is not None and seen.status is not None:
        # The report was not written, or not to the end; what was heard while it ran still counts.
        return replace(base, status=seen.status, message=bounded(str(seen.output)) if seen.status != "passed" else "")
    if ended.suite_problems:
        return replace(base, status="crashed", message=f"e2e.test itself failed: {_first(ended.suite_problems)}")
    if ended.why:
        return replace(
            base, message=f"e2e.test was at it when {ended.why}" if seen else f"{ended.why}, before it began"
        )
    if case is not None and ended.exit_code != 0:
        # Ginkgo, out of time, reports what it did not come to as skipped.
        return replace(base, message=f"e2e.test ended with exit code {ended.exit_code} before it began")
    if case is not None:
        return replace(base, status="skipped", message="e2e.test did not run it")
    tail = bounded(ended.last_words.strip()[-600:])
    return replace(base, status="crashed", message=f"e2e.test ended with exit code {ended.exit_code}: {tail}")


def _first(problems: Iterable[str]) -> str:
    return bounded(next(iter(problems)), 600)

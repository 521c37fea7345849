"""Runs that hooks have asked for: few at a time, one for each cluster, each with an end that is told.

A server that is told to stop has its runs clean up and leaves them unfinished; the next one takes them up again.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from winready.cluster.client import Client
from winready.cluster.errors import ClusterError
from winready.cluster.kubeconfig import Target
from winready.deploy.capi import earlier, words, workload
from winready.deploy.capi.child import Child, reports
from winready.deploy.capi.facts import Attempt, Book, Ended, Taken
from winready.deploy.capi.hooks import Named, title
from winready.deploy.capi.terms import Terms
from winready.deploy.telling import line
from winready.report.record import Record
from winready.store.errors import StoreError

MOST_TAKEN = 4
"""How often a run is begun or taken up: one that ends the server each time must not do so for ever."""
SECRET_SECONDS = 60.0
NODES_SECONDS = 15.0
LONGEST_PAUSE = 60.0
WORDS = 600
Say = Callable[[str], None]


@dataclass(eq=False)
class Job:
    """A run on its way."""

    cluster: Named
    step: str
    attempt: Attempt
    again: bool = False
    """It was under way when an earlier server ended."""
    state: str = "a run is queued"
    child: Child | None = None
    began: float = 0.0
    since: str = ""
    stopping: bool = False
    task: asyncio.Task[None] | None = None


@dataclass
class Runner:
    """All runs of this server."""

    book: Book
    terms: Terms
    client: Client
    report_dir: str
    words: Sequence[str]
    """What every run is told."""
    say: Say
    name: str = ""
    """Of this server, in the facts."""
    jobs: dict[tuple[Named, str], Job] = field(default_factory=dict)
    ended: Counter[str] = field(default_factory=Counter)
    closing: bool = False

    def __post_init__(self) -> None:
        self._gate = asyncio.Semaphore(self.terms.parallel)
        self._turns: defaultdict[Named, asyncio.Lock] = defaultdict(asyncio.Lock)

    def submit(self, cluster: Named, step: str, attempt: Attempt, *, again: bool = False) -> None:
        """See to it that this run happens."""
        job = Job(cluster, step, attempt, again)
        self.jobs[cluster, step] = job
        job.task = asyncio.create_task(self._work(job), name=f"run of {cluster}")

    def doing(self, cluster: Named, step: str) -> str:
        """How far a run is, or nothing."""
        job = self.jobs.get((cluster, step))
        if job is None or job.attempt.ended is not None:
            return ""
        if job.child is None:
            return job.state
        # The time of day, and not how long ago: whatever changes here is one more write of the Cluster.
        began, until = words.clock(job.began), words.clock(job.began + self.terms.run_limit)
        number = earlier.newest(self._folder(cluster), job.since)
        return f"{f'run {number}' if number else 'a run'} is under way since {began}, and gives up at {until}"

    def stop(self, cluster: Named) -> list[str]:
        """Have all runs of a cluster end; what they were doing."""
        found = [job for job in self.jobs.values() if job.cluster == cluster and job.attempt.ended is None]
        told = [self.doing(job.cluster, job.step) for job in found]
        for job in found:
            if not job.stopping:
                job.stopping = True
                self.say(f"cluster {cluster} is being deleted: {self.doing(cluster, job.step)}; it is stopped")
                if job.child is not None:
                    job.child.stop()
                elif job.task is not None:
                    job.task.cancel()
        return told

    def kill(self, cluster: Named) -> None:
        """End what did not end when it was told to."""
        for job in self.jobs.values():
            if job.cluster == cluster and job.child is not None:
                job.child.kill()

    async def close(self, patience: float) -> None:
        """Have all runs clean up and end, unfinished; another server takes them up again."""
        self.closing = True
        tasks = [job.task for job in self.jobs.values() if job.task is not None]
        for job in self.jobs.values():
            if job.child is not None:
                job.child.stop()
            elif job.task is not None:
                job.task.cancel()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=patience)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _folder(self, cluster: Named) -> str:
        return reports(self.report_dir, cluster.namespace, cluster.name)

    async def _work(self, job: Job) -> None:
        try:
            ended = await self._carried_out(job)
        except asyncio.CancelledError:
            if not job.stopping:
                raise
            ended = Ended(time.time(), words="it was stopped, since the cluster is being deleted")
        except Exception as error:
            # Ours, whatever it is; the gate must not stay shut without a word.
            ended = Ended(time.time(), words=line(f"winready itself failed: {type(error).__name__}: {error}", WORDS))
        if ended is not None and not (self.closing and ended.verdict is None):
            await self._tell(job, ended)
        if self.jobs.get((job.cluster, job.step)) is job:
            del self.jobs[job.cluster, job.step]

    async def _carried_out(self, job: Job) -> Ended | None:
        if len(job.attempt.taken) >= MOST_TAKEN:
            return Ended(time.time(), words=f"given up: winready ended {MOST_TAKEN} times while it was under way")
        if job.step == "created" and not job.again:
            await self._windows_nodes(job)
        job.state = "a run is queued behind another run of this cluster"
        async with self._turns[job.cluster]:
            job.state = f"a run is queued; {self.terms.parallel} runs of other clusters go on"
            async with self._gate:
                return await self._run(job)

    async def _windows_nodes(self, job: Job) -> None:
        """A control plane comes up before its workers do. If none come, the run says so."""
        until = time.monotonic() + self.terms.nodes_wait
        while time.monotonic() < until:
            job.state = f"the first run waits for ready Windows nodes, for {words.span(self.terms.nodes_wait)} at most"
            with contextlib.suppress(ClusterError, TimeoutError):
                async with asyncio.timeout(SECRET_SECONDS):
                    _, target = await workload.kubeconfig(self.client, job.cluster, self.terms.suffix)
                    if await workload.windows_ready(target):
                        return
            await asyncio.sleep(min(NODES_SECONDS, max(until - time.monotonic(), 0.0)))

    async def _run(self, job: Job) -> Ended | None:
        try:
            if not await self.book.take(job.cluster, job.step, job.attempt, Taken(time.time(), self.name)):
                await self.book.refresh(job.cluster)
                return None
        except StoreError as error:
            return Ended(
                time.time(), words=line(f"winready cannot keep what it does: {error.message}", WORDS), lost=True
            )
        found = earlier.Earlier()
        if job.again:
            job.state = "winready was restarted, and looks for what became of the run"
            found = await asyncio.to_thread(earlier.find, self._folder(job.cluster), job.attempt.asked.at)
            if found.record is not None:
                return _judged(0, found.record, "", job)
        try:
            async with asyncio.timeout(SECRET_SECONDS):
                data, target = await workload.kubeconfig(self.client, job.cluster, self.terms.suffix)
        except ClusterError as error:
            remedy = f" ({error.remedy})" if error.remedy else ""
            return Ended(time.time(), words=line(f"the run could not begin: {error.message}{remedy}", WORDS))
        except TimeoutError:
            return Ended(time.time(), words="the run could not begin: the management cluster's API server is away")
        ended = await self._child(job, data, target, found.run_id)
        if found.run_id and ended.verdict is None and not (job.stopping or self.closing):
            self.say(
                f"run {found.run_id} of cluster {job.cluster} cannot be taken up again ({ended.words}); another begins"
            )
            return await self._child(job, data, target, "")
        return ended

    async def _child(self, job: Job, data: bytes, target: Target, resumed: str) -> Ended:
        more = ["--report-dir", self._folder(job.cluster), "--timeout", f"{self.terms.run_limit:g}s"]
        more += ["--resume", resumed] if resumed else []
        job.began, job.since = time.time(), earlier.moment(time.time())
        job.child = Child((*self.words, *more), data, self.terms.run_limit)
        what = f"run {resumed} is taken up again" if resumed else "a run begins"
        self.say(f"cluster {job.cluster}, {title(job.step)}: {what} at {target.server}")
        try:
            if job.stopping or self.closing:
                return Ended(time.time(), words="it was stopped before it began")
            return _judged(*await job.child.run(), job)
        except OSError as error:
            return Ended(time.time(), words=f"the run could not be started: {error.strerror}", lost=True)
        finally:
            job.child = None

    async def _tell(self, job: Job, ended: Ended) -> None:
        first = f" ({ended.first})" if ended.first else ""
        self.say(f"cluster {job.cluster}, {title(job.step)}: {ended.words}{first}")
        self.ended[ended.verdict or "none"] += 1
        if job.stopping:
            # Its facts go away with the cluster.
            job.attempt.ended = ended
            return None
        pause = 1.0
        while True:
            try:
                return await self.book.end(job.cluster, job.step, job.attempt, ended)
            except StoreError as error:
                self.say(f"error: what became of a run of {job.cluster} cannot be kept yet: {error.message}")
            if self.closing:
                return None
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


def _judged(code: int, record: Record | None, said: str, job: Job) -> Ended:
    now = time.time()
    if record is None:
        lost = code < 0 and not job.stopping
        return Ended(now, words=line(said, WORDS), lost=lost)
    if record.verdict is None:
        why = "the run was stopped, since the cluster is being deleted" if job.stopping else "the run was interrupted"
        return Ended(now, run_id=record.run_id, words=why, lost=not job.stopping)
    first = record.verdict_reasons[0] if record.verdict == "Fail" and record.verdict_reasons else ""
    return Ended(now, record.verdict, record.run_id, line(record.verdict_text, WORDS), line(first, WORDS))

"""A run tells the cluster what becomes of it: on its Job, in a ConfigMap, in a policy report, as last words of its pod.

Whoever hears it, it changes nothing: a place that cannot be told is named once, costs the run no time while it goes on
and a bounded time at its end, and never touches the verdict.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from winready.cluster.client import Client, Object
from winready.cluster.errors import ClusterError, Forbidden, Invalid, NotFound, Refused, Unauthorized
from winready.cluster.resources import CONFIG_MAPS, EVENTS, JOBS, Resource
from winready.deploy import telling
from winready.deploy.places import Named, Places
from winready.deploy.policy_report import report, served
from winready.engine import events
from winready.engine.checking import own_failure
from winready.report.printable import printable
from winready.report.record import Record
from winready.report.words import by_reason, count

MANAGER = "winready-publishing"
PREFIX = "winready.io"
PAUSE = 3.0
"""Wall seconds between two tellings: a run may judge many requirements at once."""
CALL_SECONDS = 10.0
PATIENCE = 20.0
"""Wall seconds that the end of a run waits at most until everybody has heard."""
MOST_EVENTS = 60
NAMED_REASONS = 3
Complain = Callable[[str], None]
LABELS = {"app.kubernetes.io/name": "winready"}


class Telling:
    """What is known of a run, for those who tell it; nothing that happens to them reaches the run."""

    def __init__(self, name: str, record: Record, complain: Complain) -> None:
        self.name = name
        self.record = record
        self.finished = False
        self._complain = complain
        self._said: set[str] = set()

    def start(self) -> None:
        """Nothing to do beforehand."""

    def handle(self, event: events.AnyEvent) -> None:
        """Take in one event; the record already has it."""
        self.finished = self.finished or isinstance(event, events.RunFinished)
        try:
            self.take(event)
        except Exception as error:
            self.say_once(self.name, _words(error))

    def close(self) -> None:
        """Nothing is open."""

    def take(self, event: events.AnyEvent) -> None:
        """What this one makes of an event."""

    def say_once(self, where: str, trouble: str) -> None:
        """Whoever reads the log should know that somebody else does not hear."""
        if where not in self._said:
            self._said.add(where)
            with contextlib.suppress(OSError):
                self._complain(f"note: {where} cannot be told: {trouble}; the verdict does not depend on it")


class LastWords(Telling):
    """The termination message of a container, from the start: whoever is killed leaves at least how far it was."""

    def __init__(self, path: Path, record: Record, complain: Complain) -> None:
        super().__init__(f"termination log {path}", record, complain)
        self._path = path

    def take(self, event: events.AnyEvent) -> None:
        """Write what there would be to say if this were the end."""
        if isinstance(event, events.RunStarted | events.RequirementFinished | events.RunFinished):
            # In its place: it is a mount, and nobody can put another file there.
            self._path.write_text(telling.last_words(self.record, finished=self.finished), encoding="utf-8")


class Publisher(Telling):
    """Tells the API server, beside the run."""

    def __init__(
        self,
        client: Client,
        places: Places,
        record: Record,
        complain: Complain,
        *,
        pause: float = PAUSE,
        patience: float = PATIENCE,
    ) -> None:
        super().__init__("the cluster", record, complain)
        self._client = client
        self._places = places
        self._pause, self._patience = pause, patience
        self._changed, self._ended = asyncio.Event(), asyncio.Event()
        self._waiting: list[tuple[str, str]] = []
        """Events to tell: reason and message."""
        self._told = 0
        self._job_uid = ""
        self._given_up: set[str] = set()
        self._reports: Resource | None = None
        self._asked_for_reports = False
        self._worker: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._worker = asyncio.create_task(self._work(), name="publishing")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._changed.set()
        if self._worker is not None:
            _, late = await asyncio.wait([self._worker], timeout=self._patience)
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
            if late:
                self.say_once(self.name, f"no answer within {self._patience:g} s")

    def take(self, event: events.AnyEvent) -> None:
        """Note what is to be told; nothing here waits."""
        match event:
            case events.RunStarted():
                self._note(
                    "ReadinessStarted", f"run {event.run_id} began, {count(len(event.requirements), 'requirement')}"
                )
            case events.RequirementFinished(result=result) if result.outcome == "failed":
                self._note("RequirementFailed", telling.result_event(result))
            case events.RunFinished():
                self._note_the_end()
            case events.RequirementFinished() | events.PlanMade():
                pass
            case _:
                return
        self._changed.set()

    def _note_the_end(self) -> None:
        # One cause may keep everything from being judged; it is told once.
        for same in by_reason(self.record.requirements):
            if same[0].outcome != "failed":
                others = f" (and {len(same) - 1} more)" if len(same) > 1 else ""
                words = telling.result_event(same[0])
                self._note(f"Requirement{same[0].outcome.title()}", telling.line(words + others, telling.EVENT))
        self._note(f"Readiness{self.record.verdict or 'Interrupted'}", telling.verdict_event(self.record), last=True)

    def _note(self, reason: str, message: str, *, last: bool = False) -> None:
        if self._told < MOST_EVENTS or last:
            self._told += 1
            self._waiting.append((reason, message))

    async def _work(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            last = self._ended.is_set()
            await self._tell_everybody()
            if last:
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause):
                    await self._ended.wait()

    async def _tell_everybody(self) -> None:
        job, config_map, reports = self._places.job, self._places.configmap, self._places.policy_report
        # Beside each other: one that does not answer is no reason for the others to hear nothing.
        await asyncio.gather(
            *([self._tell_job(job)] if job else []),
            *([self._attempt(f"ConfigMap {config_map}", lambda: self._tell_summary(config_map))] if config_map else []),
            *([self._attempt("policy report", lambda: self._tell_report(reports))] if reports else []),
        )

    async def _attempt(self, where: str, act: Callable[[], Awaitable[None]]) -> bool:
        if where in self._given_up:
            return False
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await act()
        except (Forbidden, NotFound, Invalid, Refused, Unauthorized) as error:
            # The next time it would be the same.
            self._given_up.add(where)
            self.say_once(where, _words(error))
        except Exception as error:
            self.say_once(where, _words(error))
        else:
            return True
        return False

    async def _tell_job(self, job: Named) -> None:
        await self._attempt(f"Job {job}", lambda: self._annotate(job))
        while self._waiting:
            reason, message = self._waiting[0]
            if not await self._attempt(f"events of Job {job}", lambda: self._tell_event(job, reason, message)):  # noqa: B023
                break
            self._waiting.pop(0)

    async def _annotate(self, job: Named) -> None:
        values: dict[str, str | None] = {
            "run-id": self.record.run_id,
            "progress": telling.progress(self.record),
            "verdict": telling.verdict(self.record, finished=self.finished),
            "updated": _now(),
            # Those of an earlier run of the same Job go.
            "reasons": None,
        }
        if self.finished and self.record.verdict_reasons:
            reasons = [telling.line(text, telling.REASON) for text in self.record.verdict_reasons[:NAMED_REASONS]]
            values["reasons"] = telling.cut("; ".join(reasons), telling.ANNOTATION)
        patch = {"metadata": {"annotations": {f"{PREFIX}/{key}": value for key, value in values.items()}}}
        answer = await self._client.patch(JOBS, job.name, patch, job.namespace, manager=MANAGER)
        self._job_uid = answer["metadata"].get("uid", "")

    async def _tell_event(self, job: Named, reason: str, message: str) -> None:
        now = _now()
        involved = {"apiVersion": "batch/v1", "kind": "Job", "namespace": job.namespace, "name": job.name}
        event: Object = {
            "metadata": {"name": f"{job.name}.{uuid.uuid4().hex[:16]}", "namespace": job.namespace},
            "involvedObject": {**involved, **({"uid": self._job_uid} if self._job_uid else {})},
            "reason": reason,
            "message": message,
            "type": "Normal" if reason in ("ReadinessStarted", "ReadinessPass") else "Warning",
            "source": {"component": "winready"},
            "reportingComponent": "winready",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        await self._client.create(EVENTS, event, job.namespace)

    async def _tell_summary(self, config_map: Named) -> None:
        obj = {
            "apiVersion": CONFIG_MAPS.api_version,
            "kind": CONFIG_MAPS.kind,
            "metadata": {"name": config_map.name, "namespace": config_map.namespace},
            "data": telling.summary(self.record, finished=self.finished),
        }
        await self._apply(CONFIG_MAPS, obj, config_map.namespace)

    async def _tell_report(self, where: Named) -> None:
        if not self._asked_for_reports:
            self._reports = await served(self._client)
            self._asked_for_reports = True
        if self._reports is not None:
            obj = report(self._reports, where.name, self.record, LABELS)
            await self._apply(self._reports, obj, where.namespace if self._reports.namespaced else None)

    async def _apply(self, resource: Resource, obj: Object, namespace: str | None) -> None:
        name = obj["metadata"]["name"]
        await self._client.patch(resource, name, obj, namespace, kind="apply", force=True, manager=MANAGER)


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {CALL_SECONDS:g} s"
    if isinstance(error, ClusterError):
        return telling.line(error.message, telling.REASON)
    if isinstance(error, OSError):
        return error.strerror or printable(str(error))
    return own_failure(error)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

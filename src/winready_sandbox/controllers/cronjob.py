"""CronJobs: jobs on a schedule. The calendar runs at the cluster's speed, the timestamps written are wall time."""

from __future__ import annotations

import datetime
import zoneinfo

from winready_sandbox.api.objects import Object, fresh, timestamp
from winready_sandbox.clock import utc_now
from winready_sandbox.controllers.controller import Controller
from winready_sandbox.controllers.objects import (
    Key,
    condition_is,
    deleting,
    key_of,
    namespaces,
    owner_reference,
    owner_uids,
    uid_of,
)

MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
NAMES = {
    **{name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))},
    **{name: number for number, name in enumerate(MONTHS, 1)},
}
LONGEST_SEARCH = 366 * 5


class Schedule:
    """A cron expression of five fields."""

    def __init__(self, text: str) -> None:
        fields = MACROS.get(text.strip(), text).split()
        if len(fields) != 5:
            raise ValueError(f"expected exactly 5 fields, found {len(fields)}: {fields}")
        bounds = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
        sets = [_field(each, *limits) for each, limits in zip(fields, bounds, strict=True)]
        self.minutes, self.hours, self.days, self.months, self.weekdays = sets
        if 7 in self.weekdays:
            self.weekdays = self.weekdays | {0}
        self._any_day, self._any_weekday = fields[2][0] in "*?", fields[4][0] in "*?"

    def _day_matches(self, moment: datetime.datetime) -> bool:
        day, weekday = moment.day in self.days, (moment.isoweekday() % 7) in self.weekdays
        return day and weekday if self._any_day or self._any_weekday else day or weekday

    def after(self, moment: datetime.datetime) -> datetime.datetime | None:
        """The first time strictly after a moment; None when there is none within years."""
        moment = moment.replace(second=0, microsecond=0) + datetime.timedelta(minutes=1)
        for _ in range(LONGEST_SEARCH):
            if moment.month in self.months and self._day_matches(moment):
                for hour in sorted(self.hours):
                    for minute in sorted(self.minutes):
                        found = moment.replace(hour=hour, minute=minute)
                        if found >= moment:
                            return found
            moment = (moment + datetime.timedelta(days=1)).replace(hour=0, minute=0)
        return None


def _field(text: str, low: int, high: int) -> set[int]:
    chosen: set[int] = set()
    for part in text.lower().split(","):
        span, _, step = part.partition("/")
        if span in ("*", "?"):
            first, last = low, high
        else:
            start, dash, end = span.partition("-")
            first = _number(start)
            last = _number(end) if dash else (high if step else first)
        if not (low <= first <= last <= high):
            raise ValueError(f"value out of range ({low} - {high}): {text}")
        chosen.update(range(first, last + 1, int(step or 1)))
    return chosen


def _number(text: str) -> int:
    return NAMES[text] if text in NAMES else int(text)


class CronJobController(Controller):
    """Starts jobs when their time has come."""

    name = "cronjob-controller"
    kind = "CronJob"
    api_version = "batch/v1"
    resource = "cronjobs"

    def watch(self) -> None:
        """Follow cron jobs and their jobs."""
        self._start = utc_now()
        self._origin = self.clock.now()
        self._last: dict[str, datetime.datetime] = {}
        self.cronjobs = self.informers.of(self.resource)
        self.cronjobs.add_index("namespace", namespaces)
        self.jobs = self.informers.of("jobs")
        self.jobs.add_index("owner", owner_uids)
        self.cronjobs.add_handler(self.enqueue)
        self.jobs.add_handler(self.enqueue_owner)

    def _now(self) -> datetime.datetime:
        return self._start + datetime.timedelta(seconds=self.clock.now() - self._origin)

    def sync(self, key: Key) -> None:
        """Report, tidy, start what is due, come back at the next time."""
        cron = self.cronjobs.get(key)
        if cron is None or deleting(cron):
            return
        last = self._last.setdefault(uid_of(cron), self._now())
        cron = self._report(cron)
        if cron["spec"].get("suspend"):
            self._last[uid_of(cron)] = self._now()
            return
        try:
            schedule = Schedule(cron["spec"]["schedule"])
            zone = zoneinfo.ZoneInfo(cron["spec"].get("timeZone") or "UTC")
        except (ValueError, KeyError) as error:
            message = f'unparseable schedule: "{cron["spec"]["schedule"]}" : {error}'
            self.tell(cron, "UnparseableSchedule", message, warning=True)
            return
        due, now = schedule.after(last.astimezone(zone)), self._now()
        if due is not None and due <= now:
            while (later := schedule.after(due)) is not None and later <= now:
                due = later
            self._last[uid_of(cron)] = due
            self._start_job(cron, due, now)
        upcoming = schedule.after(now.astimezone(zone))
        if upcoming is not None:
            self.queue.add_after(key, (upcoming - now).total_seconds() + 0.1)

    def _report(self, cron: Object) -> Object:
        jobs = self.jobs.by("owner", uid_of(cron))
        active = [job for job in jobs if not _over(job)]
        for kind, limit in (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")):
            over = sorted((job for job in jobs if condition_is(job, kind)), key=lambda job: job["metadata"]["name"])
            keep = cron["spec"].get(limit, 3 if kind == "Complete" else 1)
            for job in over[: max(0, len(over) - keep)]:
                self.informers.delete("jobs", job, propagation="Background")
                self.tell(cron, "SuccessfulDelete", f"Deleted job {job['metadata']['name']}")
        status = {key: value for key, value in (cron.get("status") or {}).items() if key != "active"}
        done = [job["status"]["completionTime"] for job in jobs if (job.get("status") or {}).get("completionTime")]
        if done:
            status["lastSuccessfulTime"] = max(done)
        if active:
            status["active"] = [_reference(job) for job in active]
        return self.write_status(cron, status)

    def _start_job(self, cron: Object, due: datetime.datetime, now: datetime.datetime) -> None:
        deadline = cron["spec"].get("startingDeadlineSeconds")
        if deadline is not None and (now - due).total_seconds() > deadline:
            text = due.astimezone(datetime.UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
            self.tell(cron, "MissSchedule", f"Missed scheduled time to start a job: {text}", warning=True)
            return
        active = [job for job in self.jobs.by("owner", uid_of(cron)) if not _over(job)]
        policy = cron["spec"].get("concurrencyPolicy", "Allow")
        if policy == "Forbid" and active:
            message = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self.tell(cron, "JobAlreadyActive", message)
            return
        if policy == "Replace":
            for old in active:
                self.informers.delete("jobs", old, propagation="Background")
        template = cron["spec"]["jobTemplate"]
        meta = template.get("metadata") or {}
        namespace, name = key_of(cron)
        job: Object = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": f"{name}-{int(due.timestamp()) // 60}",
                "namespace": namespace,
                "labels": dict(meta.get("labels") or {}),
                "annotations": {
                    **(meta.get("annotations") or {}),
                    "batch.kubernetes.io/cronjob-scheduled-timestamp": due.strftime("%Y-%m-%dT%H:%M:%SZ"),
                },
                "ownerReferences": [owner_reference(self.api_version, self.kind, cron)],
            },
            "spec": fresh(template["spec"]),
        }
        created = self.informers.create("jobs", job, namespace)
        self.tell(cron, "SuccessfulCreate", f"Created job {created['metadata']['name']}")
        status = {**(cron.get("status") or {}), "lastScheduleTime": timestamp()}
        self.write_status(cron, {**status, "active": [*(status.get("active") or ()), _reference(created)]})


def _over(job: Object) -> bool:
    return condition_is(job, "Complete") or condition_is(job, "Failed")


def _reference(job: Object) -> Object:
    meta = job["metadata"]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": meta["name"],
        "namespace": meta["namespace"],
        "uid": meta["uid"],
    }

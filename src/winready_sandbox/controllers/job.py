"""Jobs: pods that run to their end, as many as asked for, as often as allowed to fail.

What has finished is remembered here, so that a finished pod which somebody deletes still counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from winready_sandbox.api.objects import Object, timestamp
from winready_sandbox.controllers.controller import Controller
from winready_sandbox.controllers.objects import (
    Key,
    condition_is,
    deleting,
    key_of,
    labels_of,
    namespaces,
    phase,
    pod_active,
    pod_finished,
    pod_ready,
    uid_of,
    with_condition,
)
from winready_sandbox.controllers.pods import claim, create_pod, delete_pod, pod_from_template, selects

INDEX = "batch.kubernetes.io/job-completion-index"
FIRST_BACKOFF = 10.0
LONGEST_BACKOFF = 600.0


@dataclass
class Account:
    """What a job has behind it."""

    succeeded: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    indexes: set[int] = field(default_factory=set)
    started: float = 0.0
    last_failure: float = 0.0
    finished: float = 0.0


class JobController(Controller):
    """Runs jobs."""

    name = "job-controller"
    kind = "Job"
    api_version = "batch/v1"
    resource = "jobs"

    def watch(self) -> None:
        """Follow jobs and pods."""
        self.jobs = self.informers.of(self.resource)
        self.jobs.add_index("namespace", namespaces)
        self._accounts: dict[str, Account] = {}
        self.jobs.add_handler(self._job_changed)
        self.context.pods.add_handler(self.enqueue_owner)
        self.context.pods.add_handler(self.enqueue_adopters(selects))

    def _job_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None and old is not None:
            self._accounts.pop(uid_of(old), None)
        self.enqueue(old, new)

    def sync(self, key: Key) -> None:
        """Count, decide, start or stop pods, report."""
        job = self.jobs.get(key)
        if job is None or deleting(job):
            return
        account = self._accounts.setdefault(uid_of(job), Account())
        if _finished(job):
            self._expire(job, account)
            return
        pods = claim(self, job, "pods")
        self._count(job, account, pods)
        active = [pod for pod in pods if pod_active(pod)]
        status: Object = {**(job.get("status") or {})}
        failure = self._failure(job, account, active)
        if failure is not None:
            self._stop(job, active)
            self._finish(job, status, account, active, "Failed", *failure)
            return
        if self._complete(job, account, active):
            self._stop(job, active)
            self._finish(
                job, status, account, [], "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
            )
            return
        if job["spec"].get("suspend"):
            self._suspend(job, status, account, active)
            return
        if not status.get("startTime"):
            status["startTime"] = timestamp()
            account.started = self.clock.now()
        if condition_is(job, "Suspended"):
            conditions = status.get("conditions") or []
            fields = {"reason": "JobResumed", "message": "Job resumed"}
            status["conditions"] = with_condition(conditions, "Suspended", "False", **fields)
            self.tell(job, "Resumed", "Job resumed")
        active = self._manage(job, account, active, pods)
        self._write(job, status, account, active)
        deadline = job["spec"].get("activeDeadlineSeconds")
        if deadline is not None:
            self.queue.add_after(key, account.started + deadline - self.clock.now() + 0.1)

    def _count(self, job: Object, account: Account, pods: list[Object]) -> None:
        for pod in pods:
            if not pod_finished(pod) or uid_of(pod) in account.succeeded | account.failed:
                continue
            if phase(pod) == "Succeeded":
                account.succeeded.add(uid_of(pod))
                if _indexed(job):
                    account.indexes.add(_index(pod))
            else:
                account.failed.add(uid_of(pod))
                account.last_failure = self.clock.now()

    def _failure(self, job: Object, account: Account, active: list[Object]) -> tuple[str, str] | None:
        spec = job["spec"]
        restarts = 0
        if spec["template"]["spec"].get("restartPolicy") == "OnFailure":
            restarts = sum(
                status.get("restartCount", 0)
                for pod in active
                for status in (pod.get("status") or {}).get("containerStatuses") or ()
            )
        limit = spec.get("backoffLimit", 6)
        if len(account.failed) > limit or (restarts and restarts >= limit):
            return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        deadline = spec.get("activeDeadlineSeconds")
        running = (job.get("status") or {}).get("startTime") and not spec.get("suspend")
        if deadline is not None and running and self.clock.now() >= account.started + deadline:
            return "DeadlineExceeded", "Job was active longer than specified deadline"
        return None

    def _complete(self, job: Object, account: Account, active: list[Object]) -> bool:
        completions = job["spec"].get("completions")
        if completions is None:
            return bool(account.succeeded) and not active
        done = len(account.indexes) if _indexed(job) else len(account.succeeded)
        return bool(done >= completions)

    def _stop(self, job: Object, active: list[Object]) -> None:
        for pod in active:
            delete_pod(self, job, pod)

    def _suspend(self, job: Object, status: Object, account: Account, active: list[Object]) -> None:
        self._stop(job, active)
        if not condition_is(job, "Suspended"):
            fields = {"reason": "JobSuspended", "message": "Job suspended"}
            status["conditions"] = with_condition(status.get("conditions") or [], "Suspended", "True", **fields)
            status.pop("startTime", None)
            self.tell(job, "Suspended", "Job suspended")
        self._write(job, status, account, [])

    def _manage(self, job: Object, account: Account, active: list[Object], pods: list[Object]) -> list[Object]:
        """Start what is missing, but after a failure not at once; stop what is too much."""
        spec = job["spec"]
        parallelism, completions = spec.get("parallelism", 1), spec.get("completions")
        if completions is not None:
            done = len(account.indexes) if _indexed(job) else len(account.succeeded)
            wanted = min(parallelism, completions - done)
        else:
            wanted = len(active) if account.succeeded else parallelism
        if len(active) > wanted:
            ranked = sorted(active, key=lambda pod: (pod_ready(pod), bool(pod["spec"].get("nodeName"))))
            self._stop(job, ranked[: len(active) - wanted])
            return ranked[len(active) - wanted :]
        if len(active) == wanted:
            return active
        if account.failed:
            pause = min(FIRST_BACKOFF * 2.0 ** min(len(account.failed) - 1, 10), LONGEST_BACKOFF)
            wait = account.last_failure + pause - self.clock.now()
            if wait > 0:
                self.queue.add_after(key_of(job), wait)
                return active
        taken = {_index(pod) for pod in active} | account.indexes
        free = [index for index in range(completions or 0) if index not in taken]
        # With this policy the place of a pod that is being deleted is its own until it has ended.
        held = _leaving(pods) if spec.get("podReplacementPolicy") == "Failed" else 0
        missing = range(wanted - len(active) - held)
        return [*active, *(self._create(job, free[position] if _indexed(job) else None) for position in missing)]

    def _create(self, job: Object, index: int | None) -> Object:
        pod = pod_from_template(self, job, job["spec"]["template"])
        name = job["metadata"]["name"]
        if index is None:
            pod["metadata"]["generateName"] = f"{name}-"
            return create_pod(self, job, pod)
        pod["metadata"]["generateName"] = f"{name}-{index}-"
        pod["metadata"]["annotations"][INDEX] = pod["metadata"]["labels"][INDEX] = str(index)
        pod["spec"].setdefault("hostname", f"{name}-{index}")
        source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
        for container in [*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ())]:
            environment = container.setdefault("env", [])
            if all(entry["name"] != "JOB_COMPLETION_INDEX" for entry in environment):
                environment.append({"name": "JOB_COMPLETION_INDEX", "valueFrom": source})
        return create_pod(self, job, pod)

    def _finish(
        self, job: Object, status: Object, account: Account, active: list[Object], kind: str, reason: str, message: str
    ) -> None:
        account.finished = self.clock.now()
        conditions = status.get("conditions") or []
        fields = {"lastProbeTime": timestamp(), "reason": reason, "message": message}
        if self.context.minor >= 31:
            first = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
            conditions = with_condition(conditions, first, "True", **fields)
        status["conditions"] = with_condition(conditions, kind, "True", **fields)
        if kind == "Complete":
            status["completionTime"] = timestamp()
            self.tell(job, "Completed", "Job completed")
        else:
            self.tell(job, reason, message, warning=True)
        self._write(job, status, account, [])

    def _write(self, job: Object, status: Object, account: Account, active: list[Object]) -> None:
        counts = {
            "active": len(active),
            "succeeded": len(account.indexes) if _indexed(job) else len(account.succeeded),
            "failed": len(account.failed),
        }
        for name, count in counts.items():
            status.pop(name, None)
            if count:
                status[name] = count
        status["ready"] = sum(pod_ready(pod) for pod in active)
        status["terminating"] = _leaving(self.context.pods.by("owner", uid_of(job)))
        status["uncountedTerminatedPods"] = {}
        if _indexed(job) and account.indexes:
            status["completedIndexes"] = _ranges(account.indexes)
        self.write_status(job, status)

    def _expire(self, job: Object, account: Account) -> None:
        """Take finished jobs away when their time to live is over."""
        lifetime = job["spec"].get("ttlSecondsAfterFinished")
        if lifetime is None:
            return
        left = account.finished + lifetime - self.clock.now()
        if left > 0:
            self.queue.add_after(key_of(job), left)
        else:
            self.informers.delete(self.resource, job, propagation="Foreground")


def _leaving(pods: Iterable[Object]) -> int:
    """Pods that are being deleted and have not ended yet."""
    return sum(deleting(pod) and not pod_finished(pod) for pod in pods)


def _finished(job: Object) -> bool:
    return condition_is(job, "Complete") or condition_is(job, "Failed")


def _indexed(job: Object) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def _index(pod: Object) -> int:
    return int((pod["metadata"].get("annotations") or {}).get(INDEX) or labels_of(pod).get(INDEX) or -1)


def _ranges(numbers: set[int]) -> str:
    """Completed indexes as the API writes them: ``0,2-4``."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(a) if a == b else f"{a},{b}" if b == a + 1 else f"{a}-{b}" for a, b in spans)

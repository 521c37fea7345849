"""The scheduler's loop: by priority, one pod at a time; what does not fit waits until something changes.

There is no preemption: a pod of higher priority goes first but evicts nobody.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import Counter

from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.objects import Object, timestamp
from winready_sandbox.controllers.controller import Context
from winready_sandbox.controllers.events import Recorder
from winready_sandbox.controllers.objects import Key, condition, deleting, either, key_of, labels_of, pod_finished
from winready_sandbox.controllers.queue import WorkQueue
from winready_sandbox.controllers.scheduling.filters import Misfit, node_filters
from winready_sandbox.controllers.scheduling.scores import best
from winready_sandbox.controllers.scheduling.state import ClusterState, NodeInfo, PodInfo
from winready_sandbox.controllers.scheduling.topology import Relations
from winready_sandbox.controllers.scheduling.volumes import Volumes

PROFILE = "default-scheduler"
FIRST_BACKOFF = 1.0
LONGEST_BACKOFF = 10.0
FORGOTTEN = 300.0
"""Cluster seconds after which an unschedulable pod is tried again even though nothing changed."""


class DoesNotFit(Exception):
    """No node will do; the message is the event's."""


class Scheduler:
    """Binds pods to nodes."""

    name = PROFILE

    def __init__(self, context: Context) -> None:
        self.clock = context.clock
        self.minor = context.minor
        self.placement = context.placement
        self.informers = context.informers
        self.recorder = Recorder(context.client, PROFILE)
        self.state = ClusterState()
        self.pods = context.pods
        self.namespaces = self.informers.of("namespaces")
        nodes = self.informers.of("nodes")
        claims, volumes = self.informers.of("persistentvolumeclaims"), self.informers.of("persistentvolumes")
        self.volumes = Volumes(claims, volumes)
        self.relations = Relations(self.state, self._namespace_labels)
        self._order = itertools.count()
        self._active: list[tuple[int, int, Key]] = []
        self._queued: set[Key] = set()
        self._waiting: dict[Key, int] = {}
        self._attempts: Counter[Key] = Counter()
        self._since: dict[str, float] = {}
        """When pods that wait were first tried, by uid."""
        self._returns: WorkQueue[Key] = WorkQueue("scheduler back-off", self.clock)
        self._wake = asyncio.Event()
        nodes.add_handler(self._node_changed)
        self.pods.add_handler(self._pod_changed)
        claims.add_handler(lambda old, new: self._retry_all())
        volumes.add_handler(lambda old, new: self._retry_all())

    def _namespace_labels(self, name: str) -> dict[str, str]:
        namespace = self.namespaces.get(("", name))
        return labels_of(namespace) if namespace else {}

    # What changes

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            self.state.drop_node(either(old, new)["metadata"]["name"])
        elif self.state.set_node(new):
            self._retry_all()

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        key = key_of(either(old, new))
        if new is None or pod_finished(new):
            self._waiting.pop(key, None)
            self._attempts.pop(key, None)
            self._since.pop(either(old, new)["metadata"]["uid"], None)
            if self.state.drop_pod(key):
                self._retry_all()
        elif new["spec"].get("nodeName"):
            self._waiting.pop(key, None)
            self._attempts.pop(key, None)
            fresh = old is None or not old["spec"].get("nodeName")
            self.state.set_pod(new)
            if fresh and self._waiting:
                self._retry_related()
        elif _ours(new) and (old is None or key not in self._waiting or _respecified(old, new)):
            self._enqueue(key, new)

    def _enqueue(self, key: Key, pod: Object) -> None:
        if key in self._queued:
            return
        self._waiting.pop(key, None)
        self._queued.add(key)
        heapq.heappush(self._active, (-int(pod["spec"].get("priority") or 0), next(self._order), key))
        self._wake.set()

    def _retry_all(self) -> None:
        """Something changed for the better: all that wait try again, each after its own back-off."""
        for key, attempts in list(self._waiting.items()):
            self._returns.add_after(key, min(FIRST_BACKOFF * 2.0 ** min(attempts - 1, 10), LONGEST_BACKOFF))

    def _retry_related(self) -> None:
        """A pod found a place: only what wants to be near or far from others may fit now."""
        for key, attempts in list(self._waiting.items()):
            pod = self.pods.get(key)
            spec = pod["spec"] if pod else {}
            if (spec.get("affinity") or {}).get("podAffinity") or spec.get("topologySpreadConstraints"):
                self._returns.add_after(key, min(FIRST_BACKOFF * 2.0 ** min(attempts - 1, 10), LONGEST_BACKOFF))

    def _return(self, key: Key) -> None:
        pod = self.pods.get(key)
        if pod is not None and key in self._waiting and not pod["spec"].get("nodeName"):
            self._enqueue(key, pod)

    # Work

    async def run(self) -> None:
        """Schedule until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._returns.run(self._return), name="scheduler back-off")
            tasks.create_task(self._loop(), name="scheduler loop")

    async def _loop(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._active:
                _, _, key = heapq.heappop(self._active)
                self._queued.discard(key)
                pod = self.pods.get(key)
                if pod is not None and not pod["spec"].get("nodeName"):
                    self._schedule(key, pod)
                    await asyncio.sleep(0)

    def _schedule(self, key: Key, pod: Object) -> None:
        if deleting(pod) or pod_finished(pod):
            return
        if pod["spec"].get("schedulingGates"):
            self._explain(pod, "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")
            return
        try:
            since = self._since.get(pod["metadata"]["uid"], self.clock.now())
            node = self.place(PodInfo(pod), self.clock.now() - since)
            self._bind(key, pod, node.name)
        except DoesNotFit as misfit:
            self._fail(key, pod, str(misfit))
        except ApiError as error:
            if error.code == 404:
                return
            self._fail(key, pod, error.message)
            self._returns.add_after(key, FIRST_BACKOFF)

    def place(self, pod: PodInfo, waited: float = 0.0) -> NodeInfo:
        """The node for a pod that has been waiting for so many cluster seconds, or ``DoesNotFit``."""
        nodes = self.state.nodes
        if not nodes:
            raise DoesNotFit("no nodes available to schedule pods")
        objection = self.volumes.objection(pod)
        if objection:
            raise DoesNotFit(self._message(pod, len(nodes), f" {objection}.", {}))
        candidates = list(nodes.values())
        if pod.node_names is not None:
            candidates = [nodes[name] for name in pod.node_names if name in nodes]
        # If one that its selector names fits, no other node has to be looked at; if none does, all have to be told of.
        elif (tied := self.state.tied(pod)) and (fitting := self._fitting(pod, tied, waited)[0]):
            return best(pod, fitting, self.relations, next(self._order))
        fitting, misfits = self._fitting(pod, candidates, waited)
        if not fitting:
            raise DoesNotFit(self._message(pod, len(nodes), self._reasons(len(nodes), misfits), misfits))
        return best(pod, fitting, self.relations, next(self._order))

    def _fitting(
        self, pod: PodInfo, candidates: list[NodeInfo], waited: float
    ) -> tuple[list[NodeInfo], dict[str, Misfit]]:
        """Those of the nodes that a pod fits, and why it does not fit the others."""
        alone = node_filters(pod, self.minor, self.placement, waited)
        others = [*self.volumes.filters(pod), *self.relations.filters(pod)]
        misfits: dict[str, Misfit] = {}
        fitting: list[NodeInfo] = []
        for info in candidates:
            misfit = alone(info)
            if misfit is None and others:
                misfit = next((found for check in others if (found := check(info)) is not None), None)
            if misfit is None:
                fitting.append(info)
            else:
                misfits[info.name] = misfit
        return fitting, misfits

    def _reasons(self, total: int, misfits: dict[str, Misfit]) -> str:
        counts = Counter(reason for misfit in misfits.values() for reason in misfit.reasons)
        if len(misfits) < total:
            absent = "node(s) didn't match Pod's node affinity/selector"
            if self.minor >= 32:
                absent = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
            counts[absent] += total - len(misfits)
        return " " + ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items())) + "."

    def _message(self, pod: PodInfo, total: int, reasons: str, misfits: dict[str, Misfit]) -> str:
        head = f"0/{total} nodes are available:"
        if self.minor < 24:
            return head + reasons
        if pod.pod["spec"].get("preemptionPolicy") == "Never":
            return f"{head}{reasons} preemption: not eligible due to preemptionPolicy=Never."
        open_nodes = sum(not misfit.hopeless for misfit in misfits.values())
        counts = {
            "No preemption victims found for incoming pod": open_nodes,
            "Preemption is not helpful for scheduling": total - open_nodes,
        }
        helps = ", ".join(sorted(f"{count} {text}" for text, count in counts.items() if count))
        return f"{head}{reasons} preemption: {head} {helps}." + ("." if self.minor < 28 else "")

    def _bind(self, key: Key, pod: Object, node: str) -> None:
        namespace, name = key
        binding: Object = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": pod["metadata"]["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        self.informers.client.create("pods/binding", binding, namespace)
        self.informers.record("pods", self.informers.client.get("pods", name, namespace))
        message = f"Successfully assigned {namespace}/{name} to {node}"
        self.recorder.event("Pod", "v1", pod, "Scheduled", message)

    def _fail(self, key: Key, pod: Object, message: str) -> None:
        self._attempts[key] += 1
        self._waiting[key] = self._attempts[key]
        since = self._since.setdefault(pod["metadata"]["uid"], self.clock.now())
        self._returns.add_after(key, self._again(self.clock.now() - since))
        self.recorder.event("Pod", "v1", pod, "FailedScheduling", message, warning=True)
        self._explain(pod, "Unschedulable", message)

    def _again(self, waited: float) -> float:
        """When to try a pod again even though nothing changes."""
        left = [defects.patience - waited for defects in self.placement.values() if defects.patience > waited]
        return min(left, default=FORGOTTEN)

    def _explain(self, pod: Object, reason: str, message: str) -> None:
        now = condition(pod, "PodScheduled")
        if now and (now.get("status"), now.get("reason"), now.get("message")) == ("False", reason, message):
            return
        changed = not now or now.get("status") != "False"
        fresh: Object = {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": timestamp() if changed or not now else now.get("lastTransitionTime"),
            "reason": reason,
            "message": message,
        }
        others = [c for c in (pod.get("status") or {}).get("conditions") or () if c["type"] != "PodScheduled"]
        namespace, name = key_of(pod)
        try:
            self.informers.patch(
                "pods", name, {"status": {"conditions": [*others, fresh]}}, namespace, subresource="status"
            )
        except ApiError as error:
            if error.code != 404:
                raise


def _ours(pod: Object) -> bool:
    return (pod["spec"].get("schedulerName") or PROFILE) == PROFILE and not deleting(pod)


def _respecified(old: Object, new: Object) -> bool:
    """Whether a waiting pod itself changed in a way that may let it fit: its conditions do not count."""
    return old["spec"] != new["spec"] or labels_of(old) != labels_of(new)

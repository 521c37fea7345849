"""Nodes that stop reporting become Unknown, and what is wrong with a node shows in its taints.

A node's silence is measured in time that passes for everybody: when the whole process was held up, nobody
could report, and no node is blamed for it.
"""

from __future__ import annotations

import asyncio

from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.objects import Object, timestamp
from winready_sandbox.controllers.controller import Context
from winready_sandbox.controllers.events import Recorder
from winready_sandbox.controllers.objects import condition, condition_is, key_of, pod_ready
from winready_sandbox.controllers.queue import WorkQueue

PERIOD = 5.0
STARTUP_GRACE = 60.0
READY_TAINTS = {"False": "node.kubernetes.io/not-ready", "Unknown": "node.kubernetes.io/unreachable"}
CONDITION_TAINTS = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
OURS = {*READY_TAINTS.values(), *CONDITION_TAINTS.values(), UNSCHEDULABLE}
MONITORED = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


def grace_period(minor: int) -> float:
    """Cluster seconds of silence before a node is Unknown."""
    return 50.0 if minor >= 32 else 40.0


def wanted_taints(node: Object) -> set[tuple[str, str]]:
    """Key and effect of every taint that a node's state calls for."""
    taints: set[tuple[str, str]] = set()
    ready = condition(node, "Ready")
    key = READY_TAINTS.get(ready["status"] if ready else "Unknown")
    if key:
        taints |= {(key, "NoSchedule"), (key, "NoExecute")}
    taints |= {(key, "NoSchedule") for kind, key in CONDITION_TAINTS.items() if condition_is(node, kind)}
    if (node.get("spec") or {}).get("unschedulable"):
        taints.add((UNSCHEDULABLE, "NoSchedule"))
    return taints


class NodeLifecycleController:
    """Watches heartbeats, writes conditions and taints."""

    name = "node-lifecycle-controller"

    def __init__(self, context: Context) -> None:
        self.context = context
        self.clock = context.clock
        self.informers = context.informers
        self.recorder = Recorder(context.client, "node-controller")
        self.grace = grace_period(context.minor)
        self._elapsed = 0.0
        self._heard: dict[str, float] = {}
        self._queue: WorkQueue[str] = WorkQueue(self.name, self.clock)
        self.nodes = self.informers.of("nodes")
        self.leases = self.informers.of("leases")
        self.nodes.add_handler(self._node_changed)
        self.leases.add_handler(self._lease_changed)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._queue.run(self._sync), name="node taints")
            tasks.create_task(self._monitor(), name="node heartbeats")

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            if old is not None:
                self._heard.pop(old["metadata"]["name"], None)
            return
        name = new["metadata"]["name"]
        if old is None:
            fresh = bool(condition(new, "Ready"))
            self._heard.setdefault(name, self._elapsed if fresh else self._elapsed + STARTUP_GRACE - self.grace)
        elif _reported(new) is not None and _reported(old) != _reported(new):
            self._heard[name] = self._elapsed
        self._queue.add(name)

    def _lease_changed(self, old: Object | None, new: Object | None) -> None:
        """Any change of its lease is a sign of life of a node."""
        if new is not None and new["metadata"]["namespace"] == "kube-node-lease":
            name = new["metadata"]["name"]
            if self.nodes.get(("", name)) is not None:
                self._heard[name] = self._elapsed

    async def _monitor(self) -> None:
        last = self.clock.now()
        while True:
            await self.clock.sleep(PERIOD)
            now = self.clock.now()
            self._elapsed += min(now - last, 2 * PERIOD)
            last = now
            for name, heard in list(self._heard.items()):
                if self._elapsed - heard > self.grace:
                    self._queue.add(name)

    def _sync(self, name: str) -> None:
        node = self.nodes.get(("", name))
        if node is None:
            return
        if self._elapsed - self._heard.get(name, self._elapsed) > self.grace:
            node = self._mark_unknown(node)
        if not condition_is(node, "Ready"):
            self._mark_pods(name)
        self._taint(node)

    def _mark_unknown(self, node: Object) -> Object:
        conditions = list((node.get("status") or {}).get("conditions") or [])
        changed = False
        for kind in MONITORED:
            entry = next((c for c in conditions if c["type"] == kind), None)
            if entry is not None and entry["status"] == "Unknown":
                continue
            changed = True
            fields = ("NodeStatusNeverUpdated", "Kubelet never posted node status.")
            if entry is not None:
                fields = ("NodeStatusUnknown", "Kubelet stopped posting node status.")
                conditions.remove(entry)
            beat = (entry or {}).get("lastHeartbeatTime") or node["metadata"]["creationTimestamp"]
            fresh = {"type": kind, "status": "Unknown", "lastHeartbeatTime": beat, "lastTransitionTime": timestamp()}
            conditions.append({**fresh, "reason": fields[0], "message": fields[1]})
        if not changed:
            return node
        was_ready = condition_is(node, "Ready")
        status = {**(node.get("status") or {}), "conditions": conditions}
        written = self.informers.update("nodes", {**node, "status": status}, "status")
        if was_ready:
            name = node["metadata"]["name"]
            message = f"Node {name} status is now: NodeNotReady"
            self.recorder.event("Node", "v1", node, "NodeNotReady", message)
        return written

    def _mark_pods(self, node: str) -> None:
        """The pods of a node that is not ready are not ready either."""
        for pod in self.context.pods.by("node", node):
            if not pod_ready(pod):
                continue
            conditions = [
                {**c, "status": "False", "lastTransitionTime": timestamp()} if c["type"] == "Ready" else c
                for c in pod["status"]["conditions"]
            ]
            namespace, name = key_of(pod)
            try:
                patch = {"status": {"conditions": conditions}}
                self.informers.patch("pods", name, patch, namespace, subresource="status")
            except ApiError as error:
                if error.code != 404:
                    raise
            self.recorder.event("Pod", "v1", pod, "NodeNotReady", "Node is not ready", warning=True)

    def _taint(self, node: Object) -> None:
        taints = (node.get("spec") or {}).get("taints") or []
        wanted = wanted_taints(node)
        kept = [taint for taint in taints if taint["key"] not in OURS or (taint["key"], taint["effect"]) in wanted]
        present = {(taint["key"], taint["effect"]) for taint in kept}
        added = [
            {"key": key, "effect": effect, "timeAdded": timestamp()}
            for key, effect in sorted(wanted - present, key=lambda entry: (entry[1] == "NoExecute", entry))
        ]
        if kept == taints and not added:
            return
        patch = {
            "metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
            "spec": {"taints": [*kept, *added] or None},
        }
        self.informers.patch("nodes", node["metadata"]["name"], patch)


def _reported(node: Object) -> object:
    """What only a kubelet writes: the heartbeat of the Ready condition."""
    ready = condition(node, "Ready")
    return (ready.get("lastHeartbeatTime"), ready.get("status")) if ready and ready["status"] != "Unknown" else None

"""The status of a pod as the kubelet reports it: phase, conditions, containers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from winready_sandbox.nodes.resources import qos_class
from winready_sandbox.nodes.times import stamp

Object = dict[str, Any]
OWN_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
DISRUPTIONS = ("Terminated", "Evicted")
"""Ends that the node brings about, not the pod or whoever owns it."""


@dataclass
class ContainerState:
    """What the kubelet knows of one container."""

    spec: Object
    init: bool = False
    state: Object = field(default_factory=lambda: {"waiting": {"reason": "ContainerCreating"}})
    last: Object = field(default_factory=dict)
    restarts: int = 0
    ready: bool = False
    started: bool = False
    image: str = ""
    image_id: str = ""
    container_id: str = ""
    user: Object | None = None

    @property
    def name(self) -> str:
        """The container's name in the pod."""
        return str(self.spec["name"])

    @property
    def sidecar(self) -> bool:
        """An init container that stays."""
        return self.init and self.spec.get("restartPolicy") == "Always"

    @property
    def running(self) -> bool:
        """Is it running now?"""
        return "running" in self.state

    @property
    def exit_code(self) -> int | None:
        """How it ended, if it has ended for good or is waiting to be started again."""
        terminated = self.state.get("terminated") or (self.last.get("terminated") if not self.running else None)
        return int(terminated["exitCode"]) if terminated else None

    def report(self) -> Object:
        """The ``containerStatuses`` entry."""
        entry: Object = {
            "name": self.name,
            "state": self.state,
            "lastState": self.last,
            "ready": self.ready,
            "restartCount": self.restarts,
            "image": self.image or self.spec["image"],
            "imageID": self.image_id,
            "started": self.started,
        }
        if self.container_id:
            entry["containerID"] = self.container_id
        if resources := self.spec.get("resources"):
            entry["resources"] = resources
            if "requests" in resources:
                entry["allocatedResources"] = resources["requests"]
        if mounts := self.spec.get("volumeMounts"):
            entry["volumeMounts"] = [
                {key: mount[key] for key in ("name", "mountPath", "readOnly") if key in mount} for mount in mounts
            ]
        if self.user:
            entry["user"] = self.user
        return entry


@dataclass
class PodFacts:
    """Everything that a pod's status is made from."""

    pod: Object
    init: list[ContainerState]
    main: list[ContainerState]
    ephemeral: list[ContainerState] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    host_addresses: list[str] = field(default_factory=list)
    started_at: str = ""
    initialized: bool = False
    """All init containers have done their part; it stays so when a sidecar ends later."""
    sandbox: bool = False
    """Network and pause container are there."""
    ended: tuple[str, str, str] | None = None
    """Phase, reason and message of a pod that the node refused or ended."""
    terminating: bool = False
    disruption: tuple[str, str] | None = None
    """Why and since when the node itself ends the pod."""


def phase(facts: PodFacts) -> str:
    """Pending, Running, Succeeded or Failed."""
    if facts.ended:
        return facts.ended[0]
    policy = facts.pod["spec"].get("restartPolicy", "Always")
    if not facts.initialized:
        hopeless = any(
            not item.sidecar and "terminated" in item.state and item.exit_code != 0 and policy == "Never"
            for item in facts.init
        )
        return "Failed" if hopeless else "Pending"
    if any(not item.running and item.exit_code is None for item in facts.main):
        return "Pending"
    if any(item.running for item in facts.main):
        return "Running"
    failed = any(item.exit_code != 0 for item in facts.main)
    if facts.terminating:
        return "Failed" if failed else "Succeeded"
    if policy == "Always":
        return "Running"
    if not failed:
        return "Succeeded"
    return "Failed" if policy == "Never" else "Running"


def _conditions(facts: PodFacts, current_phase: str, old: list[Object]) -> list[Object]:
    previous = {item["type"]: item for item in old}
    done = current_phase in ("Succeeded", "Failed")
    initialized = facts.initialized or current_phase == "Succeeded"
    pending_init = [item.name for item in facts.init if not (item.exit_code == 0 or (item.sidecar and item.started))]
    watched = facts.main + [item for item in facts.init if item.sidecar]
    unready = [item.name for item in watched if not item.ready]
    gates = [gate["conditionType"] for gate in facts.pod["spec"].get("readinessGates") or []]
    gates_met = all((previous.get(gate) or {}).get("status") == "True" for gate in gates)
    containers_ready = not unready and not done
    unready_reason: tuple[str, str] = ("", "")
    if done:
        unready_reason = ("PodCompleted", "") if current_phase == "Succeeded" else ("PodFailed", "")
    elif unready:
        unready_reason = ("ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]")
    ready_reason = unready_reason
    if containers_ready and not gates_met:
        ready_reason = ("ReadinessGatesNotReady", 'the status of pod readiness gate is not "True"')
    wanted = {
        "PodReadyToStartContainers": (facts.sandbox and not done, "", ""),
        "Initialized": (
            initialized,
            "PodCompleted" if current_phase == "Succeeded" else "" if initialized else "ContainersNotInitialized",
            "" if initialized else f"containers with incomplete status: [{' '.join(pending_init)}]",
        ),
        "Ready": (containers_ready and gates_met, *ready_reason),
        "ContainersReady": (containers_ready, *unready_reason),
        "PodScheduled": (True, "", ""),
    }
    result = [item for item in old if item["type"] not in OWN_CONDITIONS]
    for kind, (value, reason, message) in wanted.items():
        status = "True" if value else "False"
        before = previous.get(kind)
        changed = before is None or before.get("status") != status
        condition: Object = {
            "type": kind,
            "status": status,
            "lastProbeTime": None,
            "lastTransitionTime": stamp() if changed or before is None else before.get("lastTransitionTime"),
        }
        if reason:
            condition["reason"] = reason
        if message:
            condition["message"] = message
        if generation := facts.pod["metadata"].get("generation"):
            condition["observedGeneration"] = generation
        result.append(condition)
    if facts.disruption:
        result = [item for item in result if item["type"] != "DisruptionTarget"]
        result.append(
            {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "TerminationByKubelet",
                "message": facts.disruption[0],
                "lastProbeTime": None,
                "lastTransitionTime": facts.disruption[1],
            }
        )
    return result


def build(facts: PodFacts, old: Object) -> Object:
    """The whole status; ``old`` is the one reported before, whose transition times are kept."""
    now = phase(facts)
    status: Object = {
        "phase": now,
        "conditions": _conditions(facts, now, old.get("conditions") or []),
        "startTime": facts.started_at,
        "qosClass": qos_class(facts.pod),
        "containerStatuses": [item.report() for item in facts.main],
        "hostIP": facts.host_addresses[0] if facts.host_addresses else None,
        "hostIPs": [{"ip": address} for address in facts.host_addresses],
        "podIP": facts.addresses[0] if facts.addresses else None,
        "podIPs": [{"ip": address} for address in facts.addresses] or None,
        "reason": facts.ended[1] if facts.ended else None,
        "message": facts.ended[2] if facts.ended else None,
    }
    if facts.init:
        status["initContainerStatuses"] = [item.report() for item in facts.init]
    if facts.ephemeral:
        status["ephemeralContainerStatuses"] = [item.report() for item in facts.ephemeral]
    if generation := facts.pod["metadata"].get("generation"):
        status["observedGeneration"] = generation
    if facts.ended and facts.ended[1] not in (*DISRUPTIONS, "DeadlineExceeded"):
        # A pod that the node refused never had containers to report on.
        status["containerStatuses"] = None
    return status

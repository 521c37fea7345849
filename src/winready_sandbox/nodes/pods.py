"""One worker per pod: from the moment it is bound to the node until it is gone from the API."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any

from winready_sandbox.machine.images import Image
from winready_sandbox.nodes import latency, status
from winready_sandbox.nodes.admission import NODE_AFFINITY, NODE_SHUTDOWN, refusal
from winready_sandbox.nodes.contained import Dials, Volumes
from winready_sandbox.nodes.containers import ContainerRun
from winready_sandbox.nodes.environment import service_variables
from winready_sandbox.nodes.runtime import PodSandbox, PodSandboxError, Prepared
from winready_sandbox.nodes.status import ContainerState, PodFacts
from winready_sandbox.nodes.times import stamp
from winready_sandbox.nodes.volumes import PodVolumes, VolumeError
from winready_sandbox.nodes.volumes.pod import Surroundings

if TYPE_CHECKING:
    from winready_sandbox.nodes.kubelet import Kubelet

Object = dict[str, Any]
log = logging.getLogger(__name__)
_RETRY = (2.0, 120.0)
_RESTARTED = {"exitCode": 255, "reason": "Unknown", "startedAt": None, "finishedAt": None}


class PodWorker:
    """Everything that happens to one pod on one node."""

    def __init__(self, node: Kubelet, pod: Object, *, ended: Object | None = None) -> None:
        self.node = node
        self.clock = node.clock
        self.recorder = node.recorder
        self.defects = node.defects
        self.lost = False
        """A broken node forgets this pod."""
        self.pod = pod = _lean(pod)
        self.uid = str(pod["metadata"]["uid"])
        self.full_name = f"{pod['metadata']['name']}_{pod['metadata']['namespace']}"
        self.sandbox = self._new_sandbox()
        self.volumes = self._new_volumes()
        self.facts = PodFacts(pod, self._states("initContainers"), self._states("containers"))
        self.facts.host_addresses = [] if self.defects.kubelet.host_address_missing else node.addresses
        old = pod.get("status") or {}
        self.facts.started_at = old.get("startTime") or stamp()
        self.runs = {state.name: self._new_run(state) for state in self.facts.init + self.facts.main}
        self.reported: Object = dict(old)
        """The status as the API server has it from us."""
        self.pod = self.facts.pod = _without_own_status(pod)
        self._life: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._ending_grace = 0.0
        self._begun = asyncio.get_running_loop().time()
        self._deadline: asyncio.Timeout | None = None
        self._ended_by_node = False
        self._old_end = ended or (old if old.get("phase") in ("Succeeded", "Failed") else None)
        """How it ended in an earlier life of the node."""

    def _new_sandbox(self) -> PodSandbox:
        return PodSandbox(self.node, self.pod)

    def _new_run(self, state: ContainerState) -> ContainerRun:
        return ContainerRun(self, state)

    def _new_volumes(self) -> Volumes:
        namespace, node = self.pod["metadata"]["namespace"], self.node
        around = Surroundings(
            node.client,
            node.clock,
            node.machine.files,
            node.defects.volumes,
            lambda resource, name: node.references.find(resource, name, namespace),
            self.sandbox.field,
            self.sandbox.resource,
            node.folders,
            node.images.tree,
            node.machine.pod_folders.setdefault(self.uid, {}),
        )
        return PodVolumes(self.pod, around)

    def _states(self, kind: str) -> list[ContainerState]:
        """Fresh states, going on from what the API server remembers of an earlier life of the node."""
        init = kind == "initContainers"
        known = (self.pod.get("status") or {}).get("initContainerStatuses" if init else "containerStatuses") or []
        before = {item["name"]: item for item in known}
        states = []
        for spec in self.pod["spec"].get(kind) or []:
            state = ContainerState(spec, init=init)
            old = before.get(spec["name"])
            if old and not old.get("containerID") and not old.get("restartCount"):
                old = None
            if old:
                running = (old.get("state") or {}).get("running")
                last = (old.get("state") or {}).get("terminated") or (old.get("lastState") or {}).get("terminated")
                if running:
                    last = {**_RESTARTED, "startedAt": running.get("startedAt"), "finishedAt": stamp()}
                    last["containerID"] = old.get("containerID", "")
                state.restarts = int(old.get("restartCount") or 0) + (1 if running or last else 0)
                state.last = {"terminated": last} if last else {}
            if init or self.pod["spec"].get("initContainers"):
                state.state = {"waiting": {"reason": "PodInitializing"}}
            states.append(state)
        return states

    @property
    def host_process(self) -> bool:
        """Is it a HostProcess pod?"""
        return self.sandbox.host_process

    @property
    def host_endpoint(self) -> Dials:
        """The node's own network, from which the kubelet probes."""
        return self.node.host_endpoint

    @property
    def grace(self) -> float:
        """The pod's own grace period."""
        value = self.pod["spec"].get("terminationGracePeriodSeconds")
        return 30.0 if value is None else float(value)

    @property
    def finished(self) -> bool:
        """Has it run to its end?"""
        return status.phase(self.facts) in ("Succeeded", "Failed")

    @property
    def memory_in_use(self) -> int:
        """Working set of all its containers."""
        metered = [run.instance.metered for run in self.runs.values() if run.instance is not None]
        return sum(container.memory.working_set for container in metered if container is not None)

    def changed(self) -> None:
        """The status is worth reporting."""
        self.node.publisher.mark(self)

    def status(self) -> Object:
        """The status as it is now."""
        if self._old_end is not None:
            return self._old_end
        foreign = self.pod["status"]["conditions"]
        own = [c for c in self.reported.get("conditions") or [] if c["type"] in status.OWN_CONDITIONS]
        return status.build(self.facts, {"conditions": foreign + own})

    def start(self) -> None:
        """Begin to work on the pod."""
        if self._old_end is not None:
            self._keep_old_end(self._old_end)
            return
        self._life = asyncio.create_task(self._live(), name=f"pod {self.full_name}")

    def _keep_old_end(self, old: Object) -> None:
        self.facts.ended = (old["phase"], old.get("reason") or "", old.get("message") or "")
        for state in self.facts.init + self.facts.main:
            everyone = (old.get("initContainerStatuses") or []) + (old.get("containerStatuses") or [])
            for item in everyone:
                if item["name"] == state.name:
                    state.state, state.last = item.get("state") or {}, item.get("lastState") or {}
                    state.restarts = item.get("restartCount") or 0
        self.changed()

    def update(self, pod: Object) -> None:
        """The pod has changed in the API."""
        old_containers = {item["name"]: item for item in self.pod["spec"]["containers"]}
        if pod["metadata"].get("generation") != self.pod["metadata"].get("generation"):
            self.changed()
        self.pod = self.facts.pod = pod = _without_own_status(_lean(pod))
        self.sandbox.relabel(pod["metadata"])
        for item in pod["spec"]["containers"]:
            before = old_containers.get(item["name"], item)
            if item["image"] != before["image"]:
                self.runs[item["name"]].replace(item)
            elif item.get("resources") != before.get("resources"):
                self.runs[item["name"]].resize(item)
        for item in pod["spec"].get("ephemeralContainers") or []:
            if self.defects.kubelet.ignores_ephemeral:
                break
            if item["name"] not in self.runs and self.facts.sandbox:
                state = ContainerState(item)
                self.facts.ephemeral.append(state)
                self.runs[state.name] = self._new_run(state)
                self.runs[state.name].launch("Never")
        if self._deadline is not None and not self._deadline.expired() and self._life and not self._life.done():
            self._deadline.reschedule(self._last_moment())
        if pod["metadata"].get("deletionTimestamp"):
            grace = pod["metadata"].get("deletionGracePeriodSeconds")
            self.end(self.grace if grace is None else float(grace))

    def end(
        self, grace: float, *, outcome: tuple[str, str, str] | None = None, gone: bool = False
    ) -> asyncio.Task[None]:
        """Stop the pod's containers; a shorter grace overtakes a longer one under way."""
        if self._ending is not None:
            if outcome is None and grace < self._ending_grace and not self._ending.done():
                self._ending.cancel()
            elif not (outcome is None and self._ending.done() and self._ended_by_node):
                return self._ending
        self._ending_grace = grace
        self._ended_by_node = outcome is not None
        self._ending = asyncio.create_task(self._end(grace, outcome, gone), name=f"end {self.full_name}")
        return self._ending

    async def _live(self) -> None:
        try:
            async with asyncio.timeout_at(self._last_moment()) as self._deadline:
                await self._work()
        except TimeoutError:
            words = "Pod was active on the node longer than the specified deadline"
            self.recorder.pod(self.pod, "DeadlineExceeded", words)
            self.end(self.grace, outcome=("Failed", "DeadlineExceeded", words))

    def _last_moment(self) -> float | None:
        """When the pod may be active no more, by the event loop's time."""
        seconds = self.pod["spec"].get("activeDeadlineSeconds")
        return None if seconds is None else self._begun + self.clock.wall(float(seconds))

    async def _work(self) -> None:
        refused = NODE_SHUTDOWN if self.node.going_down else None
        refused = refused or refusal(self.pod, self.node.object, self.node.others(self))
        if refused is not None and refused.reason == NODE_AFFINITY:
            # The scheduler may know labels that this node has not heard of yet; a kubelet asks before it refuses.
            await self.node.refresh()
            refused = refusal(self.pod, self.node.object, self.node.others(self))
        if refused is not None:
            self.facts.ended = ("Failed", refused.reason, f"Pod was rejected: {refused.message}")
            self.recorder.pod(self.pod, refused.reason, refused.message, type="Warning")
            self.changed()
            return
        self.changed()
        if self.lost:
            return
        await self.node.references.prepare(self.pod["metadata"]["namespace"])
        await self._set_up_volumes()
        await self._set_up_sandbox()
        if not await self._run_init():
            return
        self.facts.initialized = True
        await self._run_main()

    async def _set_up_volumes(self) -> None:
        delay = _RETRY[0]
        while True:
            try:
                await self.volumes.set_up()
                return
            except VolumeError as error:
                self.recorder.pod(self.pod, "FailedMount", str(error), type="Warning")
                await self.clock.sleep(delay)
                delay = min(delay * 2, _RETRY[1])

    async def _set_up_sandbox(self) -> None:
        if any(state.last for state in self.facts.main):
            self.recorder.pod(self.pod, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
        while True:
            try:
                self.facts.addresses = await self.sandbox.create()
                break
            except PodSandboxError as error:
                words = f"Failed to create pod sandbox: {error}"
                self.recorder.pod(self.pod, "FailedCreatePodSandBox", words, type="Warning")
                await self.clock.sleep(12.0)
        self.facts.sandbox = True
        self.changed()

    async def _run_init(self) -> bool:
        policy = self.pod["spec"].get("restartPolicy", "Always")
        for state in self.facts.init:
            run = self.runs[state.name]
            if state.sidecar:
                task = run.launch("Always")
                waiter = asyncio.create_task(run.started.wait())
                await asyncio.wait({task, waiter}, return_when=asyncio.FIRST_COMPLETED)
                waiter.cancel()
                continue
            code = await run.launch("Never" if policy == "Never" else "OnFailure")
            state.ready = code == 0
            if code != 0:
                await self._finish()
                return False
        return True

    async def _run_main(self) -> None:
        policy = self.pod["spec"].get("restartPolicy", "Always")
        for state in self.facts.main:
            if "waiting" in state.state:
                state.state = {"waiting": {"reason": "ContainerCreating"}}
        if self.facts.init:
            self.changed()
        tasks = [self.runs[state.name].launch(policy) for state in self.facts.main]
        await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error
        if policy != "Always":
            await self._finish()

    async def _finish(self) -> None:
        """All main containers have ended for good: stop the sidecars, free the network."""
        await self._stop_sidecars(self.grace)
        self.sandbox.remove()
        self.facts.sandbox = False
        self.changed()

    async def _stop_sidecars(self, grace: float) -> None:
        for state in reversed(self.facts.init):
            if self.runs[state.name].task is not None:
                await self.runs[state.name].stop(grace)

    async def prepare(self, run: ContainerRun, image: Image) -> Prepared:
        """Make a container of this pod, short of starting it."""
        links = self.pod["spec"].get("enableServiceLinks", True)
        services = await self.node.references.services()
        base = service_variables(services, self.pod["metadata"]["namespace"], links=links is not False)
        if self.defects.kubelet.no_service_variables:
            base = {}
        if not isinstance(self.volumes, PodVolumes):
            raise TypeError("these volumes are no part of the model")
        return await self.sandbox.prepare(run.spec, image, self.volumes, base, again=run.state.restarts > 0)

    async def sync(self) -> None:
        """What the kubelet does every minute or so: bring the volumes up to date."""
        if self.facts.sandbox and self._ending is None:
            await self.volumes.refresh(self.pod)

    async def _end(self, grace: float, outcome: tuple[str, str, str] | None, gone: bool) -> None:
        if self._life is not None and asyncio.current_task() is not self._life:
            self._life.cancel()
            await asyncio.wait([self._life])
        had_sandbox = self.facts.sandbox
        main = [self.runs[state.name] for state in self.facts.main + self.facts.ephemeral]
        self.changed()
        await asyncio.gather(*(run.stop(grace) for run in main))
        await self._stop_sidecars(grace)
        await self._torn_down(had_sandbox)
        self.sandbox.remove()
        self.volumes.tear_down()
        self.facts.sandbox = False
        self.facts.terminating = True
        self._mark_ended()
        if outcome is not None:
            self.facts.ended = outcome
            if outcome[1] in status.DISRUPTIONS:
                self.facts.disruption = (outcome[2], stamp())
        if gone:
            self.node.forget(self)
            return
        await self.node.publisher.flush(self)
        if self.pod["metadata"].get("deletionTimestamp"):
            await self.node.delete(self)

    async def _torn_down(self, had_sandbox: bool) -> None:
        """Wait for the machine to take down what ran the pod; a broken one never gets there."""
        if had_sandbox:
            await self.clock.sleep(latency.draw(self.node.rng, latency.of(self.node.machine.os).teardown))
        if self.node.machine.hangs_on_teardown():
            while self.node.machine.defects.teardowns_hang:
                await self.clock.sleep(_RETRY[0])

    def _mark_ended(self) -> None:
        """Containers that never ran count as ended once the pod is."""
        for state in self.facts.init + self.facts.main:
            if "waiting" in state.state:
                code, reason = (
                    (0, "Completed") if state.init and state.exit_code == 0 else (137, "ContainerStatusUnknown")
                )
                words = "The container could not be located when the pod was terminated"
                ended = {"exitCode": code, "reason": reason, "message": words, "startedAt": None, "finishedAt": None}
                state.state = {"terminated": ended}

    async def crash(self) -> None:
        """The machine lost power: nothing is reported, everything is gone."""
        for task in (self._life, self._ending):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        for run in self.runs.values():
            await run.crash()
        self.sandbox.remove()


def _lean(pod: Object) -> Object:
    """The pod without its field ownership: thousands of pods are kept, and no kubelet looks at it."""
    return {**pod, "metadata": {key: value for key, value in pod["metadata"].items() if key != "managedFields"}}


def _without_own_status(pod: Object) -> Object:
    """The pod with only those conditions that others set: the kubelet itself is the source of the rest."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    return {**pod, "status": {"conditions": [c for c in conditions if c["type"] not in status.OWN_CONDITIONS]}}

"""The life of one container of a pod: pull, create, run, probe, restart with back-off, stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from winready_sandbox.clock import utc_now
from winready_sandbox.machine.container import Container
from winready_sandbox.machine.errors import ExecError
from winready_sandbox.machine.images import Image, InvalidReference, PullError
from winready_sandbox.nodes import latency, resources
from winready_sandbox.nodes.actions import Target, perform
from winready_sandbox.nodes.contained import Contains, Leaves, Runs
from winready_sandbox.nodes.environment import ConfigError
from winready_sandbox.nodes.logs import ContainerLog, LogPipe
from winready_sandbox.nodes.probes import Kind, Probes
from winready_sandbox.nodes.runtime import LogonError
from winready_sandbox.nodes.status import ContainerState
from winready_sandbox.nodes.times import stamp
from winready_sandbox.streams import Pipe

if TYPE_CHECKING:
    from winready_sandbox.nodes.pods import PodWorker

Object = dict[str, Any]
Pulled = TypeVar("Pulled")
_BACKOFF_FIRST, _BACKOFF_MAX = 10.0, 300.0
_BACKOFF_RESET = 600.0
_SYNC = 10.0


class StartFailed(Exception):
    """The runtime could not start the container."""


@dataclass(eq=False)
class Instance:
    """One run of a container."""

    container: Contains
    process: Runs
    log: ContainerLog
    stdout: LogPipe
    stderr: LogPipe
    started_at: str
    begun: float
    id: str
    message: Leaves

    @property
    def metered(self) -> Container | None:
        """The container, where the node knows what it uses."""
        return self.container if isinstance(self.container, Container) else None


class ContainerRun:
    """A container of a pod over all its restarts."""

    def __init__(self, worker: PodWorker, state: ContainerState) -> None:
        self.worker = worker
        self.state = state
        self.instance: Instance | None = None
        self.log: ContainerLog | None = None
        self.previous_log: ContainerLog | None = None
        self.started = asyncio.Event()
        """Set once the container has started, as its startup probe sees it."""
        self.task: asyncio.Task[int] | None = None
        self._probes: Probes | None = None
        self._ever_crashed = state.restarts > 0
        self._begun = 0.0
        self._backoff = 0.0
        self._stopping = False
        self._stops: set[asyncio.Task[None]] = set()

    @property
    def spec(self) -> Object:
        """The container of the pod's specification."""
        return self.state.spec

    @property
    def name(self) -> str:
        """Its name in the pod."""
        return self.state.name

    @property
    def _field(self) -> str:
        kind = "initContainers" if self.state.init else "containers"
        return f"spec.{kind}{{{self.name}}}"

    def event(self, reason: str, message: str, *, warning: bool = False) -> None:
        """Record an event about this container."""
        kind: Literal["Normal", "Warning"] = "Warning" if warning else "Normal"
        self.worker.recorder.pod(self.worker.pod, reason, message, type=kind, field=self._field)

    def _wait_state(self, reason: str, message: str = "") -> None:
        waiting = {"reason": reason, "message": message} if message else {"reason": reason}
        self.state.state = {"waiting": waiting}
        self.state.ready = self.state.started = False
        self.worker.changed()

    def launch(self, policy: str) -> asyncio.Task[int]:
        """Begin to run, with that restart policy."""
        self.task = asyncio.create_task(self.supervise(policy), name=f"container {self.worker.full_name}/{self.name}")
        return self.task

    async def supervise(self, policy: str) -> int:
        """Run until the restart policy says that it is over; returns the last exit code."""
        clock = self.worker.clock
        while True:
            code = await self._run_once()
            if self._stopping or policy == "Never" or (policy == "OnFailure" and code == 0):
                return code
            if self.state.sidecar and self.worker.defects.kubelet.sidecars_stay_down:
                return code
            terminated = self.state.state.get("terminated")
            ran = clock.now() - self._begun
            self._backoff = _BACKOFF_FIRST if self._backoff == 0 or ran > _BACKOFF_RESET else self._backoff * 2
            self._backoff = min(self._backoff, _BACKOFF_MAX)
            if terminated:
                self.state.last = {"terminated": terminated}
            if self.state.restarts == 0 and not self._ever_crashed:
                # The first restart comes at once; only the following ones are held back.
                self._ever_crashed = True
                self._backoff = 0.0
            else:
                words = f"back-off {_go_duration(self._backoff)} restarting failed container={self.name} "
                words += f"pod={self.worker.full_name}({self.worker.uid})"
                self._wait_state("CrashLoopBackOff", words)
                words = f"Back-off restarting failed container {self.name} in pod "
                self.event("BackOff", f"{words}{self.worker.full_name}({self.worker.uid})", warning=True)
                await clock.sleep(self._backoff)
            self.state.restarts += 1

    def _count_start(self) -> None:
        self.worker.node.starts.start(self._kind, host_process=self.worker.host_process)

    def _count_failure(self, code: str) -> None:
        self.worker.node.starts.fail(self._kind, code, host_process=self.worker.host_process)

    @property
    def _kind(self) -> str:
        if self.state in self.worker.facts.ephemeral:
            return "ephemeral_container"
        return "init_container" if self.state.init else "container"

    async def _run_once(self) -> int:
        instance = await self._make()
        if instance is None:
            return 128
        self.instance = instance
        self.state.state = {"running": {"startedAt": instance.started_at}}
        self._begun = instance.begun
        self.event("Started", "Container started")
        self.worker.changed()
        if hook := self._hook("postStart"):
            outcome = await perform(hook, self._target(instance), 3600)
            if not outcome.ok:
                self.event("FailedPostStartHook", "PostStartHook failed", warning=True)
                self._kill_later("FailedPostStartHook")
        self._probes = Probes(self._target(instance), self, lambda: self.worker.defects.kubelet.ignores_probes)
        if instance.process.running:
            self._probes.start()
        code = await instance.process.wait()
        if self._stops and not self._stopping:
            # What it ended itself, a kubelet learns from the next look at its runtime, once a second.
            await self.worker.clock.sleep(self.worker.node.rng.uniform(0.3, 1.0))
        self._ended(instance, code)
        return code

    def _hook(self, when: str) -> Object | None:
        if self.worker.defects.kubelet.ignores_hooks:
            return None
        return (self.spec.get("lifecycle") or {}).get(when)

    async def _make(self) -> Instance | None:
        """A container that runs; nothing if it could not be started."""
        return await self._start(await self._pull(self._pull_once))

    def _target(self, instance: Instance) -> Target:
        worker = self.worker
        address = worker.facts.addresses[0] if worker.facts.addresses else ""
        return Target(instance.container, self.spec, address, worker.host_endpoint, worker.clock)

    async def _pull(self, pull: Callable[[str], Awaitable[Pulled]]) -> Pulled:
        """The image, however long it takes to get it."""
        reference = str(self.spec["image"])
        delay = 0.0
        while True:
            self._count_start()
            try:
                return await pull(reference)
            except InvalidReference as error:
                self._count_failure("InvalidImageName")
                self._wait_state("InvalidImageName", f'Failed to apply default image tag "{reference}": {error}')
                self.event("InspectFailed", f'Failed to apply default image tag "{reference}": {error}', warning=True)
                self.event("Failed", "Error: InvalidImageName", warning=True)
                await self.worker.clock.sleep(_SYNC * 6)
            except _NeverPull:
                self._count_failure("ErrImageNeverPull")
                words = f'Container image "{reference}" is not present with pull policy of Never'
                self._wait_state("ErrImageNeverPull", words)
                self.event("ErrImageNeverPull", words, warning=True)
                self.event("Failed", "Error: ErrImageNeverPull", warning=True)
                await self.worker.clock.sleep(_SYNC * 6)
            except PullError as error:
                self._count_failure("ErrImagePull")
                delay = min(max(delay * 2, _BACKOFF_FIRST), _BACKOFF_MAX)
                self._wait_state("ErrImagePull", error.rpc)
                self.event("Failed", f'Failed to pull image "{reference}": {error.rpc}', warning=True)
                self.event("Failed", "Error: ErrImagePull", warning=True)
                await self.worker.clock.sleep(min(delay, _SYNC) / 2)
                words = f'Back-off pulling image "{reference}"'
                self._wait_state("ImagePullBackOff", f"{words}: ErrImagePull: {error.rpc}")
                self.event("BackOff", words)
                self.event("Failed", "Error: ImagePullBackOff", warning=True)
                await self.worker.clock.sleep(delay)

    async def _pull_once(self, reference: str) -> Image:
        store, policy = self.worker.node.images, self.spec.get("imagePullPolicy") or "IfNotPresent"
        cached = store.cached(reference)
        if cached is not None and policy != "Always":
            self.event("Pulled", f'Container image "{reference}" already present on machine')
            return cached
        if policy == "Never":
            raise _NeverPull
        self.event("Pulling", f'Pulling image "{reference}"')
        pulled = await store.pull(reference)
        self.event(
            "Pulled",
            f'Successfully pulled image "{reference}" in {_go_duration(pulled.seconds)} '
            f"({_go_duration(pulled.seconds + pulled.waited)} including waiting). "
            f"Image size: {pulled.image.size} bytes.",
        )
        return pulled.image

    async def _start(self, image: Image) -> Instance | None:
        """Create and start; what the pod refers to and is missing is waited for, what cannot run ends here."""
        worker = self.worker
        while True:
            try:
                prepared = await worker.prepare(self, image)
                break
            except ConfigError as error:
                self._count_failure("CreateContainerConfigError")
                self._wait_state("CreateContainerConfigError", str(error))
                self.event("Failed", f"Error: {error}", warning=True)
                await worker.clock.sleep(_SYNC)
                self._count_start()
            except LogonError as error:
                self._start_error(str(error), stamp(), "")
                return None
        self.state.image, self.state.image_id = prepared.image.name, prepared.image.repo_digest
        self.event("Created", "Container created")
        container = prepared.container
        figures = latency.of(worker.node.machine.os)
        span = figures.host_process if worker.host_process else figures.container
        try:
            async with worker.node.start_slots:
                await worker.clock.sleep(latency.draw(worker.node.rng, span) * worker.defects.kubelet.slow_start_factor)
        except asyncio.CancelledError:
            container.remove()
            raise
        log = ContainerLog()
        stdout, stderr = LogPipe(log, "stdout"), LogPipe(log, "stderr")
        stdin = Pipe() if self.spec.get("stdin") else None
        identifier = f"containerd://{container.id}"
        self.state.container_id = identifier
        begun = stamp()
        try:
            process = container.spawn(
                prepared.argv,
                stdin=stdin,
                stdout=stdout,
                stderr=stdout if self.spec.get("tty") else stderr,
                tty=bool(self.spec.get("tty")),
            )
        except ExecError as error:
            self._start_error(error.on_start(container.id), begun, identifier)
            container.remove()
            return None
        self.previous_log, self.log = self.log, log
        return Instance(
            container, process, log, stdout, stderr, begun, worker.clock.now(), identifier, prepared.message
        )

    def _start_error(self, words: str, begun: str, identifier: str) -> None:
        self._count_failure("RunContainerError")
        self.event("Failed", f"Error: {words}", warning=True)
        self.state.state = {
            "terminated": {
                "exitCode": 128,
                "reason": "StartError",
                "message": words,
                "startedAt": "1970-01-01T00:00:00Z",
                "finishedAt": begun,
                "containerID": identifier,
            }
        }
        self.worker.changed()

    def _ended(self, instance: Instance, code: int) -> None:
        if self._probes is not None:
            self._probes.stop()
        instance.log.close()
        killed = instance.container.oom_killed
        terminated: Object = {
            # Windows counts to 2^32, the runtime's interface and the API have signed numbers.
            "exitCode": code - 2**32 if code >= 2**31 else code,
            "reason": "OOMKilled" if killed else "Completed" if code == 0 else "Error",
            "startedAt": instance.started_at,
            "finishedAt": stamp(utc_now()),
            "containerID": instance.id,
        }
        if message := self._termination_message(instance, code):
            terminated["message"] = message
        self.state.state = {"terminated": terminated}
        self.state.ready = self.state.started = False
        self.started.clear()
        self.instance = None
        self.worker.changed()

    def _termination_message(self, instance: Instance, code: int) -> str:
        message = instance.message.data.decode(errors="replace")
        if self.worker.defects.runtime.last_words_lost:
            return ""
        if not message and code != 0 and self.spec.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            message = instance.log.tail(80, 2048)
        return message[:4096]

    def on_started(self) -> None:
        """See `probes.Probed`."""
        self.state.started = True
        self.started.set()
        self.worker.changed()

    def on_ready(self, ready: bool) -> None:
        """See `probes.Probed`."""
        if self.state.ready != ready:
            self.state.ready = ready
            self.worker.changed()

    def on_probe_failure(self, kind: Kind, message: str) -> None:
        """See `probes.Probed`."""
        self.event("Unhealthy", f"{kind.capitalize()} probe failed: {message}", warning=True)

    def on_dead(self, kind: Kind) -> None:
        """See `probes.Probed`."""
        self._kill_later(f"{kind} probe")

    def _kill_later(self, reason: str) -> None:
        instance = self.instance
        if instance is None:
            return
        if reason.endswith("probe"):
            self.event("Killing", f"Container {self.name} failed {reason}, will be restarted")
        else:
            self.event("Killing", reason)
        task = asyncio.create_task(self._stop_instance(instance, float(self.worker.grace)))
        self._stops.add(task)
        task.add_done_callback(self._stops.discard)

    async def stop(self, grace: float) -> None:
        """Stop for good: hook, signal, and after the grace the end."""
        self._stopping = True
        if self.instance is not None:
            self.event("Killing", f"Stopping container {self.name}")
            await self._stop_instance(self.instance, grace)
        elif self.task is not None:
            self.task.cancel()
        if self.task is not None:
            await asyncio.wait([self.task])

    async def _stop_instance(self, instance: Instance, grace: float) -> None:
        begun = self.worker.clock.now()
        if self._probes is not None:
            self._probes.stop()
        hook = self._hook("preStop")
        if hook and grace > 0:
            try:
                async with asyncio.timeout(self.worker.clock.wall(grace)):
                    outcome = await perform(hook, self._target(instance), grace)
                if not outcome.ok:
                    self.event("FailedPreStopHook", "PreStopHook failed", warning=True)
            except TimeoutError:
                self.event("FailedPreStopHook", "PreStopHook failed", warning=True)
        left = max(grace - (self.worker.clock.now() - begun), 2.0 if grace > 0 else 0.0)
        if self.worker.defects.kubelet.graceful_stop_ignored:
            left = 0.0
        await instance.container.stop(left)

    def replace(self, spec: Object) -> None:
        """The pod wants another image from now on."""
        self.state.spec = spec
        self._kill_later(f"Container {self.name} definition changed, will be restarted")

    def resize(self, spec: Object) -> None:
        """The pod wants other resources from now on; the container says for which of them it must start anew."""
        before, self.state.spec = self.state.spec, spec
        changed = [
            name
            for name in ("cpu", "memory")
            if any(get(before).get(name) != get(spec).get(name) for get in (resources.requests, resources.limits))
        ]
        policies = {each["resourceName"]: each["restartPolicy"] for each in spec.get("resizePolicy") or []}
        if any(policies.get(name) == "RestartContainer" for name in changed):
            self._kill_later(f"Container {self.name} resize requires restart")
        elif self.instance is not None and (container := self.instance.metered) is not None:
            limits = resources.limits(spec)
            container.resize(
                float(resources.requests(spec).get("cpu", 0)),
                float(limits["cpu"]) if "cpu" in limits else None,
                int(limits["memory"]) if "memory" in limits else None,
            )
        self.worker.changed()

    async def crash(self) -> None:
        """End without any notice, as when the machine loses power."""
        self._stopping = True
        if self._probes is not None:
            self._probes.stop()
        if self.task is not None:
            self.task.cancel()
        if self.instance is not None:
            await self.instance.container.stop(0)
            self.instance.log.close()
        for task in list(self._stops):
            task.cancel()


class _NeverPull(Exception):
    """The pull policy forbids what would be needed."""


def _go_duration(seconds: float) -> str:
    """A duration as Go prints it: 10s, 1m20s, 5m0s, 1.532s."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    minutes, rest = divmod(seconds, 60)
    text = f"{rest:.3f}".rstrip("0").rstrip(".") + "s"
    return f"{int(minutes)}m{text}" if minutes else text

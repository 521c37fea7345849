"""A virtual kubelet: joins an API server as a node, runs the pods bound to it, answers on its own port."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from winready_sandbox.apiclient import ApiClient, ApiFailure, ApiUnreachable, Conflict, NotFound
from winready_sandbox.clock import Clock
from winready_sandbox.machine.machine import Machine, PowerRequest
from winready_sandbox.network.endpoint import Endpoint, Listener
from winready_sandbox.network.fabric import Fabric
from winready_sandbox.nodes import latency, registration, shutdown
from winready_sandbox.nodes.configuration import KUBELET_PORT, Settings
from winready_sandbox.nodes.counters import StartCounters
from winready_sandbox.nodes.defects import NodeDefects
from winready_sandbox.nodes.events import Recorder
from winready_sandbox.nodes.eviction import Evictions
from winready_sandbox.nodes.heartbeat import Heartbeat
from winready_sandbox.nodes.host_services import open_host_ports
from winready_sandbox.nodes.pods import PodWorker
from winready_sandbox.nodes.publisher import Publisher
from winready_sandbox.nodes.pulls import ImageStore
from winready_sandbox.nodes.references import References
from winready_sandbox.nodes.stats import Statistics
from winready_sandbox.nodes.volumes.shared import SharedFolders

if TYPE_CHECKING:
    from winready_sandbox.nodes.server import NodeServer

Object = dict[str, Any]
log = logging.getLogger(__name__)
SYNC_PERIOD = 60.0
_LEAST_SYNC = 0.5
"""Wall seconds: at high speeds pods are looked at less often than once a cluster minute."""
_OUTAGE = (120.0, 360.0)
"""A reboot of a Windows node takes 2 to 6 minutes."""
_RETRY = 0.5


class Kubelet:
    """One node."""

    measures = True
    """Whether it knows what its containers use of the machine."""

    def __init__(
        self,
        machine: Machine,
        addresses: list[str],
        *,
        client: ApiClient,
        clock: Clock,
        fabric: Fabric,
        references: References,
        server: NodeServer,
        settings: Settings,
        heartbeats: Heartbeat,
        folders: SharedFolders,
    ) -> None:
        self.machine = machine
        self.addresses = addresses
        self.client = client
        self.clock = clock
        self.fabric = fabric
        self.references = references
        self.settings = settings
        self.folders = folders
        self.defects = NodeDefects()
        self.rng = random.Random(machine.name)
        build = machine.build.number if machine.build else ""
        self.images = ImageStore(machine.os, build, clock, self.defects.runtime, self.rng, settings.pull_seconds)
        self.recorder = Recorder(client, machine.name, clock)
        self.publisher = Publisher(client, machine.name)
        self.start_slots = asyncio.Semaphore(latency.of(machine.os).starts_at_once)
        self.workers: dict[str, PodWorker] = {}
        self.starts = StartCounters()
        self.statistics = Statistics(self)
        self.evictions = Evictions(self)
        self.object: Object = {}
        """The node as it was last reported."""
        self.registered = asyncio.Event()
        self.running = False
        self.going_down = False
        """Whether a graceful shutdown has begun."""
        self._server = server
        self._heartbeats = heartbeats
        self._ready = (True, "KubeletReady", "kubelet is posting ready status")
        self._tasks: list[asyncio.Task[None]] = []
        self._power: asyncio.Task[None] | None = None
        self._power_final = False
        """The power cycle is under way: nobody can take it back."""
        self._seen_pods = 0
        self._skipped: dict[str, Object] = {}
        """Pods that a defect keeps down, by uid."""
        self._ended: dict[str, Object] = {}
        """Statuses of pods that had run to their end when the machine stopped, by uid: the runtime's own records,
        which know of an end that was never reported."""
        self._away: Literal["", "left", "lost"] = ""
        """Why the node is not there: a defect keeps it from joining, or from coming back after a reboot."""
        self.on_boot: Callable[[], Awaitable[None]] = _nothing
        """Called when the machine has started again, before anything runs on it."""
        self._fell_again = False
        machine.on_power = self._on_power

    @property
    def name(self) -> str:
        """The node's name."""
        return self.machine.name

    @property
    def host_endpoint(self) -> Endpoint:
        """The node's own network."""
        return self.fabric.host(self.name)

    async def start(self, *, after_reboot: bool = False) -> None:
        """Join the cluster and work."""
        self._away = "left" if self.defects.kubelet.does_not_join else ""
        if self._away:
            return
        self.running = True
        self.going_down = False
        self._ready = (True, "KubeletReady", "kubelet is posting ready status")
        self.recorder.start()
        self.publisher.start()
        await self._server.start(self)
        self._spawn(self._join(after_reboot), "join")

    def _spawn(self, work: Any, what: str) -> None:
        self._tasks.append(asyncio.create_task(work, name=f"{what} {self.name}"))

    async def stop(self) -> None:
        """Leave without a word, as a process that is ended."""
        if self._power is not None:
            self._power.cancel()
            await asyncio.wait([self._power])
        await self._go_silent()

    async def _go_silent(self) -> None:
        self.running = False
        self.registered.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        await self.recorder.stop()
        await self.publisher.stop()
        self._ended = {uid: worker.status() for uid, worker in self.workers.items() if worker.finished}
        for worker in list(self.workers.values()):
            await worker.crash()
        self.workers.clear()
        self._skipped.clear()
        await self._server.stop()

    async def heed_defects(self) -> None:
        """Act on defects that were set or healed: leave, come back, or say anew what this node is."""
        defects = self.defects.kubelet
        if self._away == "lost" and not defects.never_returns:
            self._away = ""
            await self._boot()
        elif self._away == "left" and not defects.does_not_join:
            await self.start()
        elif self.running and defects.does_not_join:
            await self.stop()
            self._away = "left"
        elif self.registered.is_set():
            with contextlib.suppress(ApiFailure, ApiUnreachable):
                await self._register()
        if not defects.leaves_pods_down:
            skipped, self._skipped = self._skipped, {}
            for pod in skipped.values():
                self._take(pod)

    async def _join(self, after_reboot: bool) -> None:
        while True:
            try:
                await self._register()
                break
            except (ApiFailure, ApiUnreachable) as error:
                log.info("%s cannot register: %s", self.name, error)
            await asyncio.sleep(_RETRY)
        self.registered.set()
        self.recorder.node("Starting", "Starting kubelet.")
        self.recorder.node("NodeReady", f"Node {self.name} status is now: NodeReady")
        if after_reboot:
            words = f"Node {self.name} has been rebooted, boot id: {self.machine.boot_id}"
            self.recorder.node("Rebooted", words, type="Warning")
        self._spawn(self._heartbeats.keep(self), "heartbeat")
        self._spawn(self._sync_pods(), "sync")
        if self.measures:
            self._spawn(self.evictions.keep(), "eviction")
        await self._watch_pods(skip_known=after_reboot and self.defects.kubelet.leaves_pods_down)

    async def _register(self) -> None:
        """Create the node, or bring an existing one of this name up to date."""
        labels = self.labels()
        spec: Object = {
            "taints": [{"key": key, "value": value, "effect": effect} for key, value, effect in self.settings.taints]
        }
        if self.settings.sets_pod_cidr:
            cidrs = self.pod_cidrs
            spec |= {"podCIDR": cidrs[0], "podCIDRs": cidrs} if cidrs else {}
        node: Object = {
            "kind": "Node",
            "apiVersion": "v1",
            "metadata": {
                "name": self.name,
                "labels": labels,
                "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
            },
            "spec": {key: value for key, value in spec.items() if value},
            "status": self.status(),
        }
        try:
            self.object = await self.client.create("nodes", node)
        except Conflict:
            await self.client.patch("nodes", self.name, {"metadata": {"labels": labels}})
            await self._report()
        await self._heartbeats.renew(self)

    def labels(self) -> dict[str, str]:
        """What the node says that it is."""
        return registration.labels(self.machine, self.defects.kubelet) | dict(self.settings.labels)

    @property
    def pod_cidrs(self) -> list[str]:
        """The ranges of its pods' addresses."""
        return [str(pool.network) for pool in self.fabric.nodes[self.name].pools]

    def open_ports(self, real_port: int) -> list[Listener]:
        """Let others of the simulated network find the node's own ports; the kubelet's is there on loopback."""
        return open_host_ports(self.machine, self.fabric.host(self.name), (KUBELET_PORT, real_port))

    def status(self) -> Object:
        """The node's status as of now."""
        result = registration.status(
            self.machine,
            self.addresses,
            self.images.all(),
            settings=self.settings,
            defects=self.defects.kubelet,
        )
        ready, reason, message = self._ready
        previous = self.object.get("status", {}).get("conditions") or []
        for section in ("capacity", "allocatable"):
            # As real kubelets do: of what the node had, only huge pages are taken out again.
            known = self.object.get("status", {}).get(section) or {}
            gone = [name for name in known if name.startswith("hugepages-") and name not in result[section]]
            result[section] |= dict.fromkeys(gone)
        result["conditions"] = registration.conditions(
            ready=ready,
            reason=reason,
            message=message,
            memory_pressure=self.evictions.pressure,
            previous=previous,
        )
        return result

    async def report_node(self) -> None:
        """Report the node's status; an API server that does not take it now gets it the next time."""
        with contextlib.suppress(ApiFailure, ApiUnreachable):
            await self._report()

    async def refresh(self) -> None:
        """Look at the node as the API server has it, labels of others included."""
        with contextlib.suppress(ApiFailure, ApiUnreachable):
            self.object = await self.client.get("nodes", self.name)

    async def _report(self) -> None:
        self.object = await self.client.get("nodes", self.name)
        patch = {"status": self.status()}
        self.object = await self.client.patch("nodes", self.name, patch, subresource="status")

    async def _watch_pods(self, *, skip_known: bool) -> None:
        skipping = skip_known
        async for change in self.client.watch("pods", fields=f"spec.nodeName={self.name}"):
            if change.type == "SYNCED":
                skipping = False
                continue
            pod = change.object
            uid = pod["metadata"]["uid"]
            worker = self.workers.get(uid)
            if change.type == "DELETED":
                self._skipped.pop(uid, None)
                if worker is not None:
                    worker.end(2.0, gone=True)
            elif worker is not None:
                worker.update(pod)
            elif skipping or uid in self._skipped:
                self._skipped[uid] = pod
            else:
                self._take(pod)

    def _take(self, pod: Object) -> None:
        self._seen_pods += 1
        worker = self._new_worker(pod, self._ended.pop(pod["metadata"]["uid"], None))
        worker.lost = self.defects.kubelet.loses_pods and self._seen_pods % 3 == 0
        self.workers[worker.uid] = worker
        if pod["metadata"].get("deletionTimestamp"):
            worker.update(pod)
        else:
            worker.start()

    def _new_worker(self, pod: Object, ended: Object | None) -> PodWorker:
        return PodWorker(self, pod, ended=ended)

    def others(self, worker: PodWorker) -> Iterator[Object]:
        """The pods that take room beside this one."""
        return (other.pod for other in self.workers.values() if other is not worker and not other.finished)

    def forget(self, worker: PodWorker) -> None:
        """The pod is gone."""
        self.workers.pop(worker.uid, None)
        self.machine.pod_folders.pop(worker.uid, None)
        self.publisher.drop(worker)

    async def delete(self, worker: PodWorker) -> None:
        """Tell the API server that nothing is left of a pod that was to be deleted."""
        metadata = worker.pod["metadata"]
        while True:
            try:
                await self.client.delete("pods", metadata["name"], metadata["namespace"], grace=0, uid=worker.uid)
                break
            except (NotFound, Conflict):
                break
            except (ApiFailure, ApiUnreachable):
                await asyncio.sleep(_RETRY)
        self.forget(worker)

    async def _sync_pods(self) -> None:
        """Look at every pod about once a minute; each pod has its own moment in it."""
        due: dict[str, float] = {}
        while True:
            await asyncio.sleep(max(self.clock.wall(5.0), _LEAST_SYNC))
            now = self.clock.now()
            for uid, worker in list(self.workers.items()):
                if now >= due.setdefault(uid, now + SYNC_PERIOD * self.rng.uniform(0.5, 1.0)):
                    due[uid] = now + SYNC_PERIOD * self.rng.uniform(1.0, 1.5)
                    await worker.sync()
            for uid in due.keys() - self.workers.keys():
                del due[uid]

    def _on_power(self, request: PowerRequest | None) -> None:
        if self._power_final:
            return
        if self._power is not None:
            self._power.cancel()
        if request is not None:
            self._power = asyncio.create_task(self._power_cycle(request), name=f"power {self.name}")

    async def _power_cycle(self, request: PowerRequest) -> None:
        await self.clock.sleep(request.delay)
        self.machine.power = None
        self._power_final = True
        try:
            await self._turn_off(request)
        finally:
            self._power_final = False

    async def _turn_off(self, request: PowerRequest) -> None:
        if self.settings.shutdown_grace:
            await self._shut_down_gracefully()
        await self._go_silent()
        self.fabric.nodes[self.name].go_down()
        if not request.restart:
            return
        if self.defects.kubelet.never_returns:
            self._away = "lost"
            return
        await self.clock.sleep(self.defects.kubelet.outage or self.rng.uniform(*_OUTAGE))
        await self._boot()

    async def _boot(self) -> None:
        await self.on_boot()
        self.machine.restart()
        self.fabric.nodes[self.name].come_up()
        await self.start(after_reboot=True)
        if (seconds := self.defects.kubelet.reboots_again) and not self._fell_again:
            self._fell_again = True
            self._spawn(self._fall(seconds), "fall")

    async def _fall(self, seconds: float) -> None:
        await self.clock.sleep(seconds)
        self._on_power(PowerRequest(restart=True, delay=0.0))

    async def _shut_down_gracefully(self) -> None:
        self.going_down = True
        self._ready = (False, "KubeletNotReady", "node is shutting down")
        self.recorder.node("NodeShutdown", "Shutdown manager detected preshutdown event")
        await self.report_node()
        await shutdown.end_pods(self)


async def _nothing() -> None:
    """What happens at a boot unless somebody asks to be told."""

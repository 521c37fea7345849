"""What every controller is made of: a queue of keys, shared informers, a recorder of events, one clock."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from winready_sandbox.api.objects import Object
from winready_sandbox.controllers.defects import ControllerDefects, PlacementDefects
from winready_sandbox.controllers.events import Recorder
from winready_sandbox.controllers.everything import Everything
from winready_sandbox.controllers.informer import Informer, Informers
from winready_sandbox.controllers.objects import Key, controller_reference, either, key_of
from winready_sandbox.controllers.queue import WorkQueue
from winready_sandbox.controllers.readiness import Readiness, indexed_pods

if TYPE_CHECKING:
    from winready_sandbox.api.client import LocalClient
    from winready_sandbox.api.resources import ResourceTable
    from winready_sandbox.clock import Clock


@dataclass
class Context:
    """What the controllers of one cluster share."""

    client: LocalClient
    resources: ResourceTable
    clock: Clock
    root_ca: str = ""
    """PEM of the cluster's certificate authority, published to every namespace."""
    pod_networks: tuple[str, ...] = ("10.244.0.0/16",)
    """Cluster CIDRs, one or two families; each node gets a slice of each."""
    defects: ControllerDefects = field(default_factory=ControllerDefects)
    placement: defaultdict[str, PlacementDefects] = field(default_factory=lambda: defaultdict(PlacementDefects))
    """What is wrong with the scheduler, by node."""
    informers: Informers = field(init=False)
    pods: Informer = field(init=False)
    readiness: Readiness = field(init=False)

    @cached_property
    def everything(self) -> Everything:
        """Every kind of object, for who must see the whole."""
        return Everything(self)

    @property
    def minor(self) -> int:
        """Minor version of the Kubernetes whose behaviour and texts are wanted."""
        return self.resources.minor

    def __post_init__(self) -> None:
        self.informers = Informers(self.client, self.resources)
        self.pods = indexed_pods(self.informers)
        self.readiness = Readiness(self.pods, self.clock)


class Controller:
    """Keeps one aspect of the cluster as its objects say it should be."""

    name = ""
    kind = ""
    api_version = ""
    resource = ""
    """What the keys of the queue name."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.clock = context.clock
        self.informers = context.informers
        self.queue: WorkQueue[Key] = WorkQueue(self.name, context.clock, self.effort)
        self.recorder = Recorder(context.client, self.name)
        self.watch()

    def watch(self) -> None:
        """Subscribe to what this controller reacts to."""
        raise NotImplementedError

    def sync(self, key: Key) -> None:
        """Bring one object closer to what it should be."""
        raise NotImplementedError

    def effort(self) -> int:
        """How many objects a turn looks at, where that grows with the cluster and not with the object in hand."""
        return 0

    async def run(self) -> None:
        """Work until cancelled."""
        await self.queue.run(self.sync)

    def enqueue(self, old: Object | None, new: Object | None) -> None:
        """Handler: work on the object that changed."""
        self.queue.add(key_of(either(old, new)))

    def enqueue_owner(self, old: Object | None, new: Object | None) -> None:
        """Handler: work on the owner, of our kind, of the object that changed."""
        for obj in (old, new):
            reference = controller_reference(obj) if obj is not None else None
            if reference is not None and obj is not None and reference["kind"] == self.kind:
                self.queue.add((obj["metadata"].get("namespace", ""), reference["name"]))

    def enqueue_adopters(
        self, matches: Callable[[Object, Object], bool]
    ) -> Callable[[Object | None, Object | None], None]:
        """Handler: an object without owner may belong to any of our kind whose selector matches it."""
        owners = self.informers.of(self.resource)

        def handler(old: Object | None, new: Object | None) -> None:
            if new is None or controller_reference(new) is not None:
                return
            for owner in owners.by("namespace", new["metadata"].get("namespace", "")):
                if matches(owner, new):
                    self.queue.add(key_of(owner))

        return handler

    def tell(self, obj: Object, reason: str, message: str, *, warning: bool = False) -> None:
        """Record an event about an object of our kind."""
        self.recorder.event(self.kind, self.api_version, obj, reason, message, warning=warning)

    def write_status(self, obj: Object, status: Object) -> Object:
        """Write the status if it differs from what is there."""
        current = obj.get("status") or {}
        if current == status:
            return obj
        return self.informers.update(self.resource, {**obj, "status": status}, "status")

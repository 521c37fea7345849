"""All controllers of the embedded control plane, started and stopped together; if one dies, all of them do, loudly."""

from __future__ import annotations

import asyncio
from typing import Protocol

from winready.sandbox.controllers.clusterroles import ClusterRoleAggregator
from winready.sandbox.controllers.controller import Context
from winready.sandbox.controllers.cronjob import CronJobController
from winready.sandbox.controllers.daemonset import DaemonSetController
from winready.sandbox.controllers.deployment import DeploymentController
from winready.sandbox.controllers.disruption import DisruptionController
from winready.sandbox.controllers.endpoints_legacy import EndpointsController, MirroringController
from winready.sandbox.controllers.endpointslice import EndpointSliceController
from winready.sandbox.controllers.garbage import GarbageCollector
from winready.sandbox.controllers.job import JobController
from winready.sandbox.controllers.namespaces import NamespaceController
from winready.sandbox.controllers.nodeipam import NodeIpamController
from winready.sandbox.controllers.nodelifecycle import NodeLifecycleController
from winready.sandbox.controllers.podgarbage import PodGarbageCollector
from winready.sandbox.controllers.replicaset import ReplicaSetController
from winready.sandbox.controllers.scheduling.scheduler import Scheduler
from winready.sandbox.controllers.serviceaccounts import ServiceAccountController
from winready.sandbox.controllers.statefulset import StatefulSetController
from winready.sandbox.controllers.tainteviction import TaintEvictionController
from winready.sandbox.controllers.volumes import VolumeBinder


class Runnable(Protocol):
    """A controller as the manager sees it."""

    name: str

    async def run(self) -> None:
        """Work until cancelled."""


CONTROLLERS: tuple[type, ...] = (
    ClusterRoleAggregator,
    CronJobController,
    DaemonSetController,
    DeploymentController,
    EndpointsController,
    MirroringController,
    EndpointSliceController,
    GarbageCollector,
    JobController,
    NamespaceController,
    PodGarbageCollector,
    ReplicaSetController,
    ServiceAccountController,
    StatefulSetController,
    Scheduler,
    DisruptionController,
    NodeIpamController,
    NodeLifecycleController,
    TaintEvictionController,
    VolumeBinder,
)


class Manager:
    """Runs the controllers of one cluster."""

    def __init__(self, context: Context, controllers: tuple[type, ...] = CONTROLLERS) -> None:
        self.context = context
        self.controllers: list[Runnable] = [make(context) for make in controllers]
        self.started = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled; a controller that fails ends this with its error."""
        async with asyncio.TaskGroup() as tasks:
            await self.context.informers.start(tasks)
            for controller in self.controllers:
                tasks.create_task(controller.run(), name=controller.name)
            self.started.set()

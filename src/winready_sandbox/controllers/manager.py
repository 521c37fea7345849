"""All controllers of the embedded control plane, started and stopped together; if one dies, all of them do, loudly."""

from __future__ import annotations

import asyncio
from typing import Protocol

from winready_sandbox.controllers.clusterroles import ClusterRoleAggregator
from winready_sandbox.controllers.controller import Context
from winready_sandbox.controllers.cronjob import CronJobController
from winready_sandbox.controllers.daemonset import DaemonSetController
from winready_sandbox.controllers.deployment import DeploymentController
from winready_sandbox.controllers.disruption import DisruptionController
from winready_sandbox.controllers.endpoints_legacy import EndpointsController, MirroringController
from winready_sandbox.controllers.endpointslice import EndpointSliceController
from winready_sandbox.controllers.garbage import GarbageCollector
from winready_sandbox.controllers.job import JobController
from winready_sandbox.controllers.namespaces import NamespaceController
from winready_sandbox.controllers.nodeipam import NodeIpamController
from winready_sandbox.controllers.nodelifecycle import NodeLifecycleController
from winready_sandbox.controllers.podgarbage import PodGarbageCollector
from winready_sandbox.controllers.replicaset import ReplicaSetController
from winready_sandbox.controllers.scheduling.scheduler import Scheduler
from winready_sandbox.controllers.serviceaccounts import ServiceAccountController
from winready_sandbox.controllers.statefulset import StatefulSetController
from winready_sandbox.controllers.tainteviction import TaintEvictionController
from winready_sandbox.controllers.volumes import VolumeBinder


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

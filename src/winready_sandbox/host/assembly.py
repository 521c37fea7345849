"""Putting the host node together and letting it join."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Sequence
from pathlib import Path

from winready_sandbox.apiclient import ApiClient
from winready_sandbox.clock import Clock
from winready_sandbox.egress import Egress
from winready_sandbox.host import images as image_folders
from winready_sandbox.host.ground import check_programs
from winready_sandbox.host.node import LABEL, HostMachine, HostNode
from winready_sandbox.network.fabric import Fabric
from winready_sandbox.nodes.callers import Callers
from winready_sandbox.nodes.configuration import Settings
from winready_sandbox.nodes.heartbeat import Heartbeat
from winready_sandbox.nodes.references import References
from winready_sandbox.nodes.server import NodeServer
from winready_sandbox.nodes.volumes.shared import SharedFolders
from winready_sandbox.plan import NodePlan
from winready_sandbox.state import StateError


async def host_node(
    plan: NodePlan,
    *,
    images: Sequence[str],
    folder: Path,
    client: ApiClient,
    version: str,
    fabric: Fabric,
    egress: Egress,
    tls: ssl.SSLContext,
    service_address: str,
    api_port: int,
    clock: Clock,
) -> HostNode:
    """Start the node and wait until it has registered; raises `StateError` for what is missing or wrong."""
    check_programs()
    os.mkdir(folder, mode=0o755)
    try:
        loaded = [await asyncio.to_thread(image_folders.load, text, folder / "images") for text in images]
    except ValueError as error:
        raise StateError(str(error)) from None
    # Real processes do not run faster: whatever the speed of the sandbox, its pods live on the wall clock.
    own = Clock(1.0)
    node = HostNode(
        HostMachine(plan.name, own),
        plan.addresses,
        folder=folder,
        images=loaded,
        network=plan.pod_networks[0],
        service_address=service_address,
        api_port=api_port,
        cluster_clock=clock,
        client=client,
        clock=own,
        fabric=fabric,
        references=References(client),
        server=NodeServer(egress, tls, Callers(client).authorize),
        settings=Settings(version=version, taints=((LABEL, "true", "NoSchedule"),)),
        heartbeats=Heartbeat(clock),
        folders=SharedFolders(),
    )
    try:
        await node.start()
        await node.registered.wait()
    except BaseException:
        await node.stop()
        raise
    return node

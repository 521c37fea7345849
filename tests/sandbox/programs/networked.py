"""Containers on a simulated network."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from sandbox.helpers.containers import container, machine
from sandbox.network.helpers import pod
from winready_sandbox.machine.container import Container
from winready_sandbox.machine.errors import OS
from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import NetworkError
from winready_sandbox.network.fabric import Fabric
from winready_sandbox.network.pod_endpoint import NetworkEndpoint


def on_node(
    fabric: Fabric, node: str, name: str, image: str = "agnhost", env: Mapping[str, str] | None = None
) -> Container:
    """A container in a pod of its own; the node's name says its OS."""
    os: OS = "windows" if node.startswith("w") else "linux"
    host = machine(os)
    host.clock = fabric.clock
    return container(image, os, on=host, hostname=name, env=env, endpoint=pod(fabric, node, name))


def network_of(where: Container) -> NetworkEndpoint:
    """The endpoint of a container."""
    assert isinstance(where.endpoint, NetworkEndpoint)
    return where.endpoint


def address(where: Container) -> str:
    """The pod's IPv4 address."""
    return network_of(where).addresses[0]


async def start(where: Container, *argv: str, port: int = 0) -> Process:
    """Start a container's main program and wait until it listens on a port."""
    process = where.spawn(list(argv))
    async with asyncio.timeout(60):
        while port and process.running:
            try:
                (await network_of(where).connect(address(where), port, timeout=60)).close()
                break
            except NetworkError:
                await asyncio.sleep(0.005)
        await asyncio.sleep(0)
    return process

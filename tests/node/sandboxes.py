"""A sandbox that tests of ``winready node`` change as they like, and the commands, in this process."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click
import pytest
import yaml
from click.testing import CliRunner, Result

from cli.conftest import CommandLine, command_line
from winready.cluster.client import Client, Object
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import CONFIG_MAPS

__all__ = ["command_line", "node_cluster"]
T = TypeVar("T")
ENDPOINT = "api.example:6443"


@pytest.fixture(scope="session")
def node_cluster(command_line: CommandLine) -> str:
    """The kubeconfig of a cluster whose nodes come and go; windows-3 goes for good."""
    return str(command_line.sandbox("node", "--windows", "3")["kubeconfig"])


def ask(kubeconfig: str, act: Callable[[Client], Awaitable[T]]) -> T:
    """Do something with the cluster, past the command line."""

    async def go() -> T:
        async with Client.connect(find_target(kubeconfig)) as client:
            return await act(client)

    return asyncio.run(go())


def call(command: click.Command, kubeconfig: str, *arguments: str) -> Result:
    """A command as a user runs it."""
    result = CliRunner().invoke(command, ["--kubeconfig", kubeconfig, *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result


def cluster_info(kubeconfig: str, **cluster: str) -> Object:
    """What kubeadm leaves for machines that want to join."""
    ca = find_target(kubeconfig).ca or b""
    described = {
        "server": f"https://{ENDPOINT}",
        "certificate-authority-data": base64.b64encode(ca).decode(),
        **cluster,
    }
    config = {"kind": "Config", "apiVersion": "v1", "clusters": [{"name": "", "cluster": described}]}
    return {"metadata": {"name": "cluster-info"}, "data": {"kubeconfig": yaml.safe_dump(config)}}


async def put_cluster_info(client: Client, config_map: Object) -> None:
    """Write it, whether or not one is there."""
    await client.delete(CONFIG_MAPS, "cluster-info", "kube-public")
    await client.create(CONFIG_MAPS, config_map, "kube-public")


async def until(happened: Callable[[], Awaitable[bool]]) -> None:
    """Ask again and again; the test's own time is the limit."""
    while True:
        if await happened():
            return
        await asyncio.sleep(0.05)

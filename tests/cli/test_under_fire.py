"""A sandbox in another process, with everything hostile at once: it answers everybody else, and stays small."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import CommandLine
from winready.cluster.client import Client
from winready.cluster.errors import ClusterError
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import NAMESPACES, PODS

QUESTIONS = 30
MEBIBYTE = 2**20
MOST = 400 * MEBIBYTE
WINDOWS = [
    ["powershell", "-Command", "$s = 'x'; while ($true) { try { $s += $s } catch { } }"],
    ["powershell", "-Command", "while ($true) { 'x' * 1mb }"],
    ["powershell", "-Command", "('a' * 60) -match '(a*)*\\1b'"],
    ["powershell", "-Command", "1..100000000"],
    ["powershell", "-Command", "$h = @{}; $i = 0; while ($true) { $h[$i] = 'x' * 4mb; $i++ }"],
    ["cmd", "/c", "for /L %i in (1,0,2) do @echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"],
]
LINUX = [
    ["sh", "-c", "seq 1000000000"],
    ["sh", "-c", "while true; do a=x; while test ${#a} -lt 4000000; do a=$a$a; done; done"],
    ["sh", "-c", "f() { f | f; }; f"],
    ["sh", "-c", "dd if=/dev/zero bs=1M count=100000"],
    ["sh", "-c", "while true; do dd if=/dev/zero of=/tmp/x bs=1M count=100000; done"],
    ["sh", "-c", "while true; do true; done"],
]


def pod(name: str, os: str) -> dict[str, Any]:
    """A pod on a node of that system."""
    container = {"name": "c", "image": "registry.k8s.io/e2e-test-images/agnhost:2.63.0", "args": ["pause"]}
    spec = {
        "containers": [container],
        "nodeSelector": {"kubernetes.io/os": os},
        "tolerations": [{"operator": "Exists"}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "fire"}, "spec": spec}


async def hostile(client: Client, name: str, argv: list[str]) -> None:
    """Run a command until it ends or nobody wants to know any more."""
    try:
        await client.exec("fire", name, "c", argv, deadline=300, beside=True)
    except ClusterError:
        return


def peak(pid: int) -> int:
    """The most memory that a process ever had."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


@pytest.fixture
def sandbox(command_line: CommandLine) -> Any:
    """A sandbox of its own."""
    document = command_line.sandbox("fire", "--linux", "1", "--windows", "1")
    yield document
    command_line("sandbox", "down", "--name", "fire")


async def test_hostile_commands_stop_nobody_and_do_not_grow(sandbox: dict[str, Any]) -> None:
    async with Client.connect(find_target(sandbox["kubeconfig"], None, {})) as client:
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fire"}})
        for os in ("windows", "linux"):
            await client.create(PODS, pod(os, os))
        while True:
            pods = await client.list(PODS, "fire")
            if all(each["status"].get("phase") == "Running" for each in pods):
                break
            await asyncio.sleep(0.2)
        attacks = [asyncio.create_task(hostile(client, "windows", argv)) for argv in WINDOWS]
        attacks += [asyncio.create_task(hostile(client, "linux", argv)) for argv in LINUX]
        answered = 0
        for _ in range(QUESTIONS):
            assert (await client.version())["gitVersion"]
            answered += 1
            await asyncio.sleep(0.1)
        assert (await client.exec("fire", "linux", "c", ["echo", "here"], deadline=60)).stdout == b"here\n"
        for attack in attacks:
            attack.cancel()
        await asyncio.gather(*attacks, return_exceptions=True)
        assert answered == QUESTIONS
        assert peak(sandbox["pid"]) < MOST

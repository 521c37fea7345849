"""A whole sandbox in this process: its parts find each other, and nothing of them outlives it."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from winready_sandbox.apiclient import Access, ApiClient, ApiFailure, Transport
from winready_sandbox.plan import Plan, PlanError
from winready_sandbox.state import Place
from winready_sandbox.up import Sandbox


@pytest.fixture
def place() -> Iterator[Place]:
    """A folder for a sandbox, with a path short enough for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="wr-"))
    yield Place("test", folder)
    shutil.rmtree(folder)


async def test_dual_stack_reaches_nodes_and_services(place: Place) -> None:
    async with Sandbox(Plan(linux=1, windows=1, speed=100, dual_stack=True), place) as sandbox:
        client = sandbox.embedded.client
        for node in client.list("nodes")[0]:
            assert [":" in cidr for cidr in node["spec"]["podCIDRs"]] == [False, True]
            assert [":" in each["address"] for each in node["status"]["addresses"]] == [False, True]
        service = {"metadata": {"name": "s"}, "spec": {"ipFamilyPolicy": "RequireDualStack", "ports": [{"port": 80}]}}
        made = client.create("services", service, "default")
        assert [":" in address for address in made["spec"]["clusterIPs"]] == [False, True]


async def test_nothing_is_left_running(place: Place) -> None:
    before = asyncio.all_tasks()
    async with Sandbox(Plan(linux=1, windows=1, speed=100), place) as sandbox:
        assert len(asyncio.all_tasks()) > len(before)
        port = sandbox.control_plane.port
    await asyncio.sleep(0)
    assert {task.get_name() for task in asyncio.all_tasks() - before} == set()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


async def test_part_that_fails_ends_the_sandbox_with_its_error(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Sandbox(Plan(linux=1, windows=0, speed=100), place) as sandbox:

        async def broken() -> None:
            raise ZeroDivisionError("on purpose")

        work = sandbox.control_plane.work
        assert work is not None
        monkeypatch.setattr(sandbox.control_plane, "work", asyncio.create_task(broken()))
        with pytest.raises(ZeroDivisionError, match="on purpose"):
            await asyncio.wait_for(sandbox.wait(), 60)
        monkeypatch.setattr(sandbox.control_plane, "work", work)


async def test_control_channel_answers_and_refuses_nonsense(place: Place) -> None:
    async with Sandbox(Plan(linux=1, windows=0, speed=100), place) as sandbox:

        async def ask(line: bytes) -> dict[str, object]:
            reader, writer = await asyncio.open_unix_connection(place.channel)
            writer.write(line + b"\n")
            answer: dict[str, object] = json.loads(await reader.readline())
            writer.close()
            return answer

        status = await ask(b'{"command": "status"}')
        assert isinstance(status["result"], dict)
        assert status["result"]["server"] == sandbox.control_plane.url
        for nonsense in (b"{", b"[]", b'"status"', b'{"command": "dance"}', b"{}"):
            assert str((await ask(nonsense))["error"]).startswith("not a request; known commands: ")
        assert await ask(b'{"command": "stop"}') == {"result": None}
        await asyncio.wait_for(sandbox.wait(), 60)


async def test_node_identity_has_the_rights_of_a_node_only(place: Place) -> None:
    async with Sandbox(Plan(linux=1, windows=0, speed=100), place) as sandbox:
        plane = sandbox.embedded
        transport = Transport(Access(plane.url, sandbox.authority.certificate.decode()))
        client = ApiClient(transport, token=plane.node_token("linux-1"))
        try:
            assert (await client.get("nodes", "linux-1"))["metadata"]["name"] == "linux-1"
            with pytest.raises(ApiFailure, match='User "system:node:linux-1" cannot delete resource "nodes"'):
                await client.delete("nodes", "linux-1")
        finally:
            await transport.close()


async def test_nodes_have_the_runtime_and_the_shutdown_grace_that_were_asked_for(place: Place) -> None:
    graces: dict[str, Any] = {"shutdown_grace": 20.0, "shutdown_grace_critical": 10.0}
    plan = Plan(linux=0, windows=1, speed=100, containerd="1.6.33", hyper_v=True, **graces)
    async with Sandbox(plan, place) as sandbox:
        (offered,), _ = sandbox.embedded.client.list("runtimeclasses")
        assert offered["handler"] in sandbox.fleet.kubelets["windows-1"].machine.runtime_handlers
        (node,), _ = sandbox.embedded.client.list("nodes")
        assert node["status"]["nodeInfo"]["containerRuntimeVersion"] == "containerd://1.6.33"
        settings = sandbox.fleet.kubelets["windows-1"].settings
        assert (settings.shutdown_grace, settings.shutdown_grace_critical) == (20, 10)


def test_a_runtime_or_grace_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(PlanError, match="--containerd one: not a version"):
        Plan(containerd="one")
    with pytest.raises(PlanError, match="it is a part of --shutdown-grace"):
        Plan(shutdown_grace=5, shutdown_grace_critical=10)
    for nonsense in ("", ".local", "Cluster.Local", "a b"):
        with pytest.raises(PlanError, match=r"--cluster-domain .*: not a domain"):
            Plan(cluster_domain=nonsense)

"""A node that reboots: what is lost, what comes back, and how it can go wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime

import pytest

from sandbox.nodes.small_cluster import Cluster, container_state, is_ready, small_cluster
from winready_sandbox.egress import NoRoute
from winready_sandbox.machine.machine import PowerRequest
from winready_sandbox.nodes.configuration import Settings


async def reboot(cluster: Cluster) -> str:
    """Ask win-1 to restart, from a pod that ends before; returns the boot id of before."""
    node = await cluster.client.get("nodes", "win-1")
    await cluster.run("trigger", "reboot", "36000", node="win-1", restartPolicy="Never")
    await cluster.phase("trigger", "Succeeded")
    soon(cluster)
    return str(node["status"]["nodeInfo"]["bootID"])


def soon(cluster: Cluster) -> None:
    """The restart that was asked for comes now, however long the pod took to be seen ending."""
    machine = cluster.node("win-1").machine
    assert machine.power is not None
    machine.request_power(PowerRequest(machine.power.restart, 30.0))


def answers(cluster: Cluster) -> bool:
    """Does the port of win-1 lead anywhere?"""
    try:
        cluster.egress.resolve("10.250.0.2", 10250)
    except NoRoute:
        return False
    return True


async def test_pods_come_back_with_another_address(cluster: Cluster) -> None:
    machine = cluster.node("win-1").machine
    machine.files.write("C:\\kept", b"x")
    machine.files.write("C:\\Windows\\Temp\\lost", b"x")
    await cluster.run("a", "print", "up", "pause", node="win-1")
    before = await cluster.ready("a")
    boot_id = await reboot(cluster)
    await cluster.becomes(lambda: not answers(cluster))
    after = await cluster.until("a", lambda each: container_state(each)["restartCount"] == 1 and is_ready(each))
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["podIP"] != before["status"]["podIP"], "fact S6: same pods, restartCount+1, new IP"
    assert container_state(after)["lastState"]["terminated"]["exitCode"] == 255
    node = await cluster.client.get("nodes", "win-1")
    assert node["status"]["nodeInfo"]["bootID"] == str(int(boot_id) + 1), "fact S6: upstream expects +1"
    await cluster.event("win-1", "Rebooted", f"Node win-1 has been rebooted, boot id: {int(boot_id) + 1}")
    assert machine.files.exists("C:\\kept")
    assert not machine.files.exists("C:\\Windows\\Temp\\lost")
    assert (await cluster.exec("a", "/agnhost", "print", "x"))[1] == "x\n"
    assert (await cluster.pod("trigger"))["status"]["phase"] == "Succeeded"


@pytest.mark.virtual_time
async def test_a_reboot_can_be_taken_back(cluster: Cluster) -> None:
    await reboot(cluster)
    machine = cluster.node("win-1").machine
    machine.request_power(None)
    await cluster.clock.sleep(60)
    assert cluster.node("win-1").running


async def test_an_end_that_was_never_reported_is_known_after_the_reboot(cluster: Cluster) -> None:
    node = cluster.node("win-1")
    await cluster.run("a", "await", "C:\\go", "print", "done", node="win-1", restartPolicy="Never")
    worker = cluster.worker(await cluster.ready("a"))
    await node.publisher.stop()
    assert (await cluster.exec("a", "/agnhost", "write", "C:\\go", "x"))[0] == 0
    await cluster.becomes(lambda: worker.finished)
    assert (await cluster.pod("a"))["status"]["phase"] == "Running"
    node.machine.request_power(PowerRequest(True, 0.0))
    after = await cluster.phase("a", "Succeeded")
    assert container_state(after)["restartCount"] == 0, "the runtime keeps what has ended; nothing runs twice"


@pytest.mark.virtual_time
async def test_a_node_that_never_returns(cluster: Cluster) -> None:
    cluster.node("win-1").defects.kubelet.never_returns = True
    await reboot(cluster)
    await cluster.becomes(lambda: not cluster.node("win-1").running)
    lease = await cluster.client.get("leases", "win-1", "kube-node-lease")
    await cluster.clock.sleep(50)
    assert await cluster.client.get("leases", "win-1", "kube-node-lease") == lease


async def test_a_boot_id_that_stays_and_pods_that_do_not_return(cluster: Cluster) -> None:
    node = cluster.node("win-1")
    node.machine.defects.boot_id_stays = True
    node.defects.kubelet.leaves_pods_down = True
    await cluster.run("a", node="win-1")
    await cluster.ready("a")
    boot_id = await reboot(cluster)
    await cluster.becomes(lambda: not node.running)
    await cluster.becomes(lambda: node.registered.is_set())
    assert (await cluster.client.get("nodes", "win-1"))["status"]["nodeInfo"]["bootID"] == boot_id
    await cluster.run("new", node="win-1")
    await cluster.ready("new")
    assert len(node.workers) == 1


@pytest.fixture
async def graceful() -> AsyncIterator[Cluster]:
    async with small_cluster(settings=Settings(shutdown_grace=30.0)) as running:
        yield running


async def test_graceful_shutdown_ends_pods_for_good(graceful: Cluster) -> None:
    await graceful.run("a", node="win-1")
    await graceful.ready("a")
    await reboot(graceful)
    obj = await graceful.phase("a", "Failed")
    assert obj["status"]["reason"] == "Terminated", "fact S6: with graceful shutdown pods end Failed/Terminated"
    assert "imminent node shutdown" in obj["status"]["message"]
    config = await graceful.client.request("GET", "/api/v1/nodes/linux-1/proxy/configz")
    assert config["kubeletconfig"]["shutdownGracePeriod"] == "30s"
    disruption = {item["type"]: item for item in obj["status"]["conditions"]}["DisruptionTarget"]
    assert (disruption["status"], disruption["reason"]) == ("True", "TerminationByKubelet")


async def test_a_node_that_is_going_down_takes_no_pods(cluster: Cluster) -> None:
    cluster.node("win-1").going_down = True
    await cluster.run("late", node="win-1")
    assert (await cluster.phase("late", "Failed"))["status"]["reason"] == "NodeShutdown"


@pytest.fixture
async def two_parts() -> AsyncIterator[Cluster]:
    async with small_cluster(settings=Settings(shutdown_grace=1200.0, shutdown_grace_critical=600.0)) as running:
        yield running


async def test_critical_pods_outlive_the_others_in_a_graceful_shutdown(two_parts: Cluster) -> None:
    critical = {"priorityClassName": "system-node-critical", "priority": 2_000_001_000}
    two_parts.objects.create("priorityclasses", {"metadata": {"name": "system-node-critical"}, "value": 2_000_001_000})
    await two_parts.run("ordinary", "stubborn", node="win-1", terminationGracePeriodSeconds=300)
    await two_parts.run("critical", "stubborn", node="win-1", terminationGracePeriodSeconds=300, **critical)
    await two_parts.ready("ordinary")
    await two_parts.ready("critical")
    await reboot(two_parts)
    ends = {}
    for name in ("ordinary", "critical"):
        ended = await two_parts.phase(name, "Failed")
        assert ended["status"]["reason"] == "Terminated"
        ends[name] = datetime.fromisoformat(container_state(ended)["state"]["terminated"]["finishedAt"])
    grace = two_parts.clock.wall(300)
    later = (ends["critical"] - ends["ordinary"]).total_seconds()
    assert later > grace - 1, "its own grace begins when the ordinary pods are gone; times are in whole seconds"

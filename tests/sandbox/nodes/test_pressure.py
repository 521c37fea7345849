"""What a node keeps for itself, what it counts, and what it does when memory runs short."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sandbox.nodes.small_cluster import TOKEN, Cluster, pod
from winready_sandbox.nodes import eviction
from winready_sandbox.nodes.configuration import Settings
from winready_sandbox.quantity import parse

Object = dict[str, Any]
GIBIBYTE = 2**30


async def stats(cluster: Cluster, node: str, name: str) -> Object:
    summary = await cluster.client.request("GET", f"/api/v1/nodes/{node}/proxy/stats/summary")
    return next(each for each in summary["pods"] if each["podRef"]["name"] == name)


async def test_allocatable_memory_is_what_evictions_leave(cluster: Cluster) -> None:
    for name, kept in (("win-1", "500Mi"), ("linux-1", "100Mi")):
        config = await cluster.client.request("GET", f"/api/v1/nodes/{name}/proxy/configz")
        assert config["kubeletconfig"]["evictionHard"]["memory.available"] == kept
        status = (await cluster.client.get("nodes", name))["status"]
        assert parse(status["capacity"]["memory"]) - parse(status["allocatable"]["memory"]) == parse(kept)


def test_windows_evicted_nobody_before_1_31() -> None:
    assert Settings(version="v1.30.4").memory_threshold("windows") == 0
    assert Settings(version="v1.31.0").memory_threshold("windows") == 500 * 2**20
    assert Settings(version="v1.30.4").memory_threshold("linux") == 100 * 2**20


@pytest.mark.virtual_time
async def test_the_node_reads_its_meters_itself_so_the_first_question_gets_a_rate(cluster: Cluster) -> None:
    await cluster.run("busy", "burn", "4", "pause", node="win-1", container={"resources": {"limits": {"cpu": "500m"}}})
    await cluster.ready("busy")
    cluster.node("win-1").statistics.read()
    await cluster.clock.sleep(20)
    cores = (await stats(cluster, "win-1", "busy"))["cpu"]["usageNanoCores"] / 1e9
    assert 0.4 < cores < 0.7, "fact H1: 0.52 to 0.60 core for a limit of 0.5"


async def test_the_commit_charge_of_a_windows_machine_is_reported(cluster: Cluster) -> None:
    for node, expected in (("win-1", ["pods", "windows-global-commit-memory"]), ("linux-1", ["pods"])):
        summary = await cluster.client.request("GET", f"/api/v1/nodes/{node}/proxy/stats/summary")
        assert [each["name"] for each in summary["node"]["systemContainers"]] == expected


async def test_started_and_failed_containers_are_counted_by_kind(cluster: Cluster) -> None:
    options = {"windowsOptions": {"hostProcess": True, "runAsUserName": "NT AUTHORITY\\SYSTEM"}}
    wrong = {"securityContext": {"windowsOptions": {"runAsUserName": "opr-nobody"}}}
    spec = pod("init", node="win-1", hostNetwork=True, securityContext=options, restartPolicy="Never")
    spec["spec"]["initContainers"] = [{**spec["spec"]["containers"][0], "name": "first", **wrong}]
    await cluster.create(spec)
    await cluster.run("plain", "exit", "0", node="win-1", restartPolicy="Never")
    await cluster.run("wrong", node="win-1", container=wrong, restartPolicy="Never")
    await cluster.phase("init", "Failed")
    await cluster.phase("plain", "Succeeded")
    await cluster.phase("wrong", "Failed")
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with cluster.http.get(f"{cluster.url}/api/v1/nodes/win-1/proxy/metrics", headers=headers) as response:
        lines = dict(line.rsplit(" ", 1) for line in (await response.text()).splitlines() if line[0] != "#")
    started, hosted = "kubelet_started_containers", "kubelet_started_host_process_containers"
    ordinary, first = 'container_type="container"', 'container_type="init_container"'
    error = 'code="RunContainerError"'
    assert lines[f"{started}_total{{{ordinary}}}"] == "2"
    assert lines[f"{started}_total{{{first}}}"] == lines[f"{hosted}_total{{{first}}}"] == "1"
    assert lines[f"{started}_errors_total{{{error},{ordinary}}}"] == "1"
    assert lines[f"{hosted}_errors_total{{{error},{first}}}"] == "1"
    assert f"{hosted}_total{{{ordinary}}}" not in lines, "no ordinary HostProcess container was started"


async def pressure(cluster: Cluster) -> str:
    conditions = (await cluster.client.get("nodes", "win-1"))["status"]["conditions"]
    return next(str(each["status"]) for each in conditions if each["type"] == "MemoryPressure")


async def test_short_of_memory_a_node_evicts_whoever_is_furthest_over_his_request(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eviction, "TRANSITION", 1e9)
    node = cluster.node("win-1")
    modest = {"resources": {"requests": {"memory": "3Gi"}}}
    await cluster.run("modest", "allocate", str(2 * GIBIBYTE), "pause", node="win-1", container=modest)
    await cluster.run("small", node="win-1")
    await cluster.run("greedy", "allocate", str(12 * GIBIBYTE), "pause", node="win-1")
    for name in ("modest", "small", "greedy"):
        await cluster.ready(name)
    node.machine.memory.take(node.machine.memory_bytes - node.machine.memory.used - 400 * 2**20)
    await node.evictions.look()
    ended = await cluster.phase("greedy", "Failed")
    assert ended["status"]["reason"] == "Evicted"
    words = r"The node was low on resource: memory\. Threshold quantity: 500Mi, available: [34]\d\dMi\."
    assert re.match(words, ended["status"]["message"])
    assert "DisruptionTarget" in {each["type"] for each in ended["status"]["conditions"]}
    await cluster.event("greedy", "Evicted", "Container main was using")
    await cluster.event("win-1", "EvictionThresholdMet")
    for name in ("modest", "small"):
        assert (await cluster.pod(name))["status"]["phase"] == "Running"
    assert await pressure(cluster) == "True"

    await cluster.run("late", node="win-1")
    assert (await cluster.phase("late", "Failed"))["status"]["reason"] == "Evicted", "it asks for no memory"
    await cluster.run("honest", node="win-1", container={"resources": {"requests": {"memory": "64Mi"}}})
    await cluster.ready("honest")

    await node.evictions.look()
    assert node.evictions.pressure, "it is reported until it has been gone for a while"
    monkeypatch.setattr(eviction, "TRANSITION", 0.0)
    await node.evictions.look()
    assert await pressure(cluster) == "False"

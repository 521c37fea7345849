"""Nodes join, and say of themselves what real ones say."""

from __future__ import annotations

import pytest

from sandbox.nodes.small_cluster import Cluster


async def test_nodes_register_with_what_tells_them_apart(cluster: Cluster) -> None:
    nodes = {node["metadata"]["name"]: node for node in (await cluster.client.list("nodes"))[0]}
    assert set(nodes) == {"linux-1", "win-1", "win-2"}
    windows, linux = nodes["win-1"], nodes["linux-1"]
    labels = windows["metadata"]["labels"]
    assert labels["kubernetes.io/os"] == labels["beta.kubernetes.io/os"] == "windows"
    assert labels["node.kubernetes.io/windows-build"] == "10.0.20348"
    assert nodes["win-2"]["metadata"]["labels"]["node.kubernetes.io/windows-build"] == "10.0.17763"
    assert "node.kubernetes.io/windows-build" not in linux["metadata"]["labels"]
    info = windows["status"]["nodeInfo"]
    assert info["kernelVersion"].startswith("10.0.20348.")
    assert info["osImage"] == "Windows Server 2022 Datacenter"
    assert info["bootID"].isdigit(), "fact: the boot id of a Windows node is a counter"
    assert info["containerRuntimeVersion"].startswith("containerd://")
    assert windows["status"]["addresses"] == [{"type": "InternalIP", "address": "10.250.0.2"}]
    assert windows["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"] == 10250
    conditions = {item["type"]: item["status"] for item in linux["status"]["conditions"]}
    assert conditions == {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"}
    assert linux["spec"]["podCIDRs"] == ["10.244.1.0/24"]


async def test_leases_are_renewed(cluster: Cluster) -> None:
    first = await cluster.client.get("leases", "win-1", "kube-node-lease")
    assert first["spec"]["holderIdentity"] == "win-1"
    async for change in cluster.client.watch("leases", "kube-node-lease", fields="metadata.name=win-1"):
        if change.type == "MODIFIED" and change.object["spec"]["renewTime"] != first["spec"]["renewTime"]:
            break


async def test_a_node_comes_back_under_its_name(cluster: Cluster) -> None:
    before = await cluster.client.get("nodes", "win-1")
    await cluster.node("win-1").stop()
    foreign = {"type": "NetworkUnavailable", "status": "False", "reason": "CalicoIsUp"}
    lost = {"type": "Ready", "status": "Unknown", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    conditions = {"status": {"conditions": [foreign, lost]}}
    await cluster.client.patch("nodes", "win-1", conditions, subresource="status")
    await cluster.node("win-1").start()
    await cluster.node("win-1").registered.wait()
    after = await cluster.client.get("nodes", "win-1")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    found = {item["type"]: item for item in after["status"]["conditions"]}
    assert found["NetworkUnavailable"]["reason"] == "CalicoIsUp", "what others say about a node stays"
    assert found["Ready"]["status"] == "True"
    assert found["Ready"]["lastTransitionTime"] > "2026", "ready again is a transition"


@pytest.mark.virtual_time
async def test_a_worker_that_does_not_join_is_not_there_until_it_is_healed(cluster: Cluster) -> None:
    node = cluster.node("win-1")
    await node.stop()
    await cluster.client.delete("nodes", "win-1")
    node.defects.kubelet.does_not_join = True
    await node.start()
    await cluster.clock.sleep(60)
    assert not node.registered.is_set()
    node.defects.kubelet.does_not_join = False
    await node.heed_defects()
    await node.registered.wait()
    assert (await cluster.client.get("nodes", "win-1"))["metadata"]["name"] == "win-1"

"""Defects of a node that no other test needs: off they change nothing, on they can be seen from outside."""

from __future__ import annotations

import pytest

from sandbox.nodes.small_cluster import IMAGE, Cluster, is_ready, pod
from winready_sandbox.apiclient import ApiFailure
from winready_sandbox.machine.domain import Domain


async def test_a_node_claims_another_build(cluster: Cluster) -> None:
    node = cluster.node("win-1")
    node.defects.kubelet.reports_build = "10.0.17763"
    await node.stop()
    await node.start()
    await node.registered.wait()
    found = await cluster.client.get("nodes", "win-1")
    assert found["metadata"]["labels"]["node.kubernetes.io/windows-build"] == "10.0.17763"
    assert found["status"]["nodeInfo"]["kernelVersion"].startswith("10.0.17763.")


async def test_starts_are_slow(cluster: Cluster) -> None:
    cluster.node("linux-1").defects.kubelet.slow_start_factor = 40.0
    begun = cluster.clock.now()
    await cluster.run("a")
    await cluster.ready("a")
    assert cluster.clock.now() - begun > 28, "0.7 s at least for sandbox and container, forty times"


async def test_every_third_pod_is_lost(cluster: Cluster) -> None:
    cluster.node("linux-1").defects.kubelet.loses_pods = True
    for name in ("a", "b", "c", "d"):
        await cluster.run(name)
        if name != "c":
            await cluster.ready(name)
    assert (await cluster.pod("c"))["status"]["phase"] == "Pending"
    await cluster.client.delete("pods", "c", "default")
    await cluster.gone("c")


async def test_probes_are_ignored(cluster: Cluster) -> None:
    probe = {"readinessProbe": {"tcpSocket": {"port": 9}}}
    await cluster.run("honest", container=probe)
    await cluster.event("honest", "Unhealthy")
    cluster.node("linux-1").defects.kubelet.ignores_probes = True
    await cluster.run("a", container=probe)
    await cluster.ready("a")


async def test_statistics_and_exec_fail(cluster: Cluster) -> None:
    node = cluster.node("win-1")
    await cluster.run("a", node="win-1")
    await cluster.ready("a")
    node.defects.kubelet.stats_unavailable = True
    with pytest.raises(ApiFailure):
        await cluster.client.request("GET", "/api/v1/nodes/win-1/proxy/stats/summary")
    node.defects.runtime.exec_broken = True
    code, _, message = await cluster.exec("a", "/agnhost", "print", "x")
    assert code == -1
    assert "failed to create exec" in message


async def test_the_grace_period_is_ignored(cluster: Cluster) -> None:
    cluster.node("linux-1").defects.kubelet.graceful_stop_ignored = True
    await cluster.run("a", "stubborn", terminationGracePeriodSeconds=10**6)
    await cluster.ready("a")
    await cluster.client.delete("pods", "a", "default")
    await cluster.gone("a")


async def test_volumes_are_not_shared_or_empty(cluster: Cluster) -> None:
    defects = cluster.node("linux-1").defects.volumes
    defects.not_shared = True
    mounts = [{"name": "v", "mountPath": "/share"}]
    spec = pod("a", "write", "/share/f", "x", "pause", volumes=[{"name": "v", "emptyDir": {}}])
    spec["spec"]["containers"][0]["volumeMounts"] = mounts
    spec["spec"]["containers"].append({"name": "b", "image": IMAGE, "args": ["pause"], "volumeMounts": mounts})
    await cluster.create(spec)
    await cluster.ready("a")
    assert (await cluster.exec("a", "/agnhost", "cat", "/share/f", container="b"))[0] == 1
    defects.not_shared = False
    defects.empty = True
    await cluster.client.create("configmaps", {"metadata": {"name": "cm"}, "data": {"k": "v"}}, "default")
    spec = pod("c", volumes=[{"name": "v", "configMap": {"name": "cm"}}])
    spec["spec"]["containers"][0]["volumeMounts"] = mounts
    await cluster.create(spec)
    assert is_ready(await cluster.ready("c"))
    assert (await cluster.exec("c", "/agnhost", "cat", "/share/k"))[:2] == (0, "")


async def test_a_credential_spec_for_everybody(cluster: Cluster) -> None:
    node = cluster.node("win-1")
    node.machine.domain = Domain("acme.com", "ACME", accounts=("webapp01",))
    await cluster.run("before", node="win-1")
    before = cluster.worker(await cluster.ready("before")).runs["main"].instance
    node.defects.runtime.credential_spec_for_all = True
    await cluster.run("a", node="win-1")
    after = cluster.worker(await cluster.ready("a")).runs["main"].instance
    assert before is not None
    assert after is not None
    assert before.metered is not None
    assert before.metered.credential_spec is None
    assert after.metered is not None
    assert after.metered.credential_spec is not None

"""The scheduler places pods as the real one does, and says in its words why it cannot."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest

from sandbox.controllers.cluster import POD_SPEC, Cluster, deployment, running
from winready_sandbox.api.objects import Object

HOST = "kubernetes.io/hostname"


def node_of(cluster: Cluster, name: str) -> str:
    return str(cluster.get("pods", name)["spec"].get("nodeName") or "")


async def placed(cluster: Cluster, name: str) -> str:
    return await cluster.until(lambda: node_of(cluster, name), f"{name} placed")


def refused(cluster: Cluster, name: str) -> Object | None:
    conditions = cluster.get("pods", name)["status"].get("conditions") or ()
    return next((c for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), None)


def decided(cluster: Cluster, name: str) -> str:
    return node_of(cluster, name) or (refused(cluster, name) or {}).get("message", "")


async def cordon(cluster: Cluster, *names: str) -> None:
    """Cordon nodes, and return when the scheduler, which hears of nodes and of pods apart, knows."""
    for name in names:
        cluster.client.patch("nodes", name, {"spec": {"unschedulable": True}})
    for number in range(1000):
        probe = f"probe-{number}"
        cluster.pod(probe, nodeSelector={HOST: names[0]})
        if f"{len(names)} node(s) were unschedulable" in await cluster.until(partial(decided, cluster, probe)):
            return
    raise AssertionError("the scheduler never hears of it")


async def refusal(cluster: Cluster, name: str) -> str:
    """The event's message, which the pod's condition repeats."""
    found = await cluster.until(lambda: refused(cluster, name))
    assert found["reason"] == "Unschedulable"
    event = [each for each in cluster.events("FailedScheduling") if each["involvedObject"]["name"] == name][-1]
    assert event["type"] == "Warning"
    assert event["source"]["component"] == "default-scheduler"
    assert event["message"] == found["message"]
    return str(found["message"])


def container(**requests: str) -> list[Object]:
    return [{**POD_SPEC["containers"][0], "resources": {"requests": requests}}]


def node_affinity(*expressions: Object, weight: int = 0) -> Object:
    term = {"matchExpressions": list(expressions)}
    if weight:
        preferred = [{"weight": weight, "preference": term}]
        return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def pod_term(app: str, key: str = HOST) -> list[Object]:
    return [{"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}]


async def test_a_pod_that_fits_is_bound_and_told_of() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.pod("web")
        assert await placed(cluster, "web") == "one"
        (event,) = await cluster.until(lambda: cluster.events("Scheduled"))
        assert event["message"] == "Successfully assigned default/web to one"
        assert event["involvedObject"]["uid"] == cluster.get("pods", "web")["metadata"]["uid"]


async def test_insufficient_resources_and_selectors_are_counted_per_node() -> None:
    async with running(Cluster()) as cluster:
        for name in ("one", "two"):
            cluster.node(name, labels={"disk": "ssd"}, allocatable={"cpu": "2"})
        for name in ("three", "four"):
            cluster.node(name)
        for name in ("a", "b"):
            cluster.pod(name, containers=container(cpu="1500m"), nodeSelector={"disk": "ssd"})
            await placed(cluster, name)
        cluster.pod("web", containers=container(cpu="1"), nodeSelector={"disk": "ssd"})
        assert await refusal(cluster, "web") == (
            "0/4 nodes are available: 2 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector. "
            "preemption: 0/4 nodes are available: 2 No preemption victims found for incoming pod, "
            "2 Preemption is not helpful for scheduling."
        )


async def test_what_no_node_could_ever_hold_is_not_helped_by_preemption() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.pod("huge", containers=container(cpu="100", memory="1Ti"))
        assert await refusal(cluster, "huge") == (
            "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory. "
            "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        )


@pytest.mark.parametrize(
    ("minor", "text"),
    [
        (36, "node(s) had untolerated taint(s)"),
        (30, "node(s) had untolerated taint {os: windows}"),
        (23, "node(s) had taint {os: windows}, that the pod didn't tolerate"),
    ],
)
async def test_taints_are_named_as_each_version_does(minor: int, text: str) -> None:
    async with running(Cluster(minor)) as cluster:
        cluster.node("win", taints=[{"key": "os", "value": "windows", "effect": "NoSchedule"}])
        await cluster.until(lambda: len(cluster.get("nodes", "win")["spec"]["taints"]) == 1)
        cluster.pod("web")
        tail = "" if minor < 24 else " preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        assert await refusal(cluster, "web") == f"0/1 nodes are available: 1 {text}.{tail}"
        toleration = {"key": "os", "operator": "Equal", "value": "windows", "effect": "NoSchedule"}
        cluster.pod("tolerant", tolerations=[toleration])
        assert await placed(cluster, "tolerant") == "win"


async def test_host_ports_pod_counts_and_cordons_are_respected() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one", allocatable={"pods": "2"})
        port = [{**POD_SPEC["containers"][0], "ports": [{"containerPort": 80, "hostPort": 8080}]}]
        cluster.pod("first", containers=port)
        await placed(cluster, "first")
        cluster.pod("second", containers=port)
        assert "1 node(s) didn't have free ports for the requested pod ports." in await refusal(cluster, "second")
        cluster.pod("third")
        await placed(cluster, "third")
        cluster.pod("fourth")
        assert "1 Too many pods." in await refusal(cluster, "fourth")
        await cordon(cluster, "one")
        cluster.pod("fifth")
        assert "1 node(s) were unschedulable." in await refusal(cluster, "fifth")


async def test_node_affinity_requires_and_prefers() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one", labels={"size": "3", "zone": "a"})
        cluster.node("two", labels={"size": "9", "zone": "b"})
        larger = {"key": "size", "operator": "Gt", "values": ["5"]}
        cluster.pod("required", affinity=node_affinity(larger))
        assert await placed(cluster, "required") == "two"
        for number in range(4):
            in_a = {"key": "zone", "operator": "In", "values": ["a"]}
            cluster.pod(f"preferred-{number}", affinity=node_affinity(in_a, weight=100))
            assert await placed(cluster, f"preferred-{number}") == "one"


async def test_pods_keep_apart_and_together() -> None:
    async with running(Cluster()) as cluster:
        for name, zone in (("one", "a"), ("two", "b")):
            cluster.node(name, labels={"zone": zone})
        apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": pod_term("db")}}
        for name in ("db-0", "db-1"):
            cluster.pod(name, {"app": "db"}, affinity=apart)
        assert {await placed(cluster, "db-0"), await placed(cluster, "db-1")} == {"one", "two"}
        cluster.pod("db-2", {"app": "db"}, affinity=apart)
        assert "2 node(s) didn't match pod anti-affinity rules." in await refusal(cluster, "db-2")
        cluster.pod("plain-db", {"app": "db"})
        assert "2 node(s) didn't satisfy existing pods anti-affinity rules." in await refusal(cluster, "plain-db")
        together = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": pod_term("cache", "zone")}}
        cluster.pod("near", affinity=together)
        assert "2 node(s) didn't match pod affinity rules." in await refusal(cluster, "near")
        cluster.pod("cache", {"app": "cache"}, nodeSelector={"zone": "b"})
        assert await placed(cluster, "near") == "two"


async def test_spread_constraints_are_kept() -> None:
    async with running(Cluster()) as cluster:
        for name in ("one", "two", "three"):
            cluster.node(name)
        constraint: Object = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule"}
        constraint["labelSelector"] = {"matchLabels": {"app": "web"}}
        for number in range(6):
            cluster.pod(f"web-{number}", {"app": "web"}, topologySpreadConstraints=[constraint])
            await placed(cluster, f"web-{number}")
        assert Counter(node_of(cluster, f"web-{number}") for number in range(6)) == {"one": 2, "two": 2, "three": 2}
        await cordon(cluster, "one", "two")
        cluster.pod("web-6", {"app": "web"}, topologySpreadConstraints=[constraint])
        await placed(cluster, "web-6")
        cluster.pod("web-7", {"app": "web"}, topologySpreadConstraints=[constraint])
        assert "1 node(s) didn't match pod topology spread constraints" in await refusal(cluster, "web-7")


async def test_replicas_spread_over_equal_nodes() -> None:
    async with running(Cluster()) as cluster:
        for name in ("one", "two", "three", "four"):
            cluster.node(name)
        cluster.client.create("deployments", deployment(replicas=8), "default")
        await cluster.until(lambda: sum(bool(p["spec"].get("nodeName")) for p in cluster.pods()) == 8)
        assert Counter(p["spec"]["nodeName"] for p in cluster.pods()) == dict.fromkeys(
            ("one", "two", "three", "four"), 2
        )


async def test_what_waits_is_scheduled_as_soon_as_it_fits() -> None:
    async with running(Cluster()) as cluster:
        cluster.pod("web", nodeSelector={"gpu": "yes"})
        conditions = "no nodes available to schedule pods"
        assert await refusal(cluster, "web") == conditions
        cluster.node("one")
        await cluster.until(lambda: any("0/1 nodes" in e["message"] for e in cluster.events("FailedScheduling")))
        cluster.client.patch("nodes", "one", {"metadata": {"labels": {"gpu": "yes"}}})
        assert await placed(cluster, "web") == "one"


async def test_room_is_given_back_when_a_pod_finishes_or_goes() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one", allocatable={"cpu": "1"})
        for name in ("first", "second", "third"):
            cluster.pod(name, containers=container(cpu="1"))
        await placed(cluster, "first")
        cluster.client.delete("pods", "first", "default")
        await cluster.until(lambda: node_of(cluster, "second") or node_of(cluster, "third"))
        name = next(name for name in ("second", "third") if node_of(cluster, name))
        await cluster.until(lambda: cluster.get("pods", name)["status"]["phase"] == "Running")
        cluster.finish(name, "Succeeded")
        await placed(cluster, "third" if name == "second" else "second")


async def test_higher_priority_goes_first() -> None:
    cluster = Cluster()
    for name, value in (("low", 1), ("high", 1000)):
        cluster.client.create("priorityclasses", {"metadata": {"name": name}, "value": value})
    async with running(cluster):
        await cluster.until(lambda: cluster.find("serviceaccounts", "default"))
        for number in range(3):
            cluster.pod(f"low-{number}", priorityClassName="low", containers=container(cpu="1"))
        cluster.pod("high", priorityClassName="high", containers=container(cpu="1"))
        await cluster.until(lambda: len(cluster.events("FailedScheduling")) >= 4)
        cluster.node("one", allocatable={"cpu": "1"})
        await placed(cluster, "high")
        assert not any(node_of(cluster, f"low-{number}") for number in range(3))


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"initContainers": [{"name": "i", "image": "x", "resources": {"requests": {"cpu": "3"}}}]}, 3000),
        ({"overhead": {"cpu": "250m"}}, 1250),
        (
            {
                "initContainers": [
                    {"name": "s", "image": "x", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
                    {"name": "i", "image": "x", "resources": {"requests": {"cpu": "1500m"}}},
                ]
            },
            2500,
        ),
    ],
)
def test_requests_count_init_containers_sidecars_and_overhead(spec: Object, cpu: int) -> None:
    from winready_sandbox.controllers.scheduling.resources import pod_requests

    assert pod_requests({"containers": container(cpu="1"), **spec})["cpu"] == cpu


async def test_gated_and_foreign_pods_are_left_alone() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.pod("gated", schedulingGates=[{"name": "example.com/wait"}])
        cluster.pod("foreign", schedulerName="another")
        cluster.pod("plain")
        await placed(cluster, "plain")
        await cluster.settle()
        assert not node_of(cluster, "foreign")
        conditions = cluster.get("pods", "gated")["status"]["conditions"]
        assert [c["reason"] for c in conditions] == ["SchedulingGated"]
        cluster.client.patch("pods", "gated", {"spec": {"schedulingGates": None}}, "default")
        await placed(cluster, "gated")


async def test_the_same_refusal_is_one_event_that_counts() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.pod("web", nodeSelector={"gpu": "yes"})
        await refusal(cluster, "web")
        for number in range(3):
            cluster.client.patch("nodes", "one", {"metadata": {"labels": {"try": str(number)}}})
            await cluster.until(lambda: cluster.events("FailedScheduling")[0]["count"] > number + 1)  # noqa: B023
        assert len(cluster.events("FailedScheduling")) == 1


async def test_claims_hold_a_pod_until_they_are_bound() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.node("two")
        volumes: list[Any] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        cluster.pod("web", volumes=volumes)
        assert (await refusal(cluster, "web")).startswith(
            '0/2 nodes are available: persistentvolumeclaim "data" not found. preemption: 0/2 nodes'
        )
        spec: Object = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
        claim = {**spec, "resources": {"requests": {"storage": "1Gi"}}}
        cluster.client.create("persistentvolumeclaims", {"metadata": {"name": "data"}, "spec": claim}, "default")
        await cluster.until(lambda: "unbound immediate" in cluster.events("FailedScheduling")[-1]["message"])
        affinity = node_affinity({"key": HOST, "operator": "In", "values": ["two"]})["nodeAffinity"]
        required = {"required": affinity["requiredDuringSchedulingIgnoredDuringExecution"]}
        volume = {**spec, "capacity": {"storage": "2Gi"}, "hostPath": {"path": "/data"}, "nodeAffinity": required}
        cluster.client.create("persistentvolumes", {"metadata": {"name": "disk"}, "spec": volume})
        assert await placed(cluster, "web") == "two"
        assert cluster.get("persistentvolumeclaims", "data")["spec"]["volumeName"] == "disk"
        assert cluster.get("persistentvolumes", "disk")["status"]["phase"] == "Bound"
        cluster.client.delete("pods", "web", "default")
        cluster.client.delete("persistentvolumeclaims", "data", "default")
        await cluster.until(lambda: cluster.get("persistentvolumes", "disk")["status"]["phase"] == "Released")

"""StatefulSets, DaemonSets and Jobs do what their real controllers do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sandbox.controllers.cluster import POD_SPEC, Cluster, running
from winready_sandbox.api.objects import Object
from winready_sandbox.controllers.cronjob import Schedule


def workload(name: str, **spec: Any) -> Object:
    template = {"metadata": {"labels": {"app": name}}, "spec": POD_SPEC}
    return {
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template, **spec},
    }


def names(pods: list[Object]) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in pods)


def images(cluster: Cluster) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in cluster.pods()}


def set_image(cluster: Cluster, resource: str, name: str, image: str) -> None:
    path = "/spec/template/spec/containers/0/image"
    cluster.client.patch(resource, name, [{"op": "replace", "path": path, "value": image}], "default", kind="json")


async def test_a_stateful_set_starts_its_pods_in_order_with_lasting_names() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.broken.add("db-1")
        cluster.client.create("statefulsets", workload("db", replicas=3, serviceName="db"), "default")
        await cluster.until(lambda: len(cluster.pods()) == 2)
        await cluster.settle()
        assert names(cluster.pods()) == ["db-0", "db-1"]
        cluster.pod_status(cluster.get("pods", "db-1"))
        await cluster.until(lambda: cluster.get("statefulsets", "db")["status"].get("readyReplicas") == 3)
        pod = cluster.get("pods", "db-2")
        assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "2"
        assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-2", "db")
        cluster.client.delete("pods", "db-0", "default")
        uid = cluster.get("pods", "db-2")["metadata"]["uid"]
        await cluster.until(
            lambda: (cluster.find("pods", "db-0") or {"status": {}})["status"].get("phase") == "Running"
        )
        assert cluster.get("pods", "db-2")["metadata"]["uid"] == uid


async def test_a_stateful_set_updates_from_the_last_pod_down_to_its_partition() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.client.create("statefulsets", workload("db", replicas=3), "default")
        await cluster.until(lambda: cluster.get("statefulsets", "db")["status"].get("readyReplicas") == 3)
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
        cluster.client.patch("statefulsets", "db", {"spec": {"updateStrategy": strategy}}, "default")
        set_image(cluster, "statefulsets", "db", "registry.k8s.io/pause:3.11")
        await cluster.until(lambda: cluster.get("statefulsets", "db")["status"].get("updatedReplicas") == 2)
        await cluster.settle()
        old, new = "registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.11"
        assert images(cluster) == {"db-0": old, "db-1": new, "db-2": new}
        status = cluster.get("statefulsets", "db")["status"]
        assert status["currentRevision"] != status["updateRevision"]
        cluster.client.patch(
            "statefulsets", "db", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}, "default"
        )
        await cluster.until(lambda: set(images(cluster).values()) == {new} and len(images(cluster)) == 3)
        await cluster.until(
            lambda: cluster.get("statefulsets", "db")["status"]["currentRevision"] == status["updateRevision"]
        )


async def test_a_stateful_set_makes_claims_that_outlive_its_pods() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        templates = [{"metadata": {"name": "data"}, "spec": claim}]
        made = workload("db", replicas=2, volumeClaimTemplates=templates, podManagementPolicy="Parallel")
        cluster.client.create("statefulsets", made, "default")
        await cluster.until(lambda: len(cluster.pods()) == 2)
        assert names(cluster.client.list("persistentvolumeclaims", "default")[0]) == ["data-db-0", "data-db-1"]
        volumes = cluster.get("pods", "db-1")["spec"]["volumes"]
        assert {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}} in volumes
        cluster.client.patch("statefulsets", "db", {"spec": {"replicas": 0}}, "default")
        await cluster.until(lambda: not cluster.pods())
        assert len(cluster.client.list("persistentvolumeclaims", "default")[0]) == 2


async def test_a_daemon_set_has_one_pod_on_every_node_it_is_for() -> None:
    async with running(Cluster()) as cluster:
        for name, system in (("one", "linux"), ("two", "linux"), ("win", "windows")):
            cluster.node(name, labels={"kubernetes.io/os": system})
        made = workload("agent")
        made["spec"]["template"]["spec"] = {**POD_SPEC, "nodeSelector": {"kubernetes.io/os": "linux"}}
        cluster.client.create("daemonsets", made, "default")
        await cluster.until(lambda: cluster.get("daemonsets", "agent")["status"].get("numberAvailable") == 2)
        assert {pod["spec"]["nodeName"] for pod in cluster.pods()} == {"one", "two"}
        cluster.node("three")
        await cluster.until(lambda: cluster.get("daemonsets", "agent")["status"].get("numberReady") == 3)
        cluster.client.patch("nodes", "one", {"spec": {"unschedulable": True}})
        await cluster.settle()
        assert len(cluster.pods()) == 3
        cluster.client.patch("nodes", "two", {"metadata": {"labels": {"kubernetes.io/os": "windows"}}})
        await cluster.until(lambda: {pod["spec"].get("nodeName") for pod in cluster.pods()} == {"one", "three"})
        await cluster.until(lambda: cluster.get("daemonsets", "agent")["status"]["numberMisscheduled"] == 0)
        assert cluster.get("daemonsets", "agent")["status"]["desiredNumberScheduled"] == 2


@pytest.mark.virtual_time
async def test_pods_of_a_daemon_set_that_a_node_refuses_are_replaced_ever_more_rarely() -> None:
    async with running(Cluster(speed=1.0)) as cluster:
        seen: set[str] = set()

        def refuse(old: Object | None, new: Object | None) -> None:
            if new is not None and new["status"]["phase"] == "Running":
                seen.add(new["metadata"]["uid"])
                cluster.finish(new["metadata"]["name"], "Failed")

        cluster.context.pods.add_handler(refuse)
        cluster.node("one")
        cluster.client.create("daemonsets", workload("agent"), "default")
        await asyncio.sleep(20)
        few = len(seen)
        await asyncio.sleep(200)
        assert 3 <= few < len(seen) <= 2 * few


async def test_a_daemon_set_replaces_its_pods_one_by_one() -> None:
    async with running(Cluster()) as cluster:
        for name in ("one", "two", "three"):
            cluster.node(name)
        cluster.client.create("daemonsets", workload("agent"), "default")
        await cluster.until(lambda: cluster.get("daemonsets", "agent")["status"].get("numberAvailable") == 3)
        fewest = [3]

        def watch(old: Object | None, new: Object | None) -> None:
            alive = [p for p in cluster.context.pods if not p["metadata"].get("deletionTimestamp")]
            ready = [c for p in alive for c in p["status"].get("conditions", ()) if c["type"] == "Ready"]
            fewest.append(sum(c["status"] == "True" for c in ready))

        cluster.context.pods.add_handler(watch)
        set_image(cluster, "daemonsets", "agent", "registry.k8s.io/pause:3.11")
        await cluster.until(lambda: set(images(cluster).values()) == {"registry.k8s.io/pause:3.11"})
        await cluster.until(lambda: cluster.get("daemonsets", "agent")["status"].get("updatedNumberScheduled") == 3)
        await cluster.until(lambda: cluster.get("daemonsets", "agent")["status"].get("numberAvailable") == 3)
        assert min(fewest) >= 2


def job(name: str = "work", **spec: Any) -> Object:
    template = {"spec": {**POD_SPEC, "restartPolicy": "Never"}}
    return {"metadata": {"name": name}, "spec": {"template": template, **spec}}


def active(cluster: Cluster) -> list[str]:
    return names([pod for pod in cluster.pods() if pod["status"]["phase"] == "Running"])


async def finish(cluster: Cluster, count: int, phase: str = "Succeeded") -> None:
    """Let so many running pods end."""
    running_now = await cluster.until(lambda: active(cluster) if len(active(cluster)) >= count else None)
    for name in running_now[:count]:
        cluster.finish(name, phase)


def outcome(cluster: Cluster, name: str = "work") -> tuple[str, str] | None:
    conditions = cluster.get("jobs", name).get("status", {}).get("conditions", ())
    return next(((c["type"], c["reason"]) for c in conditions if c["type"] in ("Complete", "Failed")), None)


async def test_a_job_runs_as_many_pods_as_asked_for_at_a_time() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.client.create("jobs", job(parallelism=2, completions=3), "default")
        await finish(cluster, 2)
        await cluster.until(lambda: cluster.get("jobs", "work")["status"].get("succeeded") == 2)
        await finish(cluster, 1)
        assert await cluster.until(lambda: outcome(cluster)) == ("Complete", "CompletionsReached")
        status = cluster.get("jobs", "work")["status"]
        assert status["succeeded"] == 3
        assert "active" not in status
        assert status["completionTime"]


async def test_a_job_gives_up_after_its_backoff_limit() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.client.create("jobs", job(backoffLimit=1), "default")
        await finish(cluster, 1, "Failed")
        await finish(cluster, 1, "Failed")
        assert await cluster.until(lambda: outcome(cluster)) == ("Failed", "BackoffLimitExceeded")
        assert cluster.get("jobs", "work")["status"]["failed"] == 2


@pytest.mark.parametrize("policy", ["Failed", "TerminatingOrFailed"])
async def test_a_pod_that_is_being_deleted_is_replaced_at_once_or_when_it_has_ended(policy: str) -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.client.create("jobs", job(backoffLimit=0, podReplacementPolicy=policy), "default")
        (name,) = await cluster.until(lambda: active(cluster))
        cluster.client.patch("pods", name, {"metadata": {"finalizers": ["example.com/slow"]}}, "default")
        cluster.client.delete("pods", name, "default", grace=30)
        await cluster.until(lambda: cluster.get("jobs", "work")["status"].get("terminating") == 1)
        await cluster.settle()
        assert len(cluster.pods()) == (1 if policy == "Failed" else 2)
        cluster.finish(name, "Failed")
        assert await cluster.until(lambda: outcome(cluster)) == ("Failed", "BackoffLimitExceeded")


async def test_a_job_past_its_deadline_fails_and_a_finished_one_is_removed_in_time() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.client.create("jobs", job(activeDeadlineSeconds=5, ttlSecondsAfterFinished=5), "default")
        assert await cluster.until(lambda: outcome(cluster)) == ("Failed", "DeadlineExceeded")
        await cluster.until(lambda: cluster.find("jobs", "work") is None)
        await cluster.until(lambda: not cluster.pods())


async def test_an_indexed_job_gives_each_pod_its_index() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.client.create("jobs", job(completions=3, parallelism=3, completionMode="Indexed"), "default")
        await cluster.until(lambda: len(active(cluster)) == 3)
        key = "batch.kubernetes.io/job-completion-index"
        indexes = {pod["metadata"]["annotations"][key]: pod for pod in cluster.pods()}
        assert sorted(indexes) == ["0", "1", "2"]
        assert indexes["1"]["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"
        assert indexes["1"]["spec"]["hostname"] == "work-1"
        await finish(cluster, 3)
        await cluster.until(lambda: outcome(cluster))
        assert cluster.get("jobs", "work")["status"]["completedIndexes"] == "0-2"


async def test_a_suspended_job_has_no_pods() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.client.create("jobs", job(suspend=True), "default")
        await cluster.settle()
        assert not cluster.pods()
        cluster.client.patch("jobs", "work", {"spec": {"suspend": False}}, "default")
        await finish(cluster, 1)
        await cluster.until(lambda: outcome(cluster))


async def test_a_cron_job_starts_jobs_every_cluster_minute() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        spec = {"schedule": "* * * * *", "concurrencyPolicy": "Forbid", "jobTemplate": {"spec": job()["spec"]}}
        cluster.client.create("cronjobs", {"metadata": {"name": "tick"}, "spec": spec}, "default")
        (made,) = await cluster.until(lambda: cluster.client.list("jobs", "default")[0])
        assert made["metadata"]["ownerReferences"][0]["kind"] == "CronJob"
        await cluster.until(lambda: cluster.get("cronjobs", "tick")["status"].get("active"))


def test_cron_expressions_are_read_as_cron_does() -> None:
    from datetime import datetime

    start = datetime(2026, 1, 30, 23, 59, 30)
    expected = {
        "*/15 * * * *": datetime(2026, 1, 31),
        "0 9-17/4 * * mon-fri": datetime(2026, 2, 2, 9),
        "30 4 1,15 * 5": datetime(2026, 2, 1, 4, 30),
        "@monthly": datetime(2026, 2, 1),
        "0 0 29 feb ?": datetime(2028, 2, 29),
    }
    assert {text: Schedule(text).after(start) for text in expected} == expected

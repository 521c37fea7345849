"""Deployments roll, scale, pause and go back as kubectl's rollout commands expect."""

from __future__ import annotations

from sandbox.controllers.cluster import POD_SPEC, Cluster, deployment, running
from winready_sandbox.api.objects import Object

IMAGE = "/spec/template/spec/containers/0/image"


def complete(cluster: Cluster, name: str = "web") -> Object | None:
    found = cluster.get("deployments", name)
    status, wanted = found.get("status") or {}, found["spec"]["replicas"]
    counts = [status.get(field, 0) for field in ("replicas", "updatedReplicas", "availableReplicas")]
    observed = status.get("observedGeneration", 0) >= found["metadata"]["generation"]
    return found if observed and counts == [wanted] * 3 else None


def set_image(cluster: Cluster, image: str, name: str = "web") -> None:
    cluster.client.patch(
        "deployments", name, [{"op": "replace", "path": IMAGE, "value": image}], "default", kind="json"
    )


def condition(obj: Object, kind: str) -> Object:
    return next(c for c in obj["status"]["conditions"] if c["type"] == kind)


async def test_a_deployment_becomes_available_through_one_replica_set() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.client.create("deployments", deployment(), "default")
        found = await cluster.until(lambda: complete(cluster))
        (rs,) = cluster.client.list("replicasets", "default")[0]
        suffix = rs["metadata"]["labels"]["pod-template-hash"]
        assert rs["metadata"]["name"] == f"web-{suffix}"
        assert rs["spec"]["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": suffix}
        assert [p["metadata"]["labels"]["pod-template-hash"] for p in cluster.pods()] == [suffix] * 3
        assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
        assert condition(found, "Available")["reason"] == "MinimumReplicasAvailable"
        progress = condition(found, "Progressing")
        assert (progress["status"], progress["reason"]) == ("True", "NewReplicaSetAvailable")
        assert progress["message"] == f'ReplicaSet "{rs["metadata"]["name"]}" has successfully progressed.'
        (event,) = cluster.events("ScalingReplicaSet")
        assert event["message"] == f"Scaled up replica set {rs['metadata']['name']} from 0 to 3"


async def test_a_rolling_update_stays_within_surge_and_availability() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
        cluster.client.create("deployments", deployment(replicas=5, strategy=strategy), "default")
        await cluster.until(lambda: complete(cluster))
        seen: list[tuple[int, int]] = []

        def watch(old: Object | None, new: Object | None) -> None:
            live = [p for p in cluster.context.pods if not p["metadata"].get("deletionTimestamp")]
            ready = sum(
                c["status"] == "True" for p in live for c in p["status"].get("conditions", ()) if c["type"] == "Ready"
            )
            seen.append((len(live), ready))

        cluster.context.pods.add_handler(watch)
        set_image(cluster, "registry.k8s.io/pause:3.11")
        await cluster.until(lambda: complete(cluster))
        assert max(count for count, _ in seen) <= 6
        assert min(ready for _, ready in seen) >= 4
        await cluster.settle()
        images = {p["spec"]["containers"][0]["image"] for p in cluster.pods()}
        assert images == {"registry.k8s.io/pause:3.11"}


async def test_going_back_reuses_the_old_replica_set_with_a_new_revision() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.client.create("deployments", deployment(), "default")
        await cluster.until(lambda: complete(cluster))
        (first,) = cluster.client.list("replicasets", "default")[0]
        set_image(cluster, "registry.k8s.io/pause:3.11")
        await cluster.until(lambda: complete(cluster))
        set_image(cluster, "registry.k8s.io/pause:3.10")
        await cluster.settle()
        found = await cluster.until(lambda: complete(cluster))
        assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"
        again = cluster.get("replicasets", first["metadata"]["name"])
        assert again["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"
        assert again["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"] == "1"
        assert len(cluster.client.list("replicasets", "default")[0]) == 2


async def test_recreate_starts_the_new_only_when_the_last_old_pod_is_gone() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.client.create("deployments", deployment(strategy={"type": "Recreate"}), "default")
        await cluster.until(lambda: complete(cluster))
        mixed: list[set[str]] = []

        def watch(old: Object | None, new: Object | None) -> None:
            mixed.append({p["spec"]["containers"][0]["image"] for p in cluster.context.pods})

        cluster.context.pods.add_handler(watch)
        set_image(cluster, "registry.k8s.io/pause:3.11")
        await cluster.until(lambda: complete(cluster))
        assert all(len(images) <= 1 for images in mixed)


async def test_a_rollout_that_does_not_progress_is_reported_after_its_deadline() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.broken.add("web-")
        cluster.client.create("deployments", deployment(progressDeadlineSeconds=10), "default")

        def timed_out() -> bool:
            conditions = cluster.get("deployments", "web").get("status", {}).get("conditions", ())
            return any(c.get("reason") == "ProgressDeadlineExceeded" and c["status"] == "False" for c in conditions)

        await cluster.until(timed_out)


async def test_scaling_follows_the_replica_count_also_while_paused() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.client.create("deployments", deployment(), "default")
        await cluster.until(lambda: complete(cluster))
        cluster.client.patch("deployments", "web", {"spec": {"paused": True, "replicas": 1}}, "default")
        await cluster.until(lambda: complete(cluster))
        set_image(cluster, "registry.k8s.io/pause:3.11")
        await cluster.settle()
        assert len(cluster.client.list("replicasets", "default")[0]) == 1
        assert condition(cluster.get("deployments", "web"), "Progressing")["reason"] == "DeploymentPaused"
        cluster.client.patch("deployments", "web", {"spec": {"paused": None}}, "default")
        await cluster.settle()
        await cluster.until(lambda: complete(cluster))
        assert len(cluster.client.list("replicasets", "default")[0]) == 2


async def test_scaling_in_the_middle_of_a_rollout_keeps_the_proportions() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one", allocatable={"pods": "500"})
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
        cluster.client.create("deployments", deployment(replicas=10, strategy=strategy), "default")
        await cluster.until(lambda: complete(cluster))
        cluster.broken.add("web-")
        set_image(cluster, "registry.k8s.io/pause:broken")

        def sizes() -> list[int]:
            return sorted(rs["spec"]["replicas"] for rs in cluster.client.list("replicasets", "default")[0])

        await cluster.until(lambda: sizes() == [5, 8])
        cluster.client.patch("deployments", "web", {"spec": {"replicas": 15}}, "default")
        await cluster.until(lambda: sizes() == [7, 11])
        await cluster.settle()
        assert sizes() == [7, 11]


async def test_old_replica_sets_are_kept_as_the_history_limit_says() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.client.create("deployments", deployment(replicas=1, revisionHistoryLimit=1), "default")
        for number in range(3):
            await cluster.until(lambda: complete(cluster))
            set_image(cluster, f"registry.k8s.io/pause:{number}")
            await cluster.settle()
        await cluster.until(lambda: complete(cluster))
        await cluster.settle()
        assert len(cluster.client.list("replicasets", "default")[0]) == 2


async def test_a_replica_set_adopts_what_it_selects_and_releases_what_it_no_longer_does() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.pod("stray", {"app": "set"})
        template = {"metadata": {"labels": {"app": "set"}}, "spec": POD_SPEC}
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": "set"}}, "template": template}
        cluster.client.create("replicasets", {"metadata": {"name": "set"}, "spec": spec}, "default")
        await cluster.until(lambda: cluster.get("replicasets", "set").get("status", {}).get("readyReplicas") == 2)
        assert len(cluster.pods("app=set")) == 2
        assert cluster.get("pods", "stray")["metadata"]["ownerReferences"][0]["name"] == "set"
        cluster.client.patch("pods", "stray", {"metadata": {"labels": {"app": "other"}}}, "default")
        await cluster.until(lambda: len(cluster.pods("app=set")) == 2)
        assert not cluster.get("pods", "stray")["metadata"].get("ownerReferences")

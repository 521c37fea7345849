"""Each defect of the controllers shows, and is gone when it is healed."""

from __future__ import annotations

from sandbox.controllers.cluster import POD_SPEC, Cluster, deployment, running


async def test_an_overcommitted_node_takes_pods_it_has_no_room_for() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.node("two")
        cluster.context.placement["two"].overcommitted = True
        huge = [{**POD_SPEC["containers"][0], "resources": {"requests": {"cpu": "1000"}}}]
        cluster.pod("huge", containers=huge)
        await cluster.until(lambda: cluster.get("pods", "huge")["spec"].get("nodeName") == "two")
        cluster.context.placement["two"].overcommitted = False
        cluster.pod("again", containers=huge)
        await cluster.until(lambda: cluster.events("FailedScheduling"))


async def test_frozen_endpoints_keep_addresses_of_pods_that_are_gone() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
        cluster.client.create("services", {"metadata": {"name": "web"}, "spec": spec}, "default")
        cluster.client.create("deployments", deployment(replicas=2), "default")

        def addresses() -> set[str]:
            slices = cluster.client.list("endpointslices", "default")[0]
            return {ip for entry in slices for e in entry["endpoints"] for ip in e["addresses"]}

        await cluster.until(lambda: len(addresses()) == 2)
        before = addresses()
        cluster.context.defects.endpoints_frozen = True
        for pod in cluster.pods():
            cluster.client.delete("pods", pod["metadata"]["name"], "default")
        await cluster.settle()
        assert addresses() == before
        cluster.context.defects.endpoints_frozen = False
        await cluster.until(lambda: len(addresses()) == 2 and not addresses() & before)


async def test_lost_replicas_stay_lost_until_healed() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.client.create("deployments", deployment(replicas=2), "default")
        await cluster.until(lambda: cluster.get("deployments", "web").get("status", {}).get("availableReplicas") == 2)
        cluster.context.defects.lost_replicas = True
        cluster.client.delete("pods", cluster.pods()[0]["metadata"]["name"], "default")
        await cluster.settle()
        assert len(cluster.pods()) == 1
        cluster.context.defects.lost_replicas = False
        await cluster.until(lambda: len(cluster.pods()) == 2)

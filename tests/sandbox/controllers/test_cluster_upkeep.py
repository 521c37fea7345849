"""Nodes, namespaces, endpoints, garbage and budgets are kept as in a real cluster."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.controllers.cluster import POD_SPEC, Cluster, deployment, running
from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.objects import Object, timestamp

DUAL: dict[str, Any] = {
    "service_networks": ("10.96.0.0/16", "fd00:96::/108"),
    "pod_networks": ("10.244.0.0/16", "fd00:10:244::/56"),
}


def taints(cluster: Cluster, name: str = "one") -> set[tuple[str, str]]:
    return {(t["key"].rpartition("/")[2], t["effect"]) for t in cluster.get("nodes", name)["spec"].get("taints") or ()}


def ready(cluster: Cluster, name: str = "one") -> str:
    conditions = cluster.get("nodes", name)["status"]["conditions"]
    return str(next(c["status"] for c in conditions if c["type"] == "Ready"))


async def test_a_silent_node_becomes_unknown_and_loses_its_pods_until_it_reports_again() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        await cluster.until(lambda: not taints(cluster))
        patience = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
        cluster.pod("patient", tolerations=[{**patience, "tolerationSeconds": 100_000}])
        cluster.pod("brief", tolerations=[{**patience, "tolerationSeconds": 1}])
        await cluster.until(lambda: all(p["status"]["phase"] == "Running" for p in cluster.pods()))
        cluster.silent.add("one")
        await cluster.until(lambda: ready(cluster) == "Unknown")
        await cluster.until(lambda: taints(cluster) == {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")})
        unknown = next(c for c in cluster.get("nodes", "one")["status"]["conditions"] if c["type"] == "Ready")
        assert (unknown["reason"], unknown["message"]) == ("NodeStatusUnknown", "Kubelet stopped posting node status.")
        await cluster.until(lambda: cluster.find("pods", "brief") is None)
        pod = cluster.get("pods", "patient")
        assert [c["status"] for c in pod["status"]["conditions"] if c["type"] == "Ready"] == ["False"]
        assert cluster.events("TaintManagerEviction")[0]["message"] == "Marking for deletion Pod default/brief"
        cluster.silent.clear()
        fresh = {"type": "Ready", "status": "True", "lastHeartbeatTime": timestamp(3)}
        cluster.client.patch("nodes", "one", {"status": {"conditions": [fresh]}}, subresource="status")
        await cluster.until(lambda: not taints(cluster))
        assert cluster.find("pods", "patient") is not None


async def test_a_new_node_takes_no_pods_before_it_is_ready() -> None:
    async with running(Cluster()) as cluster:
        node = cluster.node("one")
        assert node["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
        await cluster.until(lambda: not taints(cluster))
        not_ready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
        cluster.client.patch("nodes", "one", not_ready, subresource="status")
        await cluster.until(lambda: taints(cluster) == {("not-ready", "NoSchedule"), ("not-ready", "NoExecute")})


async def test_nodes_get_networks_and_what_was_given_back_comes_last() -> None:
    async with running(Cluster(**DUAL)) as cluster:
        for name in ("one", "two"):
            cluster.node(name)
        first = await cluster.until(lambda: cluster.get("nodes", "one")["spec"].get("podCIDRs"))
        second = await cluster.until(lambda: cluster.get("nodes", "two")["spec"].get("podCIDRs"))
        assert first == ["10.244.0.0/24", "fd00:10:244::/64"]
        assert second == ["10.244.1.0/24", "fd00:10:244:1::/64"]
        cluster.client.delete("nodes", "one")
        await cluster.settle()
        cluster.node("three")
        third = await cluster.until(lambda: cluster.get("nodes", "three")["spec"].get("podCIDRs"))
        assert third == ["10.244.2.0/24", "fd00:10:244:2::/64"]


async def test_pods_of_a_node_that_is_gone_are_removed() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.pod("web")
        await cluster.until(lambda: cluster.get("pods", "web")["status"]["phase"] == "Running")
        cluster.client.delete("nodes", "one")
        await cluster.until(lambda: cluster.find("pods", "web") is None)


async def test_every_namespace_gets_an_account_and_the_ca_and_gets_them_back() -> None:
    async with running(Cluster(root_ca="PEM")) as cluster:
        cluster.client.create("namespaces", {"metadata": {"name": "team"}})
        await cluster.until(lambda: cluster.find("serviceaccounts", "default", "team"))
        await cluster.until(lambda: cluster.find("configmaps", "kube-root-ca.crt", "team"))
        assert cluster.get("configmaps", "kube-root-ca.crt", "team")["data"] == {"ca.crt": "PEM"}
        cluster.client.delete("serviceaccounts", "default", "team")
        await cluster.until(lambda: cluster.find("serviceaccounts", "default", "team"))


async def test_a_namespace_empties_itself_and_says_what_it_waits_for() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.client.create("namespaces", {"metadata": {"name": "team"}})
        await cluster.until(lambda: cluster.find("serviceaccounts", "default", "team"))
        cluster.client.create("deployments", deployment(), "team")
        held = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
        cluster.client.create("configmaps", held, "team")
        await cluster.until(lambda: len(cluster.pods(namespace="team")) == 3)
        cluster.client.delete("namespaces", "team")

        def remaining() -> Object | None:
            found = cluster.get("namespaces", "team", "")
            conditions = found["status"].get("conditions") or ()
            return next(
                (c for c in conditions if c["type"] == "NamespaceFinalizersRemaining" and c["status"] == "True"), None
            )

        condition = await cluster.until(remaining)
        assert condition["message"] == (
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
        )
        await cluster.until(lambda: not cluster.pods(namespace="team"))
        cluster.client.patch("configmaps", "held", {"metadata": {"finalizers": None}}, "team")
        await cluster.until(lambda: cluster.find("namespaces", "team", "") is None)


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_dependents_go_with_their_owner(propagation: str) -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.client.create("deployments", deployment(), "default")
        await cluster.until(lambda: len(cluster.pods()) == 3)
        order: list[str] = []
        cluster.context.pods.add_handler(lambda old, new: order.append("pod") if new is None else None)
        owners = cluster.context.informers.of("deployments")
        owners.add_handler(lambda old, new: order.append("deployment") if new is None else None)
        cluster.client.delete("deployments", "web", "default", propagation=propagation)
        await cluster.until(lambda: not cluster.pods() and cluster.find("deployments", "web") is None)
        assert not cluster.client.list("replicasets", "default")[0]
        await cluster.until(lambda: len(order) == 4)
        assert order.index("deployment") == (3 if propagation == "Foreground" else 0)


async def test_orphans_live_on_without_their_owner() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.client.create("deployments", deployment(), "default")
        await cluster.until(lambda: len(cluster.pods()) == 3)
        cluster.client.delete("deployments", "web", "default", propagation="Orphan")
        await cluster.until(lambda: cluster.find("deployments", "web") is None)
        await cluster.settle()
        (rs,) = cluster.client.list("replicasets", "default")[0]
        assert not rs["metadata"].get("ownerReferences")
        assert len(cluster.pods()) == 3


async def test_an_object_whose_owner_never_existed_is_removed_by_uid() -> None:
    async with running(Cluster()) as cluster:
        cluster.client.create("configmaps", {"metadata": {"name": "owner"}}, "default")
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "someone-else"}
        child = {"metadata": {"name": "child", "ownerReferences": [reference]}}
        cluster.client.create("configmaps", child, "default")
        await cluster.until(lambda: cluster.find("configmaps", "child") is None)
        assert cluster.find("configmaps", "owner") is not None


async def test_custom_resources_are_collected_too() -> None:
    async with running(Cluster()) as cluster:
        names = {"plural": "gadgets", "kind": "Gadget"}
        version: Object = {"name": "v1", "served": True, "storage": True}
        version["schema"] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
        definition = {"metadata": {"name": "gadgets.example.com"}, "spec": spec}
        cluster.client.create("customresourcedefinitions", definition)
        owner = cluster.client.create("configmaps", {"metadata": {"name": "owner"}}, "default")
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
        gadget = {"metadata": {"name": "it", "ownerReferences": [reference]}}
        cluster.client.create("gadgets", gadget, "default")
        cluster.client.delete("configmaps", "owner", "default")
        await cluster.until(lambda: cluster.find("gadgets", "it") is None)
        cluster.client.delete("customresourcedefinitions", "gadgets.example.com")
        await cluster.settle()


def service(name: str = "web", **spec: Any) -> Object:
    ports = [{"name": "http", "port": 80, "targetPort": "http"}]
    return {"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": ports, **spec}}


def slices(cluster: Cluster, name: str = "web") -> list[Object]:
    return cluster.client.list("endpointslices", "default", labels=f"kubernetes.io/service-name={name}")[0]


def serving(name: str = "web", replicas: int = 2) -> Object:
    made = deployment(name, replicas)
    ports = [{"name": "http", "containerPort": 8080}]
    made["spec"]["template"]["spec"] = {"containers": [{**POD_SPEC["containers"][0], "ports": ports}]}
    return made


async def test_slices_follow_pods_of_both_families() -> None:
    async with running(Cluster(**DUAL)) as cluster:
        cluster.node("one")
        cluster.client.create("services", service(ipFamilyPolicy="PreferDualStack"), "default")
        await cluster.until(lambda: len(slices(cluster)) == 2)
        assert [entry["endpoints"] for entry in slices(cluster)] == [[], []]
        cluster.client.create("deployments", serving(), "default")

        def complete() -> list[Object] | None:
            found = slices(cluster)
            good = [e for s in found for e in s["endpoints"] if e["conditions"]["ready"]]
            return found if len(good) == 4 else None

        found = await cluster.until(complete)
        assert {entry["addressType"] for entry in found} == {"IPv4", "IPv6"}
        assert {tuple(port.items()) for entry in found for port in entry["ports"]} == {
            (("name", "http"), ("port", 8080), ("protocol", "TCP"))
        }
        endpoint = next(s for s in found if s["addressType"] == "IPv4")["endpoints"][0]
        assert endpoint["conditions"] == {"ready": True, "serving": True, "terminating": False}
        assert endpoint["nodeName"] == "one"
        assert endpoint["targetRef"]["kind"] == "Pod"
        legacy = cluster.get("endpoints", "web")
        assert len(legacy["subsets"][0]["addresses"]) == 2
        victim = endpoint["targetRef"]["name"]
        cluster.pod_status(cluster.get("pods", victim), ready=False)
        await cluster.until(
            lambda: len(cluster.get("endpoints", "web")["subsets"][0].get("notReadyAddresses", ())) == 1
        )

        def unready() -> set[str]:
            endpoints = [endpoint for each in slices(cluster) for endpoint in each["endpoints"]]
            return {each["targetRef"]["name"] for each in endpoints if not each["conditions"]["ready"]}

        await cluster.until(lambda: unready() == {victim})
        cluster.client.delete("services", "web", "default")
        await cluster.until(lambda: not slices(cluster) and cluster.find("endpoints", "web") is None)


async def test_a_slice_holds_at_most_a_hundred_endpoints() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one", allocatable={"pods": "500", "cpu": "100"})
        cluster.client.create("services", service(), "default")
        cluster.client.create("deployments", serving(replicas=120), "default")
        await cluster.until(lambda: sum(len(entry["endpoints"]) for entry in slices(cluster)) == 120)
        await cluster.settle()
        assert sorted(len(entry["endpoints"]) for entry in slices(cluster)) == [20, 100]


async def test_unready_pods_are_published_where_asked_and_headless_services_know_host_names() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        cluster.broken.add("db-")
        spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "ports": [{"port": 5432}]}
        cluster.client.create("services", service("db", **spec), "default")
        cluster.pod("db-0", {"app": "db"}, hostname="db-0", subdomain="db")
        endpoint = await cluster.until(lambda: next((e for s in slices(cluster, "db") for e in s["endpoints"]), None))
        assert endpoint["hostname"] == "db-0"
        assert endpoint["conditions"] == {"ready": True, "serving": False, "terminating": False}
        assert slices(cluster, "db")[0]["metadata"]["labels"]["service.kubernetes.io/headless"] == ""


async def test_endpoints_written_by_hand_are_mirrored() -> None:
    async with running(Cluster()) as cluster:
        cluster.client.create("services", {"metadata": {"name": "out"}, "spec": {"ports": [{"port": 80}]}}, "default")
        subset = {"addresses": [{"ip": "192.0.2.7"}], "ports": [{"port": 80}]}
        cluster.client.create("endpoints", {"metadata": {"name": "out"}, "subsets": [subset]}, "default")
        (mirrored,) = await cluster.until(lambda: slices(cluster, "out"))
        assert mirrored["endpoints"] == [{"addresses": ["192.0.2.7"], "conditions": {"ready": True}}]
        cluster.client.delete("endpoints", "out", "default")
        await cluster.until(lambda: not slices(cluster, "out"))


async def test_a_budget_says_how_many_pods_may_go() -> None:
    async with running(Cluster()) as cluster:
        cluster.node("one")
        spec = {"maxUnavailable": "34%", "selector": {"matchLabels": {"app": "web"}}}
        cluster.client.create("poddisruptionbudgets", {"metadata": {"name": "web"}, "spec": spec}, "default")
        cluster.client.create("deployments", deployment(replicas=3), "default")

        def allowed() -> int:
            return int((cluster.get("poddisruptionbudgets", "web").get("status") or {}).get("disruptionsAllowed", 0))

        await cluster.until(lambda: allowed() == 2)
        first = [p["metadata"]["name"] for p in cluster.pods()]
        eviction = {"metadata": {"name": cluster.pods()[0]["metadata"]["name"]}}
        cluster.broken.add("web-")
        cluster.client.create("pods/eviction", eviction, "default")
        await cluster.until(lambda: allowed() == 1)
        await cluster.settle()
        status = cluster.get("poddisruptionbudgets", "web")["status"]
        assert (status["expectedPods"], status["desiredHealthy"], status["currentHealthy"]) == (3, 1, 2)
        survivors = [
            p["metadata"]["name"] for p in cluster.pods() if p["metadata"]["name"] != eviction["metadata"]["name"]
        ]
        healthy = [n for n in survivors if n in first]
        cluster.client.create("pods/eviction", {"metadata": {"name": healthy[0]}}, "default")
        with pytest.raises(ApiError) as refused:
            cluster.client.create("pods/eviction", {"metadata": {"name": healthy[1]}}, "default")
        assert refused.value.code == 429

"""Sound clusters that are shared and busy: other workloads, other runs, other people's leftovers, nodes that come."""

from __future__ import annotations

from winready.proof.healthy.model import Scene, Variant
from winready.proof.healthy.scenery import SHOP, all_ready, shop, until, workload

SERVICES = 300
CORE_WINDOWS_PODS = 262
"""What the whole core may start on two Windows nodes: one and a half times what it did at f16f3a4."""
JOINS_AFTER = 60.0
"""Cluster seconds into the run."""
LATE_NODE = "windows-3"


async def full_nodes(scene: Scene) -> None:
    """Most of what Windows nodes have is promised to others."""
    shop(scene)
    workload(scene, "stock", "windows", 2, cpu="2500m", memory="11Gi")
    await all_ready(scene)


async def busy_nodes(scene: Scene) -> None:
    """Others use three of four processors of every Windows node."""
    shop(scene)
    for name in ("pricing", "search", "images"):
        workload(scene, name, "windows", 2, burns=True, cpu="500m", memory="256Mi")
    await all_ready(scene)


async def many_objects(scene: Scene) -> None:
    """Hundreds of services, with pods behind a few of them."""
    shop(scene)
    for name, os in (("web", "windows"), ("api", "linux")):
        workload(scene, name, os, 10, cpu="10m", memory="50Mi")
    for number in range(SERVICES):
        name = ("web", "api")[number % 2] if number < 10 else f"scaled-down-{number}"
        spec = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]}
        scene.api.create("services", {"metadata": {"name": f"part-{number}"}, "spec": spec}, SHOP)
    await all_ready(scene)


async def guarded_workloads(scene: Scene) -> None:
    """Disruption budgets that allow nothing, over workloads with a replica on every node."""
    shop(scene)
    workload(scene, "ledger", "windows", 2, cpu="50m", memory="100Mi")
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "ledger"}}}
    scene.api.create("poddisruptionbudgets", {"metadata": {"name": "ledger"}, "spec": spec}, SHOP)
    await all_ready(scene)


async def leftovers(scene: Scene) -> None:
    """Namespaces of a run that was killed, and objects of strangers who use the same words."""
    old = {"winready.io/run": "261101-000000-dead", "app.kubernetes.io/managed-by": "winready"}
    scene.api.create("namespaces", {"metadata": {"name": "winready-261101-000000-dead-fx", "labels": old}})
    scene.api.create("namespaces", {"metadata": {"name": "winready"}})
    shop(scene)
    workload(scene, "fx", "windows", 2, cpu="50m", memory="100Mi")
    spec = {"selector": {"app": "fx"}, "ports": [{"port": 80, "targetPort": 8080}]}
    for name in ("ls", "ws", "kubernetes"):
        scene.api.create("services", {"metadata": {"name": name}, "spec": spec}, SHOP)
    await all_ready(scene)


async def a_node_is_away(scene: Scene) -> None:
    """One of three Windows nodes has been switched off."""
    await scene.sandbox.fleet.kubelets[LATE_NODE].stop()

    def not_ready() -> bool:
        conditions = scene.api.get("nodes", LATE_NODE)["status"]["conditions"]
        return any(each["type"] == "Ready" and each["status"] != "True" for each in conditions)

    await until(scene, not_ready)


async def before_it_joins(scene: Scene) -> None:
    """A worker that is not there yet."""
    await scene.sandbox.break_fault("node.windows.does-not-join", LATE_NODE)


async def joins(scene: Scene) -> None:
    """An autoscaler adds a node in the middle of the run."""
    await scene.sandbox.clock.sleep(JOINS_AFTER)
    await scene.sandbox.heal_fault("node.windows.does-not-join", LATE_NODE)


NEIGHBOURS = (
    Variant(
        "neighbours.two-runs",
        "Two runs at once: neither reboots a node that has pods of the other.",
        "kubernetes.io: Multi-tenancy",
        runs=2,
        long="S6",
        unjudged="S6 P7",
    ),
    Variant(
        "neighbours.least-rights",
        "The run has the rights that 'winready rbac' prints, and no others.",
        "kubernetes.io: Role Based Access Control Good Practices, least privilege",
        least_rights=True,
        most_windows_pods=CORE_WINDOWS_PODS,
        long="S5 S6 C1 P7",
    ),
    Variant(
        "neighbours.prepared-namespaces",
        "An administrator prepared the namespaces, and the run has rights there alone.",
        "kubernetes.io: Role Based Access Control Good Practices, least privilege",
        least_rights=True,
        namespace_prefix="prepared",
        most_windows_pods=CORE_WINDOWS_PODS,
        long="S5 C1",
        unjudged="S6 H1 P7",
    ),
    Variant(
        "neighbours.full-nodes",
        "Two thirds of the processors and most of the memory of Windows nodes are promised to others.",
        "windows-facts 2.1: requests of 50m and 100Mi",
        prepare=full_nodes,
    ),
    Variant(
        "neighbours.busy-nodes",
        "Others use three of the four processors of every Windows node.",
        "kubernetes.io: Resource Management for Windows nodes, CPU shares",
        prepare=busy_nodes,
        long="C1",
    ),
    Variant(
        "neighbours.many-objects",
        f"{SERVICES} services and 20 pods of others.",
        "windows-facts 1.5: port blocks of load balancers with 100 services and more",
        prepare=many_objects,
    ),
    Variant(
        "neighbours.guarded-workloads",
        "Disruption budgets of others allow no disruption; they have a replica on every node.",
        "kubernetes.io: Specifying a Disruption Budget",
        prepare=guarded_workloads,
        long="S6 P7",
    ),
    Variant(
        "neighbours.leftovers",
        "Namespaces of a run that was killed, and services of strangers with the names of ours.",
        "windows-facts 2.2: cleanup",
        prepare=leftovers,
    ),
    Variant(
        "neighbours.node-away",
        "One of three Windows nodes is not Ready.",
        "kubernetes.io: Nodes, node status",
        {"windows": 3},
        prepare=a_node_is_away,
    ),
    Variant(
        "neighbours.node-joins",
        "A third Windows node joins while the run goes on.",
        "kubernetes.io: Node Autoscaling",
        {"windows": 3},
        prepare=before_it_joins,
        during=joins,
    ),
    Variant(
        "neighbours.slow-api",
        "The API server is slow and now and then asks for patience.",
        "kubernetes.io: API Priority and Fairness",
        {"faults": ("api.slow", "api.too-many-requests")},
        long="S5 S6 C1",
    ),
)

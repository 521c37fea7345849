"""Aggregated cluster roles show, and grant, the rules of the roles that they select."""

from __future__ import annotations

from sandbox.controllers.cluster import Cluster, running
from winready_sandbox.api.bootstrap import fill
from winready_sandbox.api.objects import Object
from winready_sandbox.controllers.clusterroles import ClusterRoleAggregator

THINGS: Object = {"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["things"]}
AGGREGATES = ("view", "edit", "admin")


def fresh_cluster() -> Cluster:
    """A cluster with its default roles."""
    cluster = Cluster()
    fill(cluster.client, service_ip="10.96.0.1", server_ip="10.250.0.1", server_port=6443, ca=b"pem")
    return cluster


def grants(cluster: Cluster, name: str) -> bool:
    """Whether a role has the rule of this test."""
    return THINGS in cluster.get("clusterroles", name)["rules"]


async def test_role_added_by_label_reaches_every_aggregate_above_it() -> None:
    async with running(fresh_cluster(), [ClusterRoleAggregator]) as cluster:
        labels = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
        cluster.client.create("clusterroles", {"metadata": {"name": "things", "labels": labels}, "rules": [THINGS]})
        await cluster.until(lambda: all(grants(cluster, name) for name in AGGREGATES))
        cluster.client.delete("clusterroles", "things")
        await cluster.until(lambda: not any(grants(cluster, name) for name in AGGREGATES))


async def test_fresh_cluster_needs_no_correction() -> None:
    cluster = fresh_cluster()
    written = {name: cluster.get("clusterroles", name) for name in AGGREGATES}
    async with running(cluster, [ClusterRoleAggregator]):
        await cluster.settle()
        assert all(cluster.get("clusterroles", name) is role for name, role in written.items())

"""``winready node drain`` and ``remove``: what a drain must spare, what it must ask for, what stops it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click
import pytest

from node.sandboxes import ask, call, command_line, node_cluster, until
from winready.cli.node_commands import drain, remove
from winready.cluster.client import Client, Object
from winready.cluster.resources import DEPLOYMENTS, NAMESPACES, NODES, PODS, Resource
from winready.node.draining import Allowed, NotDrainable, fate, to_evict

__all__ = ["command_line", "node_cluster"]
NODE, LAST, SPACE = "windows-1", "windows-3", "to-drain"
BUDGETS = Resource("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
PAUSE = "registry.k8s.io/pause:3.10.2"


def spec(**more: Any) -> Object:
    return {
        "containers": [{"name": "main", "image": PAUSE}],
        "nodeSelector": {"kubernetes.io/os": "windows"},
        "os": {"name": "windows"},
        "terminationGracePeriodSeconds": 1,
        **more,
    }


def deployment(name: str, replicas: int, **more: Any) -> Object:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": spec(**more)}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


@pytest.mark.parametrize("command", [drain, remove])
def test_linux_nodes_are_none_of_ours(node_cluster: str, command: click.Command) -> None:
    force = ["--force"] if command is remove else []
    result = call(command, node_cluster, "linux-1", *force)
    assert (result.exit_code, "linux-1 is a linux node" in result.stderr) == (2, True)
    node = ask(node_cluster, lambda client: client.get(NODES, "linux-1"))
    assert not node["spec"].get("unschedulable")


@pytest.fixture
def space(node_cluster: str) -> Iterator[str]:
    """A namespace for workloads; nodes take pods again afterwards."""

    async def make(client: Client) -> None:
        await client.create(NAMESPACES, {"metadata": {"name": SPACE}})

    async def tidy(client: Client) -> None:
        await client.delete(NAMESPACES, SPACE)
        for node in await client.list(NODES):
            await client.patch(NODES, node["metadata"]["name"], {"spec": {"unschedulable": None}})

        async def gone() -> bool:
            return await client.find(NAMESPACES, SPACE) is None

        await until(gone)

    ask(node_cluster, make)
    yield node_cluster
    ask(node_cluster, tidy)


def start(kubeconfig: str, *objects: tuple[Resource, Object], pods: int) -> None:
    """Create workloads and wait until as many pods of them run on the node, which no other one could take."""

    async def go(client: Client) -> None:
        others = [n["metadata"]["name"] for n in await client.list(NODES) if n["metadata"]["name"] != NODE]
        for name in others:
            await client.patch(NODES, name, {"spec": {"unschedulable": True}})
        for resource, obj in objects:
            await client.create(resource, obj, SPACE)

        async def running() -> bool:
            return len([pod for pod in await on_node(client) if pod["status"].get("phase") == "Running"]) >= pods

        await until(running)
        for name in others:
            await client.patch(NODES, name, {"spec": {"unschedulable": None}})

    ask(kubeconfig, go)


async def on_node(client: Client, namespace: str = SPACE) -> list[Object]:
    return await client.list(PODS, namespace, fields=f"spec.nodeName={NODE}")


def unschedulable(kubeconfig: str) -> bool:
    return bool(ask(kubeconfig, lambda client: client.get(NODES, NODE))["spec"].get("unschedulable"))


def test_a_drain_moves_pods_spares_daemonsets_and_does_nothing_twice(space: str) -> None:
    start(space, (DEPLOYMENTS, deployment("web", 2)), pods=2)
    daemons = {pod["metadata"]["uid"] for pod in ask(space, lambda client: on_node(client, "kube-system"))}
    assert daemons
    result = call(drain, space, NODE, "-o", "json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert (document["drained"], document["cordoned"], len(document["evicted"])) == (True, True, 2)
    assert all(name.startswith(f"{SPACE}/web-") for name in document["evicted"])
    assert {name.partition("/")[0] for name in document["spared"]} == {"kube-system"}
    assert ask(space, on_node) == []
    assert unschedulable(space)
    assert {pod["metadata"]["uid"] for pod in ask(space, lambda client: on_node(client, "kube-system"))} == daemons
    before = ask(space, lambda client: client.get(NODES, NODE))["spec"]
    again = call(drain, space, NODE)
    assert again.exit_code == 0
    assert again.stdout.startswith(f"node {NODE} is drained: 0 pods gone")
    assert ask(space, lambda client: client.get(NODES, NODE))["spec"] == before


def test_a_budget_is_respected_and_said_when_time_is_over(space: str) -> None:
    budget = {
        "metadata": {"name": "all-of-them"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "held"}}},
    }
    held = deployment("held", 1)
    start(space, (DEPLOYMENTS, held), (BUDGETS, budget), pods=1)
    result = call(drain, space, NODE, "--timeout", "7s")
    assert result.exit_code == 1, result.output
    assert "disruption budget all-of-them needs 1 healthy pods and has 1 currently" in result.stdout
    assert "is not drained and takes no new pods" in result.stdout
    assert len(ask(space, on_node)) == 1
    assert unschedulable(space)
    refused = call(remove, space, NODE)
    assert (refused.exit_code, "1 pods are still on it" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("kind", "flag", "words"),
    [
        ("emptydir", "--delete-emptydir-data", "emptyDir volumes would be lost"),
        ("bare", "--delete-bare-pods", "nothing would start these pods anew"),
    ],
)
def test_what_would_be_lost_needs_a_word(space: str, kind: str, flag: str, words: str) -> None:
    if kind == "emptydir":
        volumes = [{"name": "scratch", "emptyDir": {}}]
        start(space, (DEPLOYMENTS, deployment("keeps", 1, volumes=volumes)), pods=1)
    else:
        start(space, (PODS, {"metadata": {"name": "alone"}, "spec": spec()}), pods=1)
    refused = call(drain, space, NODE)
    assert refused.exit_code == 2
    assert words in refused.stderr
    assert flag in refused.stderr
    assert not unschedulable(space)
    assert len(ask(space, on_node)) == 1
    allowed = call(drain, space, NODE, flag)
    assert allowed.exit_code == 0, allowed.output
    assert ask(space, on_node) == []


def test_a_name_that_is_no_node_changes_nothing(node_cluster: str) -> None:
    for command in (drain, remove):
        result = call(command, node_cluster, "windows-9")
        assert result.exit_code == 2
        assert "there is no node 'windows-9'" in result.stderr
        assert "did you mean" in result.stderr


def test_a_node_goes_once_it_is_drained_and_what_remains_is_said(space: str) -> None:
    result = call(remove, space, LAST)
    assert result.exit_code == 2
    assert "it still takes pods" in result.stderr
    assert call(drain, space, LAST).exit_code == 0
    removed = call(remove, space, LAST)
    assert removed.exit_code == 0, removed.output
    assert "node.ps1 reset" in removed.stdout
    assert ask(space, lambda client: client.find(NODES, LAST)) is None


def pod(**metadata: Any) -> Object:
    return {"metadata": {"namespace": "n", "name": "p", **metadata}, "spec": {}, "status": {"phase": "Running"}}


def test_what_a_drain_makes_of_pods() -> None:
    def owned(kind: str) -> Object:
        return pod(ownerReferences=[{"kind": kind, "name": "x", "controller": True}])

    assert fate(owned("DaemonSet")) == "daemonset"
    assert fate(owned("ReplicaSet")) == "evict"
    assert fate(pod(annotations={"kubernetes.io/config.mirror": "x"})) == "mirror"
    assert fate(pod()) == "bare"
    assert fate({**pod(), "status": {"phase": "Succeeded"}}) == "evict"
    assert fate(pod(deletionTimestamp="now")) == "evict"
    local = {**pod(), "spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    with pytest.raises(NotDrainable, match="emptyDir"):
        to_evict([local], Allowed(bare=True))
    assert to_evict([local, owned("DaemonSet")], Allowed(bare=True, emptydir=True)) == [local]

"""Pods on nodes that are not there hold no namespace for ever, and nobody else's pods are touched."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from winready.cluster import absence
from winready.cluster.absence import Absences, LostPods, absent
from winready.cluster.client import Client, Object
from winready.cluster.errors import Forbidden
from winready.cluster.inventory import read_node
from winready.cluster.resources import NODES, PODS, Resource
from winready.cluster.timing import Timing
from winready_sandbox.virtual_time import VirtualTimeLoop


def node(name: str, ready: str, uid: str = "1") -> Object:
    conditions = [{"type": "Ready", "status": ready, "reason": "NodeStatusUnknown"}]
    return {"metadata": {"name": name, "uid": uid}, "status": {"conditions": conditions}}


def pod(name: str, where: str, *, going: bool = True) -> Object:
    metadata = {"namespace": "fx", "name": name, "uid": name, **({"deletionTimestamp": "now"} if going else {})}
    return {"metadata": metadata, "spec": {"nodeName": where} if where else {}}


class Cluster:
    """What the API server has, and what is forgotten of it."""

    def __init__(self, nodes: list[Object], pods: list[Object], trouble: Exception | None = None) -> None:
        self.found = {NODES: nodes, PODS: pods}
        self.forgotten: list[str] = []
        self.looks = 0
        self._trouble = trouble

    async def list(self, resource: Resource, namespace: str = "", **_: Any) -> list[Object]:
        self.looks += 1
        return self.found[resource]

    async def delete(self, resource: Resource, name: str, namespace: str, *, grace: int, uid: str) -> bool:
        assert (resource, namespace, grace, uid) == (PODS, "fx", 0, name)
        if self._trouble:
            raise self._trouble
        self.forgotten.append(name)
        return True


NODES_NOW = [node("well", "True"), node("ill", "False"), node("silent", "Unknown")]
PODS_NOW = [
    pod("on-well", "well"), pod("on-ill", "ill"), pod("on-silent", "silent"), pod("on-removed", "removed"),
    pod("nowhere", ""), pod("staying", "silent", going=False),
]  # fmt: skip


async def test_only_what_is_to_go_from_nodes_without_a_kubelet_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(NODES_NOW, PODS_NOW)
    patient = LostPods(cast(Client, cluster), patience=300.0)
    assert (await patient.forget(["fx"]), cluster.looks) == ({}, 0), "they may end by themselves"
    monkeypatch.setattr(absence, "LOST_SECONDS", 0.0)
    assert await LostPods(cast(Client, cluster), patience=300.0).forget(["fx"]) == {}
    assert cluster.forgotten == ["on-silent", "on-removed"]


async def test_whoever_may_not_remove_pods_is_told_where_they_are() -> None:
    cluster = Cluster(NODES_NOW, PODS_NOW, Forbidden(403, {"message": "pods is forbidden"}))
    told = await LostPods(cast(Client, cluster), patience=0.0).forget(["fx"])
    assert told == {
        "fx": "pod on-removed is on node removed, which does not answer; "
        "'kubectl delete pod -n fx on-removed --force' ends the waiting"
    }


async def test_nodes_that_went_are_told_from_those_that_stay() -> None:
    before = [read_node(node(name, "True")) for name in ("well", "silent", "removed", "replaced")]
    cluster = Cluster([*NODES_NOW, node("replaced", "True", uid="2")], [])
    assert await absent(cast(Client, cluster), before) == {
        "silent": "it is not Ready (NodeStatusUnknown)",
        "removed": "it is not in the cluster any more",
        "replaced": "another node took its place",
    }


def test_one_look_at_the_nodes_is_for_everybody_who_waits_and_nobody_is_told_the_same_look_twice() -> None:
    cluster, timing = Cluster(NODES_NOW, []), Timing()
    absences = Absences(cast(Client, cluster), timing, {"well": read_node(node("well", "True"))})

    async def waiter(late: float) -> list[tuple[dict[str, str], int]]:
        await asyncio.sleep(late)
        told = []
        for _ in range(3):
            told.append((await absences.among({"well"}), cluster.looks))
            await asyncio.sleep(timing.deadline(timing.table.refusal_look))
        return told

    async def many() -> list[list[tuple[dict[str, str], int]]]:
        return await asyncio.gather(*(waiter(late / 10) for late in range(100)))

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        told = runner.run(many())
    assert all(words == {} for one in told for words, _ in one)
    assert all(len({look for _, look in one}) == 3 for one in told), "what is so at two looks must be two looks"
    assert cluster.looks <= 4

    cluster.found[NODES] = [node("well", "Unknown")]
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        fresh = Absences(cast(Client, cluster), timing, {"well": read_node(node("well", "True"))})
        assert runner.run(fresh.among({"other"})) == {}
        assert list(runner.run(fresh.among({"well"}))) == ["well"]

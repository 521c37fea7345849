"""Every fault shows through the API and exec alone: normal before, broken as described, healed after, others spared."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from functools import partial

import pytest
import pytest_asyncio

from sandbox.faults.bench import NAMESPACE, PATIENCE, SHORT, SYSTEM, Bench, new_bench, pod
from sandbox.faults.case import Case
from sandbox.faults.control_plane_cases import CONTROL_PLANE_CASES
from sandbox.faults.dns_cases import DNS_CASES
from sandbox.faults.family_cases import FAMILY_CASES
from sandbox.faults.identity_cases import IDENTITY_CASES
from sandbox.faults.limit_cases import LIMIT_CASES
from sandbox.faults.network_cases import NETWORK_CASES
from sandbox.faults.node_cases import NODE_CASES, membership
from sandbox.faults.policy_cases import POLICY_CASES
from sandbox.faults.reaching_cases import REACHING_CASES
from sandbox.faults.reboot_cases import REBOOT_CASES
from sandbox.faults.volume_cases import VOLUME_CASES
from sandbox.faults.workload_cases import WORKLOAD_CASES
from winready.cluster.errors import ExecFailed
from winready.cluster.resources import CONFIG_MAPS, NODES, PODS
from winready_sandbox.faults.table import FAULTS, find

in_one_loop = pytest.mark.asyncio(loop_scope="module")
CASES = [
    *NETWORK_CASES,
    *REACHING_CASES,
    *FAMILY_CASES,
    *POLICY_CASES,
    *DNS_CASES,
    *NODE_CASES,
    *IDENTITY_CASES,
    *VOLUME_CASES,
    *LIMIT_CASES,
    *CONTROL_PLANE_CASES,
    *WORKLOAD_CASES,
]
REBOOTS = {"node.windows.never-returns": 3, "node.windows.boot-id-stays": 4, "node.windows.pods-stay-down": 5}
CHURNED = {
    "machine.windows.teardowns-hang": 3,
    "addresses.windows.reused-under-churn": 4,
    "addresses.windows.leaked": 5,
}
ELSEWHERE = {"kubelet.windows.slow-start", "volumes.windows.token-not-rotated", *REBOOTS, *CHURNED}
ELSEWHERE |= {case.fault for case in REBOOT_CASES}
"""Faults with a test of their own, below and in ``test_reboots.py``."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def _bench() -> AsyncIterator[Bench]:
    async with new_bench() as bench:
        await bench.create(CONFIG_MAPS, {"metadata": {"name": "unwatched"}})
        yield bench


@pytest_asyncio.fixture(loop_scope="module")
async def bench(_bench: Bench) -> AsyncIterator[Bench]:
    """The shared sandbox, without a fault left behind."""
    yield _bench
    await _bench.sandbox.heal_fault()


def test_every_fault_has_a_test() -> None:
    assert {case.fault for case in CASES} | ELSEWHERE == set(FAULTS)


@in_one_loop
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.fault)
async def test_a_fault_shows_where_it_is_and_nowhere_else(bench: Bench, case: Case) -> None:
    where = find(case.fault).where
    here, there = ("", "") if where == "cluster" else (f"{where}-{case.number}", f"{where}-2")
    probe = case.probe
    spared, spared_value = case.beside or (probe, case.healthy)
    if where == "cluster":
        there = "windows-2"

    async def both(wanted: str) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.sees(probe, here, wanted))
            group.create_task(bench.sees(spared, there, spared_value))

    await bench.sees(probe, here, case.healthy)
    await bench.sandbox.break_fault(case.fault, here or None)
    await both(case.broken)
    await bench.sandbox.heal_fault(case.fault)
    await both(case.healthy)


@in_one_loop
async def test_pods_of_a_slow_node_are_the_last_to_start(bench: Bench) -> None:
    async def order() -> str:
        """The nodes of eight pods, four on each, in the order in which the pods became ready."""
        pods = [pod(bench.name("w"), node) for _ in range(4) for node in ("windows-1", "windows-2")]
        waiting = {each["metadata"]["name"]: each["metadata"]["labels"]["node"][-1] for each in pods}
        arrived, creating = "", None
        async with asyncio.timeout(PATIENCE):
            async for event in bench.client.watch(PODS, NAMESPACE):
                # What comes first was there before: from now on nothing is missed.
                creating = creating or asyncio.gather(*(bench.create(PODS, each) for each in pods))
                conditions = event.object.get("status", {}).get("conditions") or []
                if any(c["type"] == "Ready" and c["status"] == "True" for c in conditions):
                    arrived += waiting.pop(event.object["metadata"]["name"], "")
                if not waiting:
                    break
        for each in pods:
            await bench.client.delete(PODS, each["metadata"]["name"], NAMESPACE, grace=0)
        return arrived

    for slow, quick in ("12", "21"):
        await bench.sandbox.break_fault("kubelet.windows.slow-start", f"windows-{slow}")
        arrived = await order()
        await bench.sandbox.heal_fault()
        assert arrived.endswith(slow)
        assert arrived[:4].count(quick) >= 3, arrived


async def _tokens_are_not_rotated_on_one_node(bench: Bench) -> None:
    async def issued(number: int) -> str:
        """The id of the token that a pod holds."""
        _, token = await bench.run(f"wk-{number}", "cmd", "/c", "type", "C:\\kept\\token")
        payload = token.split(".")[1]
        return str(json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["jti"])

    async def renewed(number: int, before: str) -> bool:
        return await issued(number) != before

    await bench.sandbox.break_fault("volumes.windows.token-not-rotated", "windows-1")
    here, there = await issued(1), await issued(2)
    assert await bench.until(lambda: renewed(2, there), pause=0.2), "after 480 cluster seconds"
    there = await issued(2)
    assert await bench.until(lambda: renewed(2, there), pause=0.2)
    assert await issued(1) == here, "twice its time has passed"
    await bench.sandbox.heal_fault("volumes.windows.token-not-rotated")
    assert await bench.until(lambda: renewed(1, here))


async def _reboots_go_wrong(bench: Bench) -> None:
    nodes = [f"windows-{number}" for number in (*REBOOTS.values(), 6)]
    lost, same, bare, fine = nodes
    for node in nodes:
        # A reboot can take longer than pods bear with an unreachable node.
        await bench.create(PODS, pod(f"wr-{node[-1]}", node, spec={"tolerations": [{"operator": "Exists"}]}))

    async def boots() -> dict[str, str]:
        found = await bench.client.list(NODES)
        return {each["metadata"]["name"]: each["status"]["nodeInfo"]["bootID"] for each in found}

    async def restarts(node: str) -> int:
        name = f"wr-{node[-1]}"
        status = (await bench.ready(name))["status"]["containerStatuses"][0]
        return int(status["restartCount"])

    async def reboot() -> None:
        for node in nodes:
            command = {"command": ["shutdown.exe", "/r", "/t", "30"], "args": []}
            trigger = pod(bench.name("w"), node, windows=SYSTEM, spec={"restartPolicy": "Never"})
            trigger["spec"]["containers"][0] |= command
            await bench.create(PODS, trigger)
        for node in nodes:
            await bench.sees(membership, node, "not ready")

    assert [await restarts(node) for node in nodes] == [0, 0, 0, 0]
    for fault, number in REBOOTS.items():
        await bench.sandbox.break_fault(fault, f"windows-{number}")
    before = await boots()
    await reboot()
    for node in (same, bare, fine):
        await bench.sees(membership, node, "ready")
    assert await restarts(fine) == await restarts(same) == 1
    after = await boots()
    assert {node for node in nodes if after[node] == before[node]} == {lost, same}
    assert await membership(bench, lost) == "not ready"
    async with bench.pod(bare):
        stale = await bench.client.get(PODS, f"wr-{bare[-1]}", NAMESPACE)
        assert stale["status"]["containerStatuses"][0]["restartCount"] == 0
        with pytest.raises(ExecFailed):
            await bench.run(f"wr-{bare[-1]}", "cmd", "/c", "ver")

    for fault in REBOOTS:
        await bench.sandbox.heal_fault(fault)
    await bench.sees(membership, lost, "ready")
    assert [await restarts(node) for node in (lost, same, bare, fine)] == [1, 1, 1, 1]
    before = await boots()
    await reboot()
    for node in nodes:
        await bench.sees(membership, node, "ready")
    assert [await restarts(node) for node in nodes] == [2, 2, 2, 2]
    after = await boots()
    assert not [node for node in nodes if after[node] == before[node]]


@in_one_loop
async def test_many_pods_one_after_the_other_go_wrong(bench: Bench) -> None:
    """Faults that begin when dozens of pods came and went: each on a node of its own, and one node without any."""
    stays = {f"windows-{number}": pod(f"wx-{number}", f"windows-{number}") for number in (*CHURNED.values(), 6)}
    for each in stays.values():
        await bench.create(PODS, each)
    for each in stays.values():
        await bench.ready(each["metadata"]["name"])
    for fault, number in CHURNED.items():
        await bench.sandbox.break_fault(fault, f"windows-{number}")

    async def churn(node: str) -> str:
        """What becomes of sixty pods, ten at a time."""
        seen: set[str] = set()
        for _ in range(6):
            names = [bench.name("w") for _ in range(10)]
            for name in names:
                await bench.create(PODS, pod(name, node))

            async def all_ready(names: list[str] = names) -> bool:
                return all([await bench.if_ready(name, NAMESPACE) for name in names])

            if not await bench.until(all_ready, SHORT):
                seen.add("not started")
            found = await bench.client.list(PODS, NAMESPACE, labels=f"node={node}")
            held = [raw["status"].get("podIP") for raw in found if raw["status"].get("podIP")]
            seen |= {"shared address"} if len(set(held)) < len(held) else set()
            for name in names:
                await bench.client.delete(PODS, name, NAMESPACE)

            async def all_gone(names: list[str] = names) -> bool:
                return not any([await bench.client.find(PODS, name, NAMESPACE) for name in names])

            if not await bench.until(all_gone, SHORT):
                seen.add("not gone")
        return ",".join(sorted(seen))

    async def left(node: str) -> bool:
        found = await bench.client.list(PODS, NAMESPACE, labels=f"node={node}")
        return len(found) == 1

    outcomes = dict(zip(stays, await asyncio.gather(*map(churn, stays)), strict=True))
    expected = {"windows-3": "not gone", "windows-4": "shared address", "windows-5": "not started", "windows-6": ""}
    assert outcomes == expected
    for fault in CHURNED:
        await bench.sandbox.heal_fault(fault)
    for node in stays:
        assert await bench.until(partial(left, node)), node
    assert set(await asyncio.gather(*map(churn, stays))) == {""}, "healed"
    for each in stays.values():
        await bench.client.delete(PODS, each["metadata"]["name"], NAMESPACE, grace=0)


@in_one_loop
async def test_reboots_and_tokens_go_wrong(bench: Bench) -> None:
    """On nodes of their own, at the same time: both take cluster minutes."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_tokens_are_not_rotated_on_one_node(bench))
        group.create_task(_reboots_go_wrong(bench))

"""Faults that wait for a reboot: the node is well until then, broken after it, and well again when healed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from sandbox.faults.bench import NAMESPACE, SYSTEM, Bench, new_bench, pod
from sandbox.faults.node_cases import membership
from sandbox.faults.reboot_cases import REBOOT_CASES, TOLERATIONS, RebootCase, witness
from winready.cluster.resources import CONFIG_MAPS, NODES, PODS

in_one_loop = pytest.mark.asyncio(loop_scope="module")
HERE, THERE = "windows-5", "windows-6"
CASES = [case for case in REBOOT_CASES if case.probe is not membership]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def _bench() -> AsyncIterator[Bench]:
    async with new_bench() as bench:
        for node in (HERE, THERE):
            made = witness(node)
            name = made["metadata"]["name"]
            await bench.create(CONFIG_MAPS, {"metadata": {"name": name}, "data": {"value": "first"}})
            await bench.create(PODS, made)
        for node in (HERE, THERE):
            await bench.ready(witness(node)["metadata"]["name"])
        yield bench


@pytest_asyncio.fixture(loop_scope="module")
async def bench(_bench: Bench) -> AsyncIterator[Bench]:
    """The shared sandbox; both nodes have what is looked for after their reboot."""
    for node in (HERE, THERE):
        for folder in ("scratch", "host"):
            await _bench.run(witness(node)["metadata"]["name"], "cmd", "/c", f"echo kept>C:\\{folder}\\f.txt")
    yield _bench
    await _bench.sandbox.heal_fault()


async def boot(bench: Bench, node: str) -> int:
    """How often the machine was started."""
    return int((await bench.client.get(NODES, node))["status"]["nodeInfo"]["bootID"])


async def reboot(bench: Bench, *nodes: str) -> None:
    """Ask for reboots from the nodes themselves, and see them go."""
    for node in nodes:
        trigger = pod(bench.name("w"), node, windows=SYSTEM, spec={"restartPolicy": "Never", **TOLERATIONS})
        trigger["spec"]["containers"][0] |= {"command": ["shutdown.exe", "/r", "/t", "30"], "args": []}
        await bench.create(PODS, trigger)
    for node in nodes:
        await bench.sees(membership, node, "not ready")


async def rebooted(bench: Bench) -> None:
    """Both nodes are back, and so is whatever comes back on them."""
    await reboot(bench, HERE, THERE)
    for node in (HERE, THERE):
        await bench.sees(membership, node, "ready")
    await bench.ready(witness(THERE)["metadata"]["name"])
    await bench.until(lambda: bench.if_ready(witness(HERE)["metadata"]["name"], NAMESPACE), 300.0)


@in_one_loop
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.fault)
async def test_a_fault_of_reboots_begins_with_one(bench: Bench, case: RebootCase) -> None:
    await bench.sees(case.probe, HERE, case.healthy)
    await bench.sandbox.break_fault(case.fault, HERE)
    assert await case.probe(bench, HERE) == case.healthy
    await rebooted(bench)
    async with asyncio.TaskGroup() as group:
        group.create_task(bench.sees(case.probe, HERE, case.broken))
        group.create_task(bench.sees(case.probe, THERE, case.healthy))
    await bench.sandbox.heal_fault(case.fault)
    if case.again:
        await rebooted(bench)
    if case.fault != "reboot.windows.disk-wiped":
        await bench.sees(case.probe, HERE, case.healthy)


@in_one_loop
async def test_a_node_falls_once_more_and_another_takes_its_time(bench: Bench) -> None:
    await bench.sandbox.break_fault("reboot.windows.falls-again", HERE)
    await bench.sandbox.break_fault("reboot.windows.slow", THERE)
    falls, slow = await boot(bench, HERE), await boot(bench, THERE)
    await reboot(bench, HERE, THERE)
    await bench.sees(membership, HERE, "ready")
    assert await boot(bench, THERE) == slow, "eight minutes are longer than any other reboot"
    await bench.sees(membership, HERE, "not ready")
    await bench.sees(membership, HERE, "ready")
    await bench.sees(membership, THERE, "ready")
    assert (await boot(bench, HERE), await boot(bench, THERE)) == (falls + 2, slow + 1)

"""Reboots as `core.storage.reboot-recovery` sees them, where no fault of the sandbox shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from engine.stage import Stage
from winready.cluster.client import Client
from winready.cluster.resources import NODES
from winready.engine.outcomes import RequirementResult
from winready_sandbox.plan import Plan
from winready_sandbox.up import Sandbox
from winready_sandbox.virtual_time import VirtualTimeLoop

REBOOT = "core.storage.reboot-recovery"
pytestmark = pytest.mark.virtual_time


@contextmanager
def cluster(plan: Plan, *faults: str) -> Iterator[Stage]:
    """A cluster of its own: its nodes are never the same again."""

    async def enter() -> None:
        await sandbox.__aenter__()
        await sandbox.settled()
        for fault in faults:
            await sandbox.break_fault(fault)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        sandbox = Sandbox(plan)
        runner.run(enter())
        yield Stage(runner, sandbox)
        runner.run(sandbox.__aexit__(None, None, None))


def reboot(stage: Stage) -> RequirementResult:
    return stage.play(REBOOT, allow_disruptive=True).results[REBOOT]


def test_pods_that_are_replaced_instead_of_restarted_are_as_good() -> None:
    with cluster(Plan(name="graceful", shutdown_grace=20, shutdown_grace_critical=10)) as stage:
        found = reboot(stage)
    assert found.outcome == "passed", found.reason
    assert [found.evidence.facts[f"reboot of windows-{n}"]["pods_kept"] for n in (1, 2)] == [0, 0]


def test_what_did_not_work_before_is_not_asked_for_after_it() -> None:
    with cluster(Plan(name="before"), "dns.windows.no-search-path") as stage:
        found = reboot(stage)
    assert found.outcome == "passed", found.reason
    (said,) = [text for name, text in found.evidence.facts.items() if name.startswith("did not work before")]
    assert said[0].startswith("reaches a service by its short name")


def test_what_only_one_pod_of_a_node_could_do_before_is_a_finding_and_no_node_is_rebooted() -> None:
    with cluster(Plan(name="neighbours"), "link.windows.first-pod-gets-out") as stage:
        found = reboot(stage)
    assert found.outcome == "failed", found.reason
    assert "before the reboot of node windows-1 Windows pod boot-1-" in found.reason
    assert "which Windows pod wc-1 on node windows-1 does" in found.reason
    assert not [name for name in found.evidence.facts if name.startswith("reboot of")]


def test_a_label_that_is_gone_is_a_finding_and_no_file_stays_on_the_nodes() -> None:
    with cluster(Plan(name="labels")) as stage:
        kubelet = stage.sandbox.fleet.kubelets["windows-2"]

        async def label(client: Client) -> None:
            await client.patch(NODES, kubelet.name, {"metadata": {"labels": {"example.com/pool": "web"}}})

        async def forget() -> None:
            await kubelet.client.patch("nodes", kubelet.name, {"metadata": {"labels": {"example.com/pool": None}}})

        stage.do(label)
        kubelet.on_boot = forget
        found = reboot(stage)
        machines = [each.machine for each in stage.sandbox.fleet.kubelets.values() if each.machine.os == "windows"]
        kept = [machine.name for machine in machines if machine.files.exists("C:\\winready")]
    assert found.outcome == "failed"
    assert "node windows-2 is not as it was before its reboot: label example.com/pool is gone" in found.reason
    assert kept == []

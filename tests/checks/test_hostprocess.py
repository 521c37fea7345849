"""Extend.HostProcess on a healthy sandbox, on older runtimes, and where something is missing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from engine.stage import Played, Stage
from winready.cluster.client import Client
from winready.engine.outcomes import RequirementResult
from winready_sandbox.machine.machine import Machine

CATEGORY = ("P1", "P2", "P3", "P4", "P5", "P6")
JWT = re.compile(r"eyJ[A-Za-z0-9_-]{10,}\.")


def results(played: Played) -> dict[str, RequirementResult]:
    return {name.rpartition(".")[2]: result for name, result in played.results.items()}


def machines(stage: Stage) -> list[Machine]:
    return [each.machine for each in stage.sandbox.fleet.kubelets.values() if each.machine.os == "windows"]


@contextmanager
def broken(stage: Stage, fault: str, node: str = "windows-1") -> Iterator[None]:
    async def change(_: Client) -> None:
        await stage.sandbox.break_fault(fault, node)

    async def heal(_: Client) -> None:
        await stage.sandbox.heal_fault()

    stage.do(change)
    try:
        yield
    finally:
        stage.do(heal)


def told(result: RequirementResult) -> str:
    return "\n".join(f"{probe.title}: {probe.observed}" for probe in result.evidence.probes)


def test_all_pass_and_nodes_are_afterwards_as_they_were(stage: Stage) -> None:
    def state() -> list[object]:
        hosts = [each.windows_host for each in machines(stage)]
        return [
            (list(host.hns.networks), dict(host.hns.endpoints), dict(host.hns.namespaces), host.groups, host.firewall)
            for host in hosts
        ]

    before = json.dumps(state(), default=str)
    played = stage.play(*CATEGORY)
    found = results(played)
    assert {result.outcome for result in found.values()} == {"passed"}, [r.reason for r in found.values()]
    assert json.dumps(state(), default=str) == before
    assert not played.record.leftovers
    whole = json.dumps([told(result) for result in found.values()]) + str(played.told)
    assert not JWT.search(whole), "tokens stay on the node"
    for node in ("windows-1", "windows-2"):
        assert f"its objects on node {node} are alone touched" in told(found["host-networking"])
        seen = found["network-service"].evidence.facts[f"HNS networks that Network Service sees on {node}"]
        assert seen in ("2", "3"), "that of the other check may be there at the time"
    assert played.record.windows_pods_started == 2 + 2 + 2 + 2 + 2, "clients, servers, hosts, and one for each user"


def test_only_objects_of_its_own_are_named_and_a_foreign_one_that_goes_is_noticed(stage: Stage) -> None:
    with broken(stage, "machine.windows.hns-removes-others"):
        result = results(stage.play("P2"))["host-networking"]
    own = result.evidence.facts["identifiers on windows-1"]
    assert isinstance(own, dict)
    scripts = [" ".join(probe.command) for probe in result.evidence.probes if probe.node == "windows-1"]
    named = {name for script in scripts for name in re.findall(r"\[guid\]'([^']+)'", script)}
    assert named == set(own.values())
    assert result.outcome == "failed"
    assert "on node windows-1 lost objects of others while it removed its own" in result.reason
    assert "windows-2" not in result.reason


def test_objects_that_stay_are_told_as_left_behind(stage: Stage) -> None:
    with broken(stage, "machine.windows.hns-keeps-deleted"):
        played = stage.play("P2")
    assert "still sees the network, endpoint, namespace" in results(played)["host-networking"].reason
    assert any("host networking objects" in text and "windows-1" in text for text in played.record.leftovers)
    hns = machines(stage)[0].windows_host.hns
    hns.endpoints.clear()
    hns.namespaces.clear()
    hns.networks = {name: each for name, each in hns.networks.items() if each.type != "Private"}


def test_a_policy_that_hns_refuses_on_a_private_network_is_not_called_broken(stage: Stage) -> None:
    hns = machines(stage)[0].windows_host.hns
    hns.acl_on_private = False
    try:
        played = stage.play("P2")
    finally:
        hns.acl_on_private = True
    result = results(played)["host-networking"]
    assert result.outcome == "blocked", result.reason
    assert "on node windows-1 makes a network, an endpoint and a namespace" in result.reason
    assert "0x803B000D" in result.reason
    assert not hns.endpoints
    assert not hns.namespaces
    assert not played.record.leftovers


@pytest.mark.parametrize(
    ("containerd", "outcome", "words"),
    [
        ("1.6.33", "passed", "folder=C:\\C\\"),
        ("1.7.20", "passed", "folder=C:\\var\\run\\secrets"),
        ("1.5.18", "not-applicable", "containerd 1.6 is needed"),
    ],
)
def test_the_mounted_account_is_found_where_the_runtime_puts_it(
    staged: Callable[..., Stage], containerd: str, outcome: str, words: str
) -> None:
    played = staged(containerd=containerd, windows=1).play("P1")
    result = results(played)["api-access"]
    assert result.outcome == outcome, result.reason
    assert words in told(result) + result.reason


def test_a_service_address_that_leaves_the_node_out_is_told_from_a_bad_token(stage: Stage) -> None:
    with broken(stage, "service-proxy.windows.host-left-out"):
        result = results(stage.play("P1"))["api-access"]
    assert "reaches the API server at 10.250.0." in result.reason
    assert "but not through its service address" in result.reason
    with broken(stage, "volumes.windows.empty-files"):
        result = results(stage.play("P1"))["api-access"]
    assert "hp-1 on node windows-1 finds no token in C:\\var\\run\\secrets" in result.reason


def test_calls_that_get_lost_now_and_then_are_a_share_of_many(stage: Stage) -> None:
    with broken(stage, "service-proxy.windows.every-tenth-lost"):
        result = results(stage.play("P1"))["api-access"]
    assert result.outcome == "failed"
    assert "hp-1 on node windows-1 reaches the API server and loses some of its calls" in result.reason
    assert "% lost (bound 5%)" in result.reason
    assert "look at the service proxy on node windows-1" in result.next_step
    assert "hp-2 goes on calling the API server: 12 of 12 connections answered" in told(result)


def test_a_firewall_that_heeds_no_rules_of_ours_is_named(stage: Stage) -> None:
    with broken(stage, "machine.windows.firewall-ignores-local-rules"):
        result = results(stage.play("P6"))["bind-host-interface"]
    assert result.outcome == "failed"
    assert "does a policy forbid own rules?" in result.next_step
    assert "hp-1 sees that bind-1 listens on node windows-1: 0.0.0.0" in told(result), "it is bound all the same"
    assert all(not rule.added for each in machines(stage) for rule in each.windows_host.firewall)


def test_without_the_right_to_open_the_firewall_nothing_is_said_about_it(stage: Stage) -> None:
    with broken(stage, "runtime.windows.hostprocess-unprivileged"):
        result = results(stage.play("P6"))["bind-host-interface"]
    assert result.outcome == "blocked", result.reason
    assert "no rule for that port could be added to the firewall of windows-1" in result.reason
    assert "SYSTEM" in result.next_step


def test_one_reboot_serves_two_requirements(stage: Stage) -> None:
    def boots() -> list[str]:
        return [machine.boot_id for machine in machines(stage)]

    before = boots()
    played = stage.play("S6", "P7", allow_disruptive=True)
    found = results(played)
    assert {result.outcome for result in found.values()} == {"passed"}, [r.reason for r in found.values()]
    assert boots() == [str(int(boot) + 1) for boot in before]
    assert "rebooted for core.storage.reboot-recovery" in told(found["node-rejoins"])
    alone = results(stage.play("P7", allow_disruptive=True))["node-rejoins"]
    assert alone.outcome == "passed", alone.reason
    assert boots() == [str(int(boot) + 2) for boot in before]
    assert "node windows-2 reboots" in told(alone)


def test_a_network_that_never_worked_is_not_lost_by_a_reboot(stage: Stage) -> None:
    before = [machine.boot_id for machine in machines(stage)]
    with broken(stage, "service-proxy.linux.not-programmed", "linux-1"):
        alone = results(stage.play("P7", allow_disruptive=True))["node-rejoins"]
        assert [machine.boot_id for machine in machines(stage)] == before
        after = results(stage.play("S6", "P7", allow_disruptive=True))
    assert alone.outcome == "blocked", alone.reason
    assert "new Windows pod before-1 on node windows-1 before its reboot" in alone.reason
    assert alone.next_step == "repair the pod network first; no node was rebooted"
    assert after["reboot-recovery"].outcome == "passed", after["reboot-recovery"].reason
    assert after["node-rejoins"].outcome == "blocked", after["node-rejoins"].reason
    assert "tried before it did not work either (from Linux)" in after["node-rejoins"].reason

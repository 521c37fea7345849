"""Extend.Worker: advice about nodes, on healthy ones, and on ones that are configured in other ways."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from checks.test_hostprocess import broken, machines, results, told
from engine.stage import Stage


def test_all_pass(stage: Stage) -> None:
    found = results(stage.play("W1", "W2", "W3", "W4"))
    assert {result.outcome for result in found.values()} == {"passed"}, [r.reason for r in found.values()]
    pings = told(found["node-ping"])
    assert pings.count("answers a ping of node windows-") == 6, "three others for each of two"
    assert pings.count("answers a ping of node linux-") == 4
    own = told(found["own-nodeport"])
    for name in ("windows-2", "linux-2"):
        assert f"node {name} reaches NodePorts on its own address" in own
        assert f"node {name} goes on reaching NodePorts on its own address: windows tcp at 10.250." in own
    assert "12 of 12 datagrams answered" in own
    assert "SSH-2.0-OpenSSH_for_Windows" in told(found["remote-access"])


@pytest.mark.parametrize(
    ("processes", "paths", "outcome"),
    [
        (["containerd.exe"], [], "passed"),
        (["%ProgramFiles%\\containerd\\*.exe"], [], "passed"),
        ([], ["C:\\PROGRAM FILES\\containerd\\"], "passed"),
        ([], ["%ProgramFiles%\\*"], "passed"),
        (["C:\\k\\containerd.exe"], ["C:\\Program Files\\containerd-old"], "failed"),
        (
            ['x","paths":["C:\\Program Files'],
            ['"},{\u001b[2J\r\n{"paths":["C:\\Program Files\\containerd"]}'],
            "failed",
        ),
        (["N/A: Must be an administrator to view exclusions"], [], "blocked"),
    ],
)
def test_exclusions_are_read_as_defender_reads_them(
    stage: Stage, processes: list[str], paths: list[str], outcome: str
) -> None:
    defender = machines(stage)[1].windows_host.defender
    before = defender.exclusion_processes, defender.exclusion_paths
    defender.exclusion_processes, defender.exclusion_paths = processes, paths
    try:
        result = results(stage.play("W1"))["defender-exclusions"]
    finally:
        defender.exclusion_processes, defender.exclusion_paths = before
    assert result.outcome == outcome, result.reason
    assert outcome == "passed" or "windows-2" in result.reason


@pytest.mark.parametrize(
    ("running", "paths", "outcome"),
    [
        (True, ["C:\\var\\lib\\rancher\\rke2"], "passed"),
        (True, ["C:\\Program Files\\containerd"], "failed"),
        (False, [], "blocked"),
    ],
)
def test_a_runtime_that_is_no_service_is_found_by_its_process(
    stage: Stage, running: bool, paths: list[str], outcome: str
) -> None:
    host = machines(stage)[1].windows_host
    before = host.services, host.defender.exclusion_processes, host.defender.exclusion_paths
    host.services = [each for each in host.services if each.name != "containerd"]
    host.programs = ["C:\\var\\lib\\rancher\\rke2\\bin\\containerd.exe"] if running else []
    host.defender.exclusion_processes, host.defender.exclusion_paths = [], paths
    try:
        result = results(stage.play("W1"))["defender-exclusions"]
    finally:
        host.services, host.defender.exclusion_processes, host.defender.exclusion_paths = before
        host.programs = []
    assert result.outcome == outcome, result.reason
    assert outcome == "passed" or "windows-2" in result.reason


def test_a_defender_that_does_not_run_scans_nothing(stage: Stage) -> None:
    defenders = [machine.windows_host.defender for machine in machines(stage)]
    try:
        defenders[0].running = False
        assert results(stage.play("W1"))["defender-exclusions"].outcome == "passed", "it runs on the other node"
        defenders[1].running = False
        result = results(stage.play("W1"))["defender-exclusions"]
        assert (result.outcome, "runs on no judged" in result.reason) == ("not-applicable", True)
    finally:
        for each in defenders:
            each.running = True


def test_one_way_in_is_enough_and_an_open_port_is_not(stage: Stage) -> None:
    ssh = machines(stage)[0].windows_host.service("sshd")
    assert ssh is not None
    ssh.state = "Stopped"
    try:
        result = results(stage.play("W4"))["remote-access"]
    finally:
        ssh.state = "Running"
    assert result.outcome == "passed"
    assert "SSH on node windows-1 answers lh-1: the port is open and says nothing" in told(result)
    with broken(stage, "machine.windows.remote-access-mute"):
        result = results(stage.play("W4"))["remote-access"]
    assert result.outcome == "failed"
    assert "nobody gets to node windows-1" in result.reason
    assert "the port is open and says nothing" in result.reason


def test_remote_access_needs_no_hostprocess_pods(staged: Callable[..., Stage]) -> None:
    found = results(staged(containerd="1.5.18").play("W1", "W2", "W3", "W4"))
    assert found.pop("remote-access").outcome == "passed"
    assert {result.outcome for result in found.values()} == {"not-applicable"}, [r.reason for r in found.values()]


def test_the_firewall_is_told_from_the_network(stage: Stage) -> None:
    with broken(stage, "machine.windows.pings-dropped"):
        result = results(stage.play("W2"))["node-ping"]
    assert "its port 10250 is open" in result.reason
    assert "firewall of node windows-1" in result.next_step
    with broken(stage, "link.windows.one-way-out"):
        result = results(stage.play("W3"))["own-nodeport"]
    assert (result.outcome, "without a service either" in result.reason) == ("blocked", True)
    with broken(stage, "service-proxy.windows.own-nodeport-dead"):
        result = results(stage.play("W3"))["own-nodeport"]
    assert result.outcome == "failed"
    assert "documents NodePorts from the Windows node itself as a limitation" in result.next_step


def test_a_share_of_lost_connections_is_told_from_a_dead_port(stage: Stage) -> None:
    with broken(stage, "service-proxy.windows.every-tenth-lost"):
        result = results(stage.play("W3"))["own-nodeport"]
    assert result.outcome == "failed"
    assert "node windows-1 reaches, and does not go on to reach, NodePorts on its own address" in result.reason
    assert "% lost (bound 5%)" in result.reason
    assert "windows-2" not in result.reason


def test_a_pod_that_is_not_on_the_network_of_its_node_says_nothing_of_its_nodeports(stage: Stage) -> None:
    with broken(stage, "runtime.windows.hostprocess-own-address"):
        result = results(stage.play("W3"))["own-nodeport"]
    assert result.outcome == "blocked", result.reason
    assert "hp-1 on node windows-1 has the address 10.244." in result.reason
    assert result.next_step == "see extend.hostprocess.node-ip first"

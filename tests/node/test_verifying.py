"""``winready node verify``: one node is waited for and judged, and no other one."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli.conftest import SPEED, CommandLine
from node.sandboxes import ask, call, command_line, node_cluster
from winready.cli.node_verify import verify
from winready.cli.status import status
from winready.cluster.client import Client
from winready.cluster.resources import NODES
from winready.engine.selection import Selection
from winready.node.verifying import NotReady, concerning_one_node, unmet
from winready.spec.loader import load_standard

__all__ = ["command_line", "node_cluster"]
NODE = "windows-2"
QUICK = ["--requirement", "core.network.windows-to-linux-pod-ip", "--time-scale", SPEED]


def patch(kubeconfig: str, body: dict[str, Any]) -> None:
    ask(kubeconfig, lambda client: client.patch(NODES, NODE, body))


@pytest.fixture
def taken_back(node_cluster: str) -> Iterator[str]:
    """A cluster whose node is as it was, afterwards."""
    yield node_cluster
    patch(node_cluster, {"spec": {"unschedulable": None, "taints": None}})


def test_exactly_the_named_node_is_judged_and_the_report_is_written(node_cluster: str, tmp_path: Path) -> None:
    result = call(verify, node_cluster, NODE, *QUICK, "--report-dir", str(tmp_path), "-o", "json")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["verdict"] == "Pass"
    assert [item["outcome"] for item in record["requirements"]] == ["passed"]
    assert record["plan"]["windows_nodes"] == [NODE]
    (folder,) = tmp_path.iterdir()
    assert {"run.json", "report.html", "junit.xml"} <= {path.name for path in folder.iterdir()}


def test_a_node_that_is_not_ready_yet_is_waited_for(taken_back: str, tmp_path: Path) -> None:
    taint = {"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"}
    patch(taken_back, {"spec": {"taints": [taint]}})

    def later() -> None:
        time.sleep(1.5)
        patch(taken_back, {"spec": {"taints": None}})

    friend = threading.Thread(target=later)
    friend.start()
    result = call(verify, taken_back, NODE, *QUICK, "--report-dir", str(tmp_path))
    friend.join()
    assert result.exit_code == 0, result.output
    assert f"waiting: node {NODE}: it is tainted node.cloudprovider.kubernetes.io/uninitialized" in result.stdout


def recorded(folder: Path) -> dict[str, Any]:
    """The record of the only run in a folder, which every other form of it goes with."""
    (run,) = folder.iterdir()
    assert {"run.json", "journal.jsonl", "report.html", "junit.xml"} <= {path.name for path in run.iterdir()}
    record: dict[str, Any] = json.loads((run / "run.json").read_bytes())
    assert 'failures="1"' in (run / "junit.xml").read_text()
    assert (record["verdict"], record["exit_code"]) == ("Fail", 1)
    return record


def test_a_node_that_never_comes_fails_with_a_report(node_cluster: str, tmp_path: Path) -> None:
    result = call(verify, node_cluster, "windows-9", *QUICK, "--timeout", "1s", "--report-dir", str(tmp_path))
    assert result.exit_code == 1, result.output
    assert result.stdout.splitlines()[-2].startswith("Fail"), result.stdout
    (only,) = recorded(tmp_path)["requirements"]
    assert (only["outcome"], only["reason"]) == ("failed", "no node windows-9 has joined yet after 1s")
    assert only["expected"] == "node windows-9 is Ready within 1s"
    assert only["observed"].startswith("nodes: linux-1, ")
    assert "winready node preflight" in only["next_step"]
    assert not recorded(tmp_path).get("windows_pods")
    (folder,) = tmp_path.iterdir()
    shown = CliRunner().invoke(status, [str(folder)])
    assert (shown.exit_code, shown.stdout.startswith("Fail")) == (1, True), shown.output


def test_what_does_not_apply_does_not_fail_with_a_node_that_never_comes(node_cluster: str, tmp_path: Path) -> None:
    arguments = ["--profile", "full", "--timeout", "1s", "--report-dir", str(tmp_path), "-o", "json"]
    result = call(verify, node_cluster, "windows-9", *arguments)
    assert result.exit_code == 1, result.output
    outcomes = {item["outcome"] for item in json.loads(result.stdout)["requirements"]}
    assert outcomes == {"failed", "not-applicable"}


def test_a_node_whose_kubelet_is_silent_fails_with_its_conditions(node_cluster: str, tmp_path: Path) -> None:
    name = "silent"
    labels = {"kubernetes.io/os": "windows", "kubernetes.io/hostname": name}
    condition = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped."}

    async def make(client: Client) -> None:
        await client.create(NODES, {"metadata": {"name": name, "labels": labels}})
        await client.patch(NODES, name, {"status": {"conditions": [condition]}}, subresource="status")

    ask(node_cluster, make)
    arguments = [*QUICK, "--timeout", "1s", "--report-dir", str(tmp_path), "-o", "json"]
    try:
        result = call(verify, node_cluster, name, *arguments)
    finally:
        ask(node_cluster, lambda client: client.delete(NODES, name))
    assert result.exit_code == 1, result.output
    assert json.loads(result.stdout)["verdict"] == "Fail"
    (only,) = recorded(tmp_path)["requirements"]
    assert "node silent: it is not Ready (" in only["reason"]
    assert "Ready=Unknown (" in only["observed"]
    assert "the kubelet does not report" in only["next_step"]


def test_a_node_without_a_pod_network_is_told_where_to_look() -> None:
    ready = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "cni plugin not initialized"}
    full = {"type": "DiskPressure", "status": "True", "reason": "KubeletHasDiskPressure", "message": "C: is full"}
    raw = {"metadata": {"name": "w"}, "spec": {}, "status": {"conditions": [ready, full]}}
    why = unmet("w", NotReady("node w: it is not Ready", raw, []), "15m")
    assert why.reason == "node w: it is not Ready (after 15m)"
    assert why.observed.splitlines() == [
        "Ready=False (KubeletNotReady): cni plugin not initialized",
        "DiskPressure=True (KubeletHasDiskPressure): C: is full",
    ]
    assert "kubectl -n winready-node get pods -o wide --field-selector spec.nodeName=w" in why.next_step
    never = unmet("w", NotReady("x", {"metadata": {"name": "w"}, "spec": {}}, []), "15m")
    assert "its kubelet has never reported" in never.observed


def test_a_node_that_stays_tainted_fails_and_a_full_disk_is_said(taken_back: str, tmp_path: Path) -> None:
    taint = {"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"}
    patch(taken_back, {"spec": {"taints": [taint]}})
    result = call(verify, taken_back, NODE, *QUICK, "--timeout", "1s", "--report-dir", str(tmp_path))
    assert result.exit_code == 1, result.output
    (only,) = recorded(tmp_path)["requirements"]
    assert "taint node.cloudprovider.kubernetes.io/uninitialized:NoSchedule" in only["observed"]
    assert f"kubectl describe node {NODE}" in only["next_step"]
    (tmp_path / "file").write_text("")
    nowhere = call(verify, taken_back, NODE, *QUICK, "--timeout", "1s", "--report-dir", str(tmp_path / "file"))
    assert (nowhere.exit_code, "cannot be written" in nowhere.stderr) == (2, True)


def test_what_waiting_cannot_change_is_said_at_once(taken_back: str, tmp_path: Path) -> None:
    arguments = [*QUICK, "--report-dir", str(tmp_path)]
    linux = call(verify, taken_back, "linux-1", *arguments)
    assert (linux.exit_code, "linux-1 is a linux node" in linux.stderr) == (2, True)
    patch(taken_back, {"spec": {"unschedulable": True}})
    cordoned = call(verify, taken_back, NODE, *arguments)
    assert (cordoned.exit_code, f"{NODE} is cordoned" in cordoned.stderr) == (2, True)
    two = call(verify, taken_back, NODE, "--requirement", "core.storage.reboot-recovery")
    assert (two.exit_code, "can be judged on one node" in two.stderr) == (2, True)
    unknown = call(verify, taken_back, NODE, "--requirement", "core.storage.reboots")
    assert (unknown.exit_code, "unknown requirement" in unknown.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_what_needs_two_nodes_or_disturbs_one_is_left_out() -> None:
    standard = load_standard()
    chosen = concerning_one_node(standard, Selection())
    left_out = {item.id for item in standard.requirements if standard.level(item) == "core"} - set(chosen)
    assert left_out == {"core.storage.reboot-recovery"}
    full = concerning_one_node(standard, Selection(profile="full"))
    assert "extend.worker.node-ping" in full
    assert not any(item.disruptive for item in standard.requirements if item.id in full)


def test_only_what_is_wrong_with_the_named_node_counts(
    command_line: CommandLine, node_cluster: str, tmp_path: Path
) -> None:
    broken = command_line("sandbox", "break", "link.windows.one-way-out", "--name", "node", "--node", "windows-1")
    assert broken.returncode == 0, broken.stderr
    results = {
        name: call(verify, node_cluster, name, *QUICK, "--report-dir", str(tmp_path)) for name in ("windows-1", NODE)
    }
    assert command_line("sandbox", "heal", "--name", "node").returncode == 0
    assert {name: result.exit_code for name, result in results.items()} == {"windows-1": 1, NODE: 0}
    assert results["windows-1"].stdout.splitlines()[-2].startswith("Fail"), results["windows-1"].stdout

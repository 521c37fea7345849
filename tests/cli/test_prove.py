"""`winready sandbox prove` as a user runs it, and the list of faults that it goes through."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

from click.testing import CliRunner

from winready.cli.main import cli
from winready.cli.prove import prove
from winready_sandbox.faults.table import FAULTS


def test_the_list_of_faults_says_who_must_notice_each() -> None:
    result = CliRunner().invoke(cli, ["sandbox", "faults", "-o", "json"])
    listed = {fault["name"]: fault for fault in json.loads(result.stdout)["faults"]}
    assert list(listed) == list(FAULTS)
    assert listed["volumes.windows.empty-files"] == {
        "name": "volumes.windows.empty-files",
        "description": FAULTS["volumes.windows.empty-files"].description,
        "requirements": ["core.storage.host-volumes", "extend.hostprocess.api-access"],
        "blocks": ["core.storage.token-rotation"],
        "parts": ["node.volumes"],
        "where": "windows",
    }
    text = CliRunner().invoke(cli, ["sandbox", "faults"]).stdout.splitlines()
    assert "core.network.dns-external" in text[text.index("dns.windows.external-dead") + 2]
    assert "nobody: whatever is verified must survive it" in text[text.index("api.slow") + 2]


def test_a_fault_is_proven_from_start_to_verdict() -> None:
    result = CliRunner().invoke(
        prove, ["--category", "core.network", "--fault", "dns.windows.no-search-path", "-ojson"]
    )
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert (document["missed"], document["false_alarms"]) == (0, 0)
    (proof,) = document["faults"]
    assert proof["node"] == "windows-1"
    declared = {name for name in proof["declared"] if name.startswith("core.")}
    assert {name for name, outcome in proof["outcomes"].items() if outcome == "failed"} == declared


def test_a_fault_of_an_extension_is_proven_without_naming_its_category() -> None:
    result = CliRunner().invoke(prove, ["--fault", "service-proxy.windows.ipv6-cluster-ip-dead", "-o", "json"])
    assert result.exit_code == 0, result.output
    (proof,) = json.loads(result.stdout)["faults"]
    judged = {name: outcome for name, outcome in proof["outcomes"].items() if not name.startswith("rule.")}
    assert {name.rpartition(".")[0] for name in judged} == {"extend.network"}
    assert {name for name, outcome in judged.items() if outcome == "failed"} == {
        "extend.network.windows-to-linux-service-ip-both-families",
        "extend.network.dual-stack",
    }


def test_a_pod_that_cannot_start_on_a_node_with_linux_containers_has_failed() -> None:
    arguments = ["--category", "core.storage", "--fault", "lcow.windows-pods-run-linux", "-o", "json"]
    result = CliRunner().invoke(prove, arguments)
    assert result.exit_code == 0, result.output
    outcomes = json.loads(result.stdout)["faults"][0]["outcomes"]
    for name in ("host-volumes", "shared-files", "token-rotation"):
        assert outcomes[f"core.storage.{name}"] == "failed", name


def test_sound_clusters_are_listed_beside_faults() -> None:
    arguments = ["--category", "core.scheduling", "--variant", "nodes.one-windows", "-o", "json"]
    result = CliRunner().invoke(prove, arguments)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert (document["faults"], document["missed"], document["false_alarms"]) == ([], 0, 0)
    (sound,) = document["healthy"]
    assert (sound["name"], sound["verdict"]) == ("nodes.one-windows", "Pass")
    assert sound["flags"] == ["--allow-small-cluster"]
    assert sound["waived"] == {"rule.cluster-size": "--allow-small-cluster"}
    assert sound["outcomes"]["rule.cluster-size"] == "failed"


def test_a_cluster_that_refuses_something_is_blocked_and_says_who_refused() -> None:
    names = ["refusing.webhook-for-controllers", "refusing.very-slow-pulls", "refusing.isolated-namespaces"]
    arguments = [
        "--category",
        "core.concurrent",
        "-o",
        "json",
        *(word for name in names for word in ("--variant", name)),
    ]
    result = CliRunner().invoke(prove, arguments)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["healthy"] == []
    reasons = {each["name"]: each["reasons"]["core.concurrent.ten-pods-service-ip"] for each in document["refusing"]}
    controllers, pulls, isolated = (reasons[name] for name in names)
    assert "a pod of Deployment ten cannot be created" in controllers
    assert "admission webhook pods.policy.example.com refuses it: this team may not run workloads" in controllers
    assert "is still pulling image registry.k8s.io/e2e-test-images/agnhost:2.63.0 on node windows-" in pulls
    assert "after 20 minutes" in pulls
    assert "NetworkPolicy default-deny isolates the pods of namespace" in isolated
    assert "network policies belong to the network team" in isolated


def test_sound_clusters_alone_and_a_fault_exclude_each_other() -> None:
    result = CliRunner().invoke(prove, ["--healthy", "--fault", "dns.windows.no-search-path"])
    assert result.exit_code == 2
    assert "--variant" in result.output
    assert "nobody.knows" in CliRunner().invoke(prove, ["--variant", "nobody.knows"]).output


def test_a_fault_that_nothing_verifies_is_no_proof() -> None:
    result = CliRunner().invoke(prove, ["--category", "core.storage", "--fault", "dns.windows.no-search-path"])
    assert result.exit_code == 2
    assert "dns.windows.no-search-path" in result.output


def test_a_killed_command_leaves_no_process_behind() -> None:
    command = [sys.executable, "-m", "winready", "sandbox", "prove", "--category", "core.storage", "--parallel", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
    for _ in range(3000):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    raise AssertionError("workers go on for nobody")

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
    assert {name for name, outcome in proof["outcomes"].items() if outcome == "failed"} == set(proof["declared"])


def test_a_pod_that_cannot_start_on_a_node_with_linux_containers_has_failed() -> None:
    arguments = ["--category", "core.storage", "--fault", "lcow.windows-pods-run-linux", "-o", "json"]
    result = CliRunner().invoke(prove, arguments)
    assert result.exit_code == 0, result.output
    outcomes = json.loads(result.stdout)["faults"][0]["outcomes"]
    for name in ("host-volumes", "shared-files", "token-rotation"):
        assert outcomes[f"core.storage.{name}"] == "failed", name


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

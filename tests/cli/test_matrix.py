"""``winready matrix --verify`` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from cli.conftest import CommandLine
from winready.report.schemas import SCHEMAS


def test_the_cluster_answers_and_a_run_folder_keeps_it(command_line: CommandLine, tmp_path: Path) -> None:
    command = ("matrix", "--verify", "--sandbox", "--report-dir", str(tmp_path), "-o", "json")
    result = command_line(*command, "--feature", "privileged", "--feature", "svc-clusterip", "--feature", "nfs")
    run = json.loads(result.stdout)
    assert result.returncode == 0, result.stderr
    found = {item["id"]: (item["outcome"], item["way"], item.get("works")) for item in run["features"]}
    assert found == {
        "privileged-containers": ("passed", "check", False),
        "nfs": ("not-applicable", "data", None),
        "svc-clusterip": ("passed", "requirement", True),
    }
    assert run["verdict_text"] == "Pass (partial: 2 of 24 core requirements)"
    assert run["selection"]["features"] == [item["id"] for item in run["features"]]
    folder = tmp_path / run["run_id"]
    assert json.loads((folder / "run.json").read_text()) == run
    jsonschema.Draft202012Validator(SCHEMAS["run"]()).validate(run)
    page = (folder / "report.html").read_text()
    assert 'id="feature-privileged-containers"' in page
    assert "Features of the support matrix" in page
    assert command_line("compare", str(folder), str(folder)).returncode == 0


def test_a_contradiction_is_told_first_and_fails_the_command(command_line: CommandLine, tmp_path: Path) -> None:
    command = ("matrix", "--verify", "--sandbox", "--report-dir", str(tmp_path))
    fault = "node.windows.offers-huge-pages@windows-2"
    result = command_line(*command, "--feature", "pod-status", "--feature", "hugepages", "--fault", fault)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "✗ feature hugepages failed (Huge pages)" in result.stdout
    assert "documented as never, yet it works here" in result.stdout
    assert "node windows-2 offers hugepages-2Mi" in result.stdout
    assert "1 of 2 features shown as documented, 1 failed, 1 contradiction" in result.stdout
    assert "no requirement was selected, so nothing could pass: features are advisory" in result.stdout
    assert command_line("status", "--report-dir", str(tmp_path)).returncode == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--sandbox",), "--sandbox goes with --verify"),
        (("--area", "pods"), "--area goes with --verify"),
        (("--verify", "--kubernetes", "1.34"), "--verify asks the cluster for its version"),
        (("--verify", "-o", "html"), "'winready report' makes html of the run"),
        (("--verify", "--feature", "teleport"), "no feature matches 'teleport'"),
        (("--verify", "--area", "network"), "did you mean 'networking'?"),
        (("--verify", "--fault", "api.slow"), "it goes with --sandbox"),
        (("--verify", "--test-directory", "."), "it goes with 'winready run'"),
    ],
)
def test_wrong_usage_says_what_to_write(command_line: CommandLine, arguments: tuple[str, ...], words: str) -> None:
    result = command_line("matrix", *arguments)
    assert result.returncode == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_a_cluster_that_is_away_is_our_trouble(command_line: CommandLine, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: t}}]\n"
    )
    command = ("matrix", "--verify", "--kubeconfig", str(kubeconfig), "--report-dir", str(tmp_path / "runs"))
    result = command_line(*command, "--feature", "probes")
    assert result.returncode == 3
    assert "Traceback" not in result.stderr

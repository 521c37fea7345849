"""``--active-directory`` on the command line: of plan, run and rbac."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from cli.conftest import CommandLine
from winready.cli.main import cli

OWN = r"""
domain: sandbox.test
credential_spec: webapp
allowed_share: \\10.250.0.254\webapp
denied_share: \\10.250.0.254\finance
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "domain.yaml"
    path.write_text(OWN)
    return path


@pytest.mark.parametrize("command", [["run", "--sandbox"], ["plan"], ["rbac"]], ids=lambda words: words[0])
def test_a_wrong_file_ends_the_command_before_anything_begins(command: list[str], file: Path) -> None:
    file.write_text(f"{OWN}password: hunter2-hunter2\n")
    result = CliRunner().invoke(cli, [*command, "--active-directory", str(file)])
    assert result.exit_code == 2
    assert f"error: {file}:6:1: 'password' looks like a secret" in result.output
    assert "winready spec schema --of active-directory" in result.output
    assert "hunter2" not in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r"\\10.250.0.254\webapp", r"\\u:Hunter2@files\webapp"),
        ("domain: sandbox.test", "domain: svc:Hunter2@sandbox.test"),
        ("credential_spec: webapp", "credential_spec: webapp@Hunter2"),
        ("denied_share: ", "svc@Hunter2: "),
        ("domain: sandbox.test", "schema: svc:Hunter2@sandbox.test"),
        ("domain: sandbox.test", "domain: *Hunter2"),
        ("domain: sandbox.test", 'domain: "\\qHunter2"'),
        ("domain: sandbox.test", "svc@Hunter2: a\nsvc@Hunter2: b"),
    ],
)
def test_a_value_that_may_hold_a_password_is_not_repeated(file: Path, old: str, new: str) -> None:
    assert old in OWN
    file.write_text(OWN.replace(old, new, 1))
    result = CliRunner().invoke(cli, ["rbac", "--active-directory", str(file)])
    assert result.exit_code == 2
    assert f"error: {file}:" in result.output
    assert "Hunter2" not in result.output


def rules(*arguments: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(cli, ["rbac", *arguments])
    assert result.exit_code == 0, result.output
    (role,) = [item for item in yaml.safe_load_all(result.stdout) if item["kind"] == "ClusterRole"]
    return list(role["rules"])


def test_rbac_grants_the_use_of_what_the_file_names_and_of_nothing_else(file: Path) -> None:
    plain, more = rules(), rules("--active-directory", str(file))
    assert not [rule for rule in plain if "use" in rule["verbs"] or "rolebindings" in rule["resources"]]
    (use,) = [rule for rule in more if "use" in rule["verbs"]]
    assert (use["resources"], use["resourceNames"]) == (["gmsacredentialspecs"], ["webapp"])
    file.write_text(f"{OWN}cluster_role: webapp-gmsa-user\n")
    bound = rules("--active-directory", str(file))
    assert not [rule for rule in bound if "use" in rule["verbs"]]
    (bind,) = [rule for rule in bound if "bind" in rule["verbs"]]
    assert (bind["resources"], bind["resourceNames"]) == (["clusterroles"], ["webapp-gmsa-user"])
    wrong = CliRunner().invoke(cli, ["rbac", "--for", "cleanup", "--active-directory", str(file)])
    assert wrong.exit_code == 2


def test_a_sandbox_with_a_domain_is_planned_and_judged_with_the_file(
    command_line: CommandLine, file: Path, tmp_path: Path
) -> None:
    config = command_line.sandbox("joined", "--active-directory")["kubeconfig"]
    try:
        selected = ["--kubeconfig", config, "--requirement", "A1", "-o", "json"]
        without = json.loads(command_line("plan", *selected).stdout)["requirements"][0]
        assert without["action"] == "not-applicable"
        given = ["--active-directory", str(file)]
        planned = json.loads(command_line("plan", *selected, *given).stdout)["requirements"][0]
        assert planned["action"] == "run"
        result = command_line("run", *selected, *given, "--time-scale", "25", "--report-dir", str(tmp_path / "runs"))
        assert result.returncode == 0, result.stdout
    finally:
        command_line("sandbox", "down", "--name", "joined")
    written = "".join(path.read_text() for path in (tmp_path / "runs").glob("*/*") if path.is_file())
    assert "sandbox.test" in written
    assert str(file) not in written

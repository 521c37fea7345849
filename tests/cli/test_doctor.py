"""What is known before the first pod: ``doctor``, and the same look of ``run``, ``plan`` and others."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from cli.conftest import CommandLine
from cli.test_run import _kubeconfig, left_behind
from winready.cluster.kubeconfig import find_target
from winready.report.schemas import SCHEMAS

LOOKING = (["doctor"], ["plan"], ["run"])
QUICK = "core.network.windows-to-linux-pod-ip"


@pytest.fixture(scope="module")
def small(command_line: CommandLine) -> str:
    """A cluster of one Linux and one Windows node."""
    return str(command_line.sandbox("small", "--linux", "1", "--windows", "1")["kubeconfig"])


@pytest.fixture(scope="module")
def without_windows(command_line: CommandLine) -> str:
    return str(command_line.sandbox("linux-only", "--windows", "0")["kubeconfig"])


def changed(kubeconfig: str, path: Path, cluster: dict[str, Any], user: dict[str, Any] | None) -> str:
    """A kubeconfig whose way to the cluster is another one."""
    config = yaml.safe_load(Path(kubeconfig).read_text())
    config["clusters"][0]["cluster"] |= cluster
    if user is not None:
        config["users"][0]["user"] = user
    path.write_text(yaml.safe_dump(config))
    return str(path)


def findings(output: str) -> dict[str, list[dict[str, Any]]]:
    """What doctor found, by subject, after its document was held against the published schema."""
    document = json.loads(output)
    jsonschema.Draft202012Validator(SCHEMAS["doctor"]()).validate(document)
    found: dict[str, list[dict[str, Any]]] = {}
    for each in document["findings"]:
        found.setdefault(each["subject"], []).append(each)
    return found


PLUGIN = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin-here",
                   "interactiveMode": "Never"}}  # fmt: skip


@pytest.mark.parametrize(
    ("way", "user", "code", "subject", "words"),
    [
        ({"server": "https://127.0.0.1:1"}, None, 3, "connection", "cannot be reached: Connection refused"),
        ({"server": "https://nowhere.invalid:6443"}, None, 3, "connection", "cannot be reached: "),
        ({"certificate-authority-data": None}, None, 3, "connection", "is not trusted: "),
        ({}, {"token": "expired"}, 3, "credentials", "does not accept the credentials"),
        ({}, {}, 3, "credentials", "system:anonymous"),
        ({}, PLUGIN, 2, "kubeconfig", "'no-such-plugin-here' did not start: No such file or directory"),
    ],
    ids=["refused", "unknown host", "untrusted", "wrong token", "anonymous", "no plug-in"],
)
def test_a_cluster_that_cannot_be_asked_is_one_sentence_and_one_code_everywhere(
    command_line: CommandLine,
    kubeconfig: str,
    tmp_path: Path,
    way: dict[str, Any],
    user: dict[str, Any] | None,
    code: int,
    subject: str,
    words: str,
) -> None:
    config = changed(kubeconfig, tmp_path / "config", way, user)
    runs, manifest = tmp_path / "runs", tmp_path / "pod.yaml"
    manifest.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: []}\n")
    for command in (["plan"], ["run", "--report-dir", str(runs)], ["cleanup"], ["lint", "--cluster", str(manifest)]):
        result = command_line(*command, "--kubeconfig", config)
        assert (result.returncode, result.stdout) == (code, ""), (command, result.stderr)
        first, remedy = [line for line in result.stderr.splitlines() if not line.startswith("waiting for")]
        assert first.startswith("error: ")
        assert words in first
        assert remedy.startswith("       ")
        assert " object at 0x" not in first
    # No record, no Fail, not even a folder.
    assert not runs.exists()
    result = command_line("doctor", "--kubeconfig", config, "-o", "json")
    assert result.returncode == code
    ((finding,),) = findings(result.stdout).values()
    assert (finding["level"], finding["subject"]) == ("problem", subject)
    assert finding["next_step"]


def test_a_good_cluster_is_found_good_and_nothing_is_started(command_line: CommandLine, kubeconfig: str) -> None:
    result = command_line("doctor", "--kubeconfig", kubeconfig, "--allow-disruptive", "-o", "json")
    assert result.returncode == 0, result.stderr
    found = findings(result.stdout)
    assert {each["level"] for subject, several in found.items() if subject != "images" for each in several} == {"ok"}
    assert set(found) == {"connection", "rights", "nodes", "size", "builds", "requirements", "images"}
    assert all("not known before the first pod" in each["message"] for each in found["images"] if each["level"] != "ok")
    assert left_behind(kubeconfig) == []


def test_a_flag_that_would_be_needed_is_named_by_doctor_plan_and_run(
    command_line: CommandLine, kubeconfig: str, tmp_path: Path
) -> None:
    reboot = "core.storage.reboot-recovery"
    for command in LOOKING:
        where = ["--report-dir", str(tmp_path)] if command == ["run"] else []
        result = command_line(*command, "--kubeconfig", kubeconfig, "--requirement", reboot, *where)
        assert result.returncode == 3
        assert result.stdout.count("it disturbs nodes and was not allowed") == (2 if command == ["run"] else 1)
        assert "add --allow-disruptive" in result.stdout


def test_a_run_that_cannot_pass_is_told_so_with_its_exit_code(command_line: CommandLine, kubeconfig: str) -> None:
    where = ["--kubeconfig", kubeconfig]
    told = command_line("doctor", *where)
    assert told.returncode == 3
    last = told.stdout.splitlines()[-1]
    assert last == "a run can start, but not pass: 1 requirement cannot be judged; 1 warning above"
    plain = json.loads(command_line("doctor", *where, "-o", "json").stdout)
    assert (plain["exit_code"], plain["runs"], plain["blocked"]) == (3, 23, ["core.storage.reboot-recovery"])
    assert command_line("plan", *where).returncode == 3
    # What was left out on purpose, the verdict calls partial.
    left_out = command_line("doctor", *where, "--skip", "core.storage.reboot-recovery")
    assert (left_out.returncode, left_out.stdout.splitlines()[-1]) == (0, "a run can start, and may pass")


def test_what_does_not_apply_is_told_once_by_doctor_and_plan(command_line: CommandLine, kubeconfig: str) -> None:
    both = "Windows nodes have pod addresses of one IP family only"
    for command in ("doctor", "plan"):
        told = command_line(command, "--kubeconfig", kubeconfig, "--profile", "full", "--allow-disruptive")
        assert told.returncode == 0
        assert told.stdout.count(both) == 1, command
        assert f"5 requirements do not apply here: {both}" in told.stdout


def test_a_cluster_that_is_too_small_is_told_at_the_start_with_the_flag(
    command_line: CommandLine, small: str, tmp_path: Path
) -> None:
    chosen = ["--kubeconfig", small, "--requirement", QUICK, "--time-scale", "25"]
    for command in LOOKING:
        result = command_line(*command, *chosen, "--report-dir", str(tmp_path / "runs"))
        assert result.returncode == 1, (command, result.stdout, result.stderr)
        assert "rule.cluster-size will fail: not qualified: 1 usable Linux and 1 usable Windows nodes" in result.stdout
        assert "add --allow-small-cluster to judge it all the same" in result.stdout
        if command == ["run"]:
            lines = result.stdout.splitlines()
            assert lines[0].startswith("problem: rule.cluster-size will fail")
        allowed = command_line(*command, *chosen, "--allow-small-cluster", "--report-dir", str(tmp_path / "allowed"))
        assert allowed.returncode == 0, (command, allowed.stdout, allowed.stderr)
        assert "problem" not in allowed.stdout


def test_a_cluster_without_windows_nodes_has_its_own_sentence(
    command_line: CommandLine, without_windows: str, tmp_path: Path
) -> None:
    for command in LOOKING:
        result = command_line(*command, "--kubeconfig", without_windows, "--report-dir", str(tmp_path))
        assert result.returncode == 1, (command, result.stdout, result.stderr)
        assert "the cluster has no Windows node\n" in result.stdout
        assert "'winready node bundle'" in result.stdout
        assert "kubectl get nodes" not in result.stdout
        # Told at the start of a run and at its end; never once for each of 24 requirements.
        assert result.stdout.count("the cluster has no Windows node") == (2 if command == ["run"] else 1)
    assert "■ 24 requirements and 4 rules blocked\n    the cluster has no Windows node\n" in result.stdout
    assert "    concerns: core.network." in result.stdout
    waived = command_line("plan", "--kubeconfig", without_windows, "--allow-small-cluster")
    assert waived.returncode == 3


def test_rights_that_are_missing_are_told_with_the_command_that_grants_them(
    command_line: CommandLine, kubeconfig: str, tmp_path: Path
) -> None:
    target = find_target(kubeconfig)
    assert target.ca is not None
    admin = yaml.safe_load(Path(kubeconfig).read_text())["users"][0]["user"]
    poor = changed(kubeconfig, tmp_path / "poor", {}, {**admin, "as": "nobody", "as-groups": ["system:authenticated"]})
    result = command_line("doctor", "--kubeconfig", poor, "--category", "core.network", "-o", "json")
    assert result.returncode == 3, result.stderr
    (finding,) = findings(result.stdout)["rights"]
    assert finding["level"] == "problem"
    assert "nodes" in finding["message"]
    assert "winready rbac" in finding["next_step"]


def test_a_wrong_selection_leaves_no_run_folder(command_line: CommandLine, tmp_path: Path) -> None:
    for wrong in (["--category", "core.netwrk"], ["--requirement", "N99x"], ["--requirement", "N1", "--skip", "N1"]):
        result = command_line("run", "--sandbox", *wrong, "--report-dir", str(tmp_path / "runs"))
        assert result.returncode == 2
        assert result.stderr.startswith("error: ")
    assert not (tmp_path / "runs").exists()


def test_a_run_on_a_good_sandbox_says_nothing_of_the_look(command_line: CommandLine, tmp_path: Path) -> None:
    result = command_line("run", "--sandbox", "--requirement", QUICK, "--report-dir", str(tmp_path))
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert result.stdout.splitlines()[0].startswith("Kubernetes v")


@pytest.fixture
def silent_server() -> Iterator[str]:
    """A port that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"https://127.0.0.1:{server.getsockname()[1]}"


def test_who_waits_is_told_for_what_and_an_interruption_leaves_nothing(
    command_line: CommandLine, kubeconfig: str, silent_server: str, tmp_path: Path
) -> None:
    config = changed(kubeconfig, tmp_path / "config", {"server": silent_server}, None)
    process = command_line.start("run", "--kubeconfig", config, "--report-dir", str(tmp_path / "runs"))
    assert process.stderr is not None
    assert process.stderr.readline() == f"waiting for the API server at {silent_server}\n"
    process.send_signal(signal.SIGTERM)
    printed, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (printed, errors) == ("", "interrupted before anything was started; there is nothing to clean up\n")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("words", [["cleanup"], ["lint", "--live"]], ids=lambda words: words[0])
def test_whoever_asks_a_silent_server_is_told_of_it(
    words: list[str], command_line: CommandLine, kubeconfig: str, silent_server: str, tmp_path: Path
) -> None:
    config = changed(kubeconfig, tmp_path / "config", {"server": silent_server}, None)
    process = command_line.start(*words, "--kubeconfig", config)
    assert process.stderr is not None
    assert process.stderr.readline() == f"waiting for the API server at {silent_server}\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130


def test_the_last_words_of_a_container_tell_why_it_did_not_start(command_line: CommandLine, tmp_path: Path) -> None:
    config, log = _kubeconfig(tmp_path / "config", "https://127.0.0.1:1", b"", "t"), tmp_path / "log"
    result = command_line("run", "--kubeconfig", config, "--publish", f"termination-log={log}", ARTIFACTS=str(tmp_path))
    assert result.returncode == 3
    assert log.read_text().startswith("not started: the API server at https://127.0.0.1:1 cannot be reached")
    full = command_line("run", "--kubeconfig", config, "--publish", "termination-log=/dev/full")
    assert (full.returncode, "Traceback" in full.stderr) == (3, False)


def test_every_option_of_a_run_is_one_of_plan_and_doctor() -> None:
    from winready.cli.doctor import doctor
    from winready.cli.plan import plan
    from winready.cli.run import run

    names = [{parameter.name for parameter in command.params} for command in (run, plan, doctor)]
    assert (
        names[0] - names[1] == names[0] - names[2] == {"dry_run", "publish", "prow", "metrics_file", "metrics_listen"}
    )

"""``winready run`` and what belongs to it, as a user runs them."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
import yaml

from cli.conftest import SPEED, CommandLine
from winready.cluster.client import Client
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import CLUSTER_ROLES, NAMESPACES, SERVICE_ACCOUNTS, Resource
from winready.engine import journal
from winready.engine.events import RequirementFinished
from winready.report.schemas import SCHEMAS

QUICK = "core.network.windows-to-linux-pod-ip"
LABEL = "winready.io/run"


def document(text: str) -> dict[str, Any]:
    """One JSON document and nothing else."""
    parsed: dict[str, Any] = json.loads(text)
    return parsed


def left_behind(kubeconfig: str) -> list[str]:
    async def ask() -> list[str]:
        async with Client.connect(find_target(kubeconfig)) as client:
            return [item["metadata"]["name"] for item in await client.list(NAMESPACES, labels=LABEL)]

    return asyncio.run(ask())


def test_core_network_passes_on_the_sandbox_with_proof(command_line: CommandLine, tmp_path: Path) -> None:
    result = command_line("run", "--sandbox", "--category", "core.NETWORK", "--report-dir", str(tmp_path), "-o", "json")
    run = document(result.stdout)
    assert result.returncode == 0, result.stdout
    assert (run["verdict"], run["exit_code"], run["scope"]) == ("Pass", 0, "partial")
    assert run["verdict_text"] == "Pass (partial: 13 of 24 core requirements)"
    assert [item["outcome"] for item in run["requirements"]] == ["passed"] * 13
    for item in run["requirements"]:
        windows = [pod for pod in item["evidence"]["pods"] if pod["os"] == "windows"]
        assert windows, item["id"]
        assert all(pod["build"] == "10.0.20348" and pod["image_id"] for pod in windows), item["id"]
        assert {pod["node"] for pod in windows} == {"windows-1", "windows-2"}, item["id"]
        assert all(probe["title"] and "observed" in probe for probe in item["evidence"]["probes"]), item["id"]
    assert {rule["outcome"] for rule in run["rules"] if rule["gates"] == "run"} == {"passed"}
    folder = tmp_path / run["run_id"]
    assert document((folder / "run.json").read_text()) == run
    jsonschema.Draft202012Validator(SCHEMAS["run"]()).validate(run)
    for line in (folder / "journal.jsonl").read_text().splitlines():
        jsonschema.Draft202012Validator(SCHEMAS["journal"]()).validate(document(line))
    cases = ElementTree.parse(folder / "junit.xml").getroot().findall(".//testcase")
    assert {case.get("name") for case in cases} >= {item["id"] for item in run["requirements"]}
    assert command_line("status", "--report-dir", str(tmp_path)).stdout.strip() == run["verdict_text"]


def test_one_broken_node_of_three_fails_the_run_and_is_named(command_line: CommandLine, tmp_path: Path) -> None:
    fault = "service-proxy.windows.not-programmed@windows-3"
    three = command_line.sandbox("three", "--windows", "3", "--fault", fault)
    arguments = ["--requirement", "N1", "--requirement", "N5", "--time-scale", SPEED, "--report-dir", str(tmp_path)]
    result = command_line("run", "--kubeconfig", three["kubeconfig"], *arguments, "-o", "json")
    assert result.returncode == 1
    outcomes = {item["id"]: item for item in document(result.stdout)["requirements"]}
    failed = outcomes["core.network.windows-to-linux-service-ip"]
    assert failed["outcome"] == "failed"
    assert "windows-3" in failed["reason"]
    assert "windows-1" not in failed["reason"]
    assert failed["next_step"]
    assert outcomes[QUICK]["outcome"] == "passed"
    junit = (tmp_path / document(result.stdout)["run_id"] / "junit.xml").read_text()
    assert "windows-3" in junit
    assert command_line("status", "--report-dir", str(tmp_path)).returncode == 1
    failed_run = document(result.stdout)["run_id"]
    arguments = ["--kubeconfig", three["kubeconfig"], "--report-dir", str(tmp_path), "--dry-run", "-o", "json"]
    again = command_line("run", *arguments, "--rerun-failed", failed_run)
    assert [item["id"] for item in document(again.stdout)["requirements"]] == [failed["id"]]


def test_what_was_not_judged_and_that_it_is_simulated_are_told_everywhere(
    command_line: CommandLine, kubeconfig: str, tmp_path: Path
) -> None:
    where = ["--kubeconfig", kubeconfig]
    chosen = ["--requirement", QUICK, "--nodes", "1"]
    planned = command_line("plan", *where, *chosen).stdout
    why = "only 1 Windows node is judged (--nodes)"
    assert "Windows nodes judged: windows-1\n" in planned
    assert f"left out: windows-2: {why}" in planned
    folder = ["--report-dir", str(tmp_path)]
    result = command_line("run", *where, *chosen, *folder, "--time-scale", SPEED)
    verdict = "Pass (partial: 1 of 24 core requirements; 1 of 2 Windows nodes judged)"
    assert result.returncode == 0, result.stdout
    assert f"not judged: windows-2: {why}\n{verdict}\n" in result.stdout
    assert ", a simulated cluster (sandbox)" in result.stdout.splitlines()[0]
    (run_json,) = tmp_path.glob("*/run.json")
    run = document(run_json.read_text())
    assert (run["verdict_text"], run["not_judged"]) == (verdict, {"windows-2": why})
    assert run["cluster"]["simulated"] is True
    page = (run_json.parent / "report.html").read_text()
    assert "Not judged" in page
    assert "simulated cluster (sandbox)" in page
    status = command_line("status", *folder)
    assert status.stdout == f"{verdict}\n"
    assert status.stderr == f"not judged: windows-2: {why}\nsimulated cluster (sandbox)\n"
    history = command_line("history", *folder).stdout
    assert f"{run['cluster']['server']} (sandbox)" in history
    assert verdict in history
    markdown = command_line("report", *folder, "--format", "markdown").stdout
    assert f"- not judged: windows-2: {why}" in markdown
    assert "on the sandbox (simulated)" in markdown
    refused = command_line("certify", *folder, "--output", str(tmp_path / "b.tar.gz"))
    assert refused.returncode == 1
    assert "it ran on the sandbox, a simulated cluster" in refused.stderr
    assert "not all usable Windows nodes were judged, windows-2 were not" in refused.stderr
    # What is resumed is the same run: the same nodes, unless others are asked for.
    for more, judged in (([], 1), (["--nodes", "all"], 2)):
        resumed = command_line("run", *where, "--resume", run["run_id"], *more, *folder, "--dry-run", "-o", "json")
        assert len(document(resumed.stdout)["windows_nodes"]) == judged


def test_a_killed_run_loses_nothing_and_cleanup_finds_everything(
    command_line: CommandLine, kubeconfig: str, tmp_path: Path
) -> None:
    arguments = ["--category", "Core.Network", "--time-scale", SPEED, "--report-dir", str(tmp_path)]
    process = command_line.start("run", "--kubeconfig", kubeconfig, *arguments)
    finished: list[str] = []
    while len(finished) < 2:
        assert process.poll() is None
        time.sleep(0.05)
        if folders := list(tmp_path.glob("*/journal.jsonl")):
            events = journal.read(folders[0].parent)
            finished = [event.result.id for event in events if isinstance(event, RequirementFinished)]
    folder = folders[0].parent
    assert journal.in_progress(folder)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not journal.in_progress(folder)
    assert left_behind(kubeconfig)
    events = journal.read(folder)
    assert set(finished) <= {event.result.id for event in events if isinstance(event, RequirementFinished)}

    cleaned = command_line("cleanup", "--kubeconfig", kubeconfig)
    assert cleaned.returncode == 0, cleaned.stdout
    assert left_behind(kubeconfig) == []

    arguments = ["--kubeconfig", kubeconfig, "--time-scale", SPEED, "--report-dir", str(tmp_path), "-o", "json"]
    resumed = command_line("run", *arguments, "--resume", str(folder))
    assert resumed.returncode == 0, resumed.stdout
    run = document(resumed.stdout)
    assert len(run["requirements"]) == 13
    planned = {item["id"] for item in run["plan"]["requirements"]}
    assert planned.isdisjoint(finished)


def test_an_interrupted_run_cleans_up_and_says_130(command_line: CommandLine, kubeconfig: str, tmp_path: Path) -> None:
    arguments = ["--requirement", "N8", "--time-scale", SPEED, "--report-dir", str(tmp_path), "-o", "json"]
    process = command_line.start("run", "--kubeconfig", kubeconfig, *arguments)
    while not any(b"plan-made" in path.read_bytes() for path in tmp_path.glob("*/journal.jsonl")):
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    run = document(output)
    assert (run["verdict"], run["verdict_text"]) == (None, "Interrupted, no verdict")
    assert run["requirements"][0]["outcome"] == "blocked"
    again = f"winready run --resume {run['run_id']}"
    assert run["requirements"][0]["next_step"].startswith(f"'{again} --time-scale {SPEED}'")
    said = errors.splitlines()
    assert f"to do the rest: {again} --kubeconfig {kubeconfig} --report-dir {tmp_path} --time-scale {SPEED}" in said
    assert "interrupted: cleaning up; nothing more is judged" in said
    assert said.count("Interrupted, no verdict") == 1
    assert "before it was judged" not in errors
    assert left_behind(kubeconfig) == []


def test_plan_and_dry_run_change_nothing(command_line: CommandLine, kubeconfig: str, tmp_path: Path) -> None:
    planned = command_line("plan", "--kubeconfig", kubeconfig, "--profile", "full", "--allow-disruptive")
    assert planned.returncode == 0, planned.stderr
    assert "critical path" in planned.stdout
    assert "extend.activedirectory.gmsa-access" in planned.stdout
    dry = command_line("run", "--kubeconfig", kubeconfig, "--dry-run", "-o", "json", "--report-dir", str(tmp_path))
    assert dry.returncode == 3, "reboots were not allowed, so that it cannot pass"
    assert document(dry.stdout)["windows_nodes"] == ["windows-1", "windows-2"]
    assert list(tmp_path.iterdir()) == []
    assert left_behind(kubeconfig) == []


@pytest.mark.parametrize(
    ("older", "prefix", "count"),
    [
        ("hostProcess", "extend.hostprocess.", 7),
        ("activeDirectory", "extend.activedirectory.", 4),
        ("networkPolicy", "extend.networkpolicy.", 2),
        ("serviceProxy", "extend.network.", 5),
        ("Extend.ServiceProxy", "extend.network.", 5),
        ("extend.serviceproxy", "extend.network.", 5),
    ],
)
def test_older_names_of_extensions_select_what_they_did(
    command_line: CommandLine, kubeconfig: str, older: str, prefix: str, count: int
) -> None:
    planned = command_line("plan", "--kubeconfig", kubeconfig, "--category", older, "-o", "json")
    chosen = [item["id"] for item in document(planned.stdout)["requirements"]]
    assert (len(chosen), [name for name in chosen if not name.startswith(prefix)]) == (count, []), planned.stderr
    listed = command_line("spec", "list", "--category", older, "-o", "json")
    assert sorted(item["id"] for item in json.loads(listed.stdout)) == sorted(chosen)


def test_reboots_need_the_operators_word(command_line: CommandLine, kubeconfig: str) -> None:
    arguments = ["plan", "--kubeconfig", kubeconfig, "--requirement", "S6", "-o", "json"]
    planned = document(command_line(*arguments).stdout)["requirements"][0]
    assert planned["action"] == "blocked"


def test_the_least_rights_are_enough_and_less_is_told_beforehand(
    command_line: CommandLine, kubeconfig: str, tmp_path: Path
) -> None:
    manifests = list(yaml.safe_load_all(command_line("rbac").stdout))
    target = find_target(kubeconfig)
    assert target.ca is not None
    token = asyncio.run(_grant(kubeconfig, manifests))
    own = _kubeconfig(tmp_path / "own", target.server, target.ca, token)
    arguments = ["--kubeconfig", own, "--requirement", "N5", "--time-scale", SPEED, "--report-dir", str(tmp_path)]
    allowed = command_line("run", *arguments)
    assert allowed.returncode == 0, allowed.stdout
    asyncio.run(_take_exec_away(kubeconfig, manifests))
    refused = command_line("run", *arguments, "-o", "json")
    assert refused.returncode == 3
    item = document(refused.stdout)["requirements"][0]
    assert item["outcome"] == "error"
    assert "create pods/exec" in item["reason"]
    assert "winready rbac" in item["next_step"]
    written = "".join(path.read_text() for path in tmp_path.glob("*/*") if path.is_file())
    assert token not in written + allowed.stdout + allowed.stderr


async def _grant(kubeconfig: str, manifests: list[dict[str, Any]]) -> str:
    """Apply what ``winready rbac`` prints; a token of the account that it grants the rights to."""
    async with Client.connect(find_target(kubeconfig)) as client:
        for item in manifests:
            namespaced = "namespace" in item["metadata"]
            resource = Resource(item["apiVersion"], item["kind"], f"{item['kind'].lower()}s", namespaced)
            await client.create(resource, item, item["metadata"].get("namespace"))
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        path = SERVICE_ACCOUNTS.path("winready", "winready", "token")
        answer = await client.transport.call("POST", path, body=request)
        return str(answer.body["status"]["token"])


async def _take_exec_away(kubeconfig: str, manifests: list[dict[str, Any]]) -> None:
    less = [rule for rule in manifests[2]["rules"] if "pods/exec" not in rule["resources"]]
    async with Client.connect(find_target(kubeconfig)) as client:
        await client.patch(CLUSTER_ROLES, "winready", {"rules": less})


def _kubeconfig(path: Path, server: str, ca: bytes, token: str) -> str:
    content = {
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "clusters": [
            {"name": "c", "cluster": {"server": server, "certificate-authority-data": base64.b64encode(ca).decode()}}
        ],
        "users": [{"name": "c", "user": {"token": token}}],
    }
    path.write_text(yaml.safe_dump(content))
    return str(path)


def test_a_cluster_without_windows_nodes_is_not_qualified(command_line: CommandLine, tmp_path: Path) -> None:
    linux = command_line.sandbox("linux", "--windows", "0")
    arguments = [
        "--kubeconfig",
        linux["kubeconfig"],
        "--time-scale",
        SPEED,
        "--report-dir",
        str(tmp_path),
        "-o",
        "json",
    ]
    result = command_line("run", *arguments, "--category", "core.network")
    run = document(result.stdout)
    assert result.returncode == 1
    assert {item["outcome"] for item in run["requirements"]} == {"blocked"}
    size = next(rule for rule in run["rules"] if rule["id"] == "rule.cluster-size")
    assert size["outcome"] == "failed"
    assert "0 usable Windows nodes" in size["reason"]
    waived = command_line("run", *arguments, "--allow-small-cluster")
    assert waived.returncode == 3  # still nothing verified: waiving a rule makes nothing pass
    assert document(waived.stdout)["verdict"] == "Fail"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--kubeconfig", "/nowhere/config"], 2, "does not exist"),
        ([], 2, "winready run --sandbox"),
        (["--sandbox", "--category", "core.netwrok"], 2, "did you mean 'Core.Network'?"),
        (["--sandbox", "--requirement", "core.network.dns-internel"], 2, "did you mean 'core.network.dns-internal'?"),
        (["--sandbox", "--requirement", "N1", "--skip", "N1"], 2, "the selection is empty"),
        (["--sandbox", "--kubeconfig", "x"], 2, "leave --kubeconfig"),
        (["--fault", "dns.windows.dead"], 2, "goes with --sandbox"),
        (["--sandbox", "--fault", "dns.windows.ded", "--requirement", "N1"], 2, "did you mean 'dns.windows.dead'?"),
        (["--sandbox", "--nodes", "none"], 2, "nor 'all'"),
        (["--sandbox", "--tolerate", "a:b:c"], 2, "KEY[=VALUE][:EFFECT]"),
        (["--sandbox", "--timeout", "soon"], 2, "write 90s"),
        (["--sandbox", "--node-selector", "x"], 2, "not KEY=VALUE"),
        (["--sandbox", "--requirement", "N5", "--report-dir", "/dev/null/x"], 2, "cannot be written"),
    ],
)
def test_wrong_input_says_what_to_write_instead(
    command_line: CommandLine, arguments: list[str], code: int, words: str
) -> None:
    result = command_line("run", *arguments)
    assert result.returncode == code, result.stderr
    assert words in result.stderr
    assert "Traceback" not in result.stderr

"""``winready run --for``, ``--for-live``, ``--try`` and ``winready matrix --diff --for``, as a user runs them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from cli.conftest import CommandLine
from winready.cli.main import cli
from winready.cluster.client import Client
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, SERVICES
from winready.report.schemas import SCHEMAS

EXAMPLES = Path(__file__).parents[2] / "examples"
SAMPLE = "mcr.microsoft.com/dotnet/samples:aspnetapp-nanoserver-ltsc2022"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: one, namespace: here}
spec:
  os: {name: windows}
  nodeSelector: {kubernetes.io/os: windows}
  containers: [{name: main, image: registry.example.com/none:1}]
"""


def fail_early(*arguments: str, given: str = "") -> str:
    """What a command says that cannot be meant."""
    result = CliRunner().invoke(cli, ["run", *arguments], input=given)
    assert result.exit_code == 2, result.output
    return result.stderr


def test_what_was_seen_instead_of_a_workload_for_windows_is_said(tmp_path: Path) -> None:
    linux = POD.replace("windows", "linux") + "---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\n"
    (tmp_path / "app.yaml").write_text(linux)
    said = fail_early("--for", str(tmp_path))
    assert f"no workload for Windows in {tmp_path}: 1 workload not for Windows and 1 other object" in said
    assert "no workload for Windows in -: no object of Kubernetes at all; a pod" in fail_early("--for", "-", given="")
    # What an overlay changes is no workload by itself.
    patch = (
        POD.replace("  containers:", "  ports:") + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: two}\nspec: 5\n"
    )
    assert "what has no containers (Pod one at stdin:1, Pod two at stdin:9)" in fail_early("--for", "-", given=patch)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--try"], "--try goes with --for"),
        (["-n", "web"], "--namespace goes with --for"),
        (["--for", "x", "--category", "core.network"], "leave --category and --requirement out"),
        (["--for", "x", "--rerun-failed", "y"], "leave --for out"),
        (["--for", "x", "--try", "--namespace-prefix", "mine"], "leave --namespace-prefix out"),
        (["--for-live", "--sandbox"], "asks a cluster that has workloads"),
        (["--for", "/no/such/file"], "/no/such/file cannot be read: No such file or directory"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], words: str) -> None:
    assert words in fail_early(*arguments)


def test_a_manifest_that_cannot_be_read_is_named_with_its_line() -> None:
    assert "stdin:3:1: " in fail_early("--for", "-", given="a: b\nkind: [\n")


def run_for(command_line: CommandLine, given: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A run for what stands on standard input."""
    return subprocess.run(
        [sys.executable, "-m", "winready", "run", "--for", "-", *arguments],
        env=command_line.environment(),
        input=given,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.mark.timeout(300)
def test_a_run_answers_for_workloads_in_every_form(command_line: CommandLine, kubeconfig: str, tmp_path: Path) -> None:
    place = ("--report-dir", str(tmp_path))
    # As helm template or kustomize build would give it: a field that Windows refuses, and an image that is nowhere.
    given = POD + "  hostIPC: true\n"
    result = run_for(
        command_line, given, "--kubeconfig", kubeconfig, "--time-scale", "25", *place, "-o", "json", "--try"
    )
    run = json.loads(result.stdout)
    jsonschema.Draft202012Validator(SCHEMAS["run"]()).validate(run)
    assert (run["verdict"], run["exit_code"], result.returncode) == ("Pass", 1, 1), result.stderr
    (workload,) = run["workloads"]
    assert (workload["kind"], workload["namespace"], workload["name"]) == ("Pod", "here", "one")
    assert (workload["path"], workload["line"], workload["ready"]) == ("stdin", 1, False)
    assert {(use["id"], use["outcome"], use["line"]) for use in workload["features"]} == {
        ("identify-pod-os", "passed", 5),
        ("core.network.distinct-pod-ips", "passed", 7),
        ("pod-status", "passed", 7),
    }
    assert [(each["rule"], each["line"]) for each in workload["findings"] if each["severity"] == "error"] == [
        ("pod-host-ipc", 8)
    ]
    assert {(step["node"], step["reached"]) for step in workload["tried"]} == {
        ("windows-1", "nothing"),
        ("windows-2", "nothing"),
    }
    title = "one (Pod here/one)"
    assert {item["id"] for item in run["requirements"]} == {"core.network.distinct-pod-ips"}
    for form in ("html", "markdown", "csv", "yaml"):
        told = CliRunner().invoke(cli, ["report", *place, "--format", form]).stdout
        assert "one" in told, form
        assert "pod-host-ipc" in told or form == "csv", form
    junit = ElementTree.fromstring(CliRunner().invoke(cli, ["report", *place, "--format", "junit"]).stdout)
    (case,) = junit.findall(".//testcase[@classname='Workloads']")
    assert case.get("name") == title
    assert case.find("failure") is not None
    status = CliRunner().invoke(cli, ["status", *place])
    assert status.exit_code == 1
    # Taken up again, it needs no manifest: what the workloads rely on stands in the journal.
    again = command_line(
        "run", "--resume", run["run_id"], "--kubeconfig", kubeconfig, "--time-scale", "25", *place, "-o", "json"
    )
    (resumed,) = json.loads(again.stdout)["workloads"]
    assert (again.returncode, resumed["features"]) == (1, workload["features"])
    assert resumed["tried"] == workload["tried"]
    # And a bundle of it says the same as it does.
    product = ("--vendor", "v", "--product-name", "p", "--product-version", "1", "--contact", "c@d")
    bundle = str(tmp_path / "b.tar.gz")
    made = command_line("certify", *place, run["run_id"], "--draft", "--output", bundle, *product)
    assert made.returncode == 0, made.stderr
    checked = command_line("verify", bundle)
    assert "give the verdict Pass" in checked.stdout, checked.stdout + checked.stderr


@pytest.mark.timeout(300)
def test_a_run_answers_for_what_the_cluster_has(command_line: CommandLine, kubeconfig: str, tmp_path: Path) -> None:
    asyncio.run(_deploy(kubeconfig))
    result = command_line(
        "run", "--for-live", "-n", "live-shop", "--try", "--kubeconfig", kubeconfig, "--time-scale", "25",
        "--report-dir", str(tmp_path), "-o", "json",
    )  # fmt: skip
    asyncio.run(_remove(kubeconfig))
    (workload,) = json.loads(result.stdout)["workloads"]
    assert workload["path"] == "live/live-shop/deployment/web"
    assert {"svc-clusterip", "configmap-secret", "probes"} <= {use["id"] for use in workload["features"]}
    assert {(step["reached"], step["outcome"]) for step in workload["tried"]} == {("ready", "passed")}, workload
    assert workload["ready"], workload
    assert result.returncode == 0


async def _deploy(kubeconfig: str) -> None:
    container = {
        "name": "web",
        "image": SAMPLE,
        "envFrom": [{"configMapRef": {"name": "settings"}}],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}},
    }
    spec = {"os": {"name": "windows"}, "nodeSelector": {"kubernetes.io/os": "windows"}, "containers": [container]}
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": spec}
    async with Client.connect(find_target(kubeconfig)) as client:
        await client.create(NAMESPACES, {"metadata": {"name": "live-shop"}})
        await client.create(CONFIG_MAPS, {"metadata": {"name": "settings"}, "data": {"A": "b"}}, "live-shop")
        deployment = {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
        await client.create(DEPLOYMENTS, deployment, "live-shop")
        service = {
            "metadata": {"name": "web"},
            "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]},
        }
        await client.create(SERVICES, service, "live-shop")


async def _remove(kubeconfig: str) -> None:
    async with Client.connect(find_target(kubeconfig)) as client:
        await client.delete(NAMESPACES, "live-shop")


def test_a_cluster_that_has_nothing_for_windows_says_so(command_line: CommandLine, kubeconfig: str) -> None:
    result = command_line("run", "--for-live", "-n", "default", "--kubeconfig", kubeconfig)
    assert result.returncode == 2
    assert "no workload for Windows in the cluster, namespace default" in result.stderr


def test_a_cluster_that_cannot_be_asked_ends_before_any_record(command_line: CommandLine, tmp_path: Path) -> None:
    config = {
        "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:9"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a"}}],
        "current-context": "a",
    }
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    runs = tmp_path / "runs"
    result = command_line(
        "run", "--kubeconfig", str(tmp_path / "config"), "--for", str(EXAMPLES / "shop"), "--report-dir", str(runs)
    )
    assert (result.returncode, runs.exists()) == (3, False), result.stderr


def upgrade(*arguments: str) -> Any:
    result = CliRunner().invoke(cli, ["matrix", "--diff", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_what_an_upgrade_changes_for_manifests() -> None:
    told = json.loads(upgrade("1.32", "1.36", "--for", str(EXAMPLES / "log-sidecar"), "-o", "json"))
    (workload,) = told["workloads"]
    (feature,) = workload["features"]
    line = Path(feature["path"]).read_text().splitlines()[feature["line"] - 1]
    assert (feature["id"], line.strip()) == ("sidecars", "restartPolicy: Always")
    assert (feature["before"]["stage"], feature["after"]["stage"]) == ("beta", "ga")
    assert workload["rules"] == []


def test_an_upgrade_that_refuses_a_field_says_where(tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(POD + "  hostIPC: true\n")
    told = upgrade("1.22", "1.36", "--for", str(tmp_path))
    assert "pod-host-ipc" in told
    assert "rejected (error)" in told
    assert f"{tmp_path}/app.yaml:8" in told


def test_an_upgrade_that_changes_nothing_says_so() -> None:
    told = upgrade("1.35", "1.36", "--for", str(EXAMPLES / "aspnet-web"))
    assert "Nothing changes for 1 workload for Windows" in told


def test_an_upgrade_plan_for_manifests_needs_both_versions() -> None:
    result = CliRunner().invoke(cli, ["matrix", "--for", str(EXAMPLES)])
    assert result.exit_code == 2
    assert "goes with --diff" in result.stderr

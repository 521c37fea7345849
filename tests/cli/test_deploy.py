"""``winready deploy``: what it prints holds before an API server, Pod Security and our own linter; mistakes end it."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml
from click.testing import CliRunner, Result

from cli.conftest import CommandLine
from winready.cli.main import cli
from winready.cli.run import run as run_command
from winready.cluster.client import Client
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import CLUSTER_ROLES, CONFIG_MAPS, CRON_JOBS, JOBS, NAMESPACES, PODS
from winready.deploy.bases import files

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]
IMAGE = ("--image", "registry.example.com/winready:0.1.0")
CRON = ("--schedule", "0 3 * * 1")
DOMAIN = r"""
domain: sandbox.test
credential_spec: webapp
allowed_share: \\10.250.0.254\webapp
denied_share: \\10.250.0.254\finance
"""


def deploy(*words: str) -> Result:
    return CliRunner().invoke(cli, ["deploy", *words])


def printed(*words: str) -> dict[str, Any]:
    """What is printed, by kind and name."""
    result = deploy(*words)
    assert result.exit_code == 0, result.output
    return {f"{item['kind']} {item['metadata']['name']}": item for item in yaml.safe_load_all(result.stdout)}


def do(kubeconfig: str, act: Callable[[Client], Awaitable[T]]) -> T:
    async def go() -> T:
        async with Client.connect(find_target(kubeconfig)) as client:
            return await act(client)

    return asyncio.run(go())


@pytest.fixture
def namespace(kubeconfig: str) -> Iterator[str]:
    name = f"deployed-{uuid.uuid4().hex[:8]}"
    yield name
    do(kubeconfig, lambda client: client.delete(NAMESPACES, name))


@pytest.mark.parametrize("kind", ["job", "cronjob"])
def test_the_rights_are_those_of_rbac_and_a_listed_role_for_publishing(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "domain.yaml"
    file.write_text(DOMAIN)
    schedule = CRON if kind == "cronjob" else ()
    for more in ((), ("--active-directory", str(file))):
        made = printed(kind, *IMAGE, *schedule, *more)
        asked = CliRunner().invoke(cli, ["rbac", *more]).stdout
        rights = {f"{item['kind']} {item['metadata']['name']}": item for item in yaml.safe_load_all(asked)}
        for name in ("ClusterRole winready", "ClusterRoleBinding winready"):
            assert {key: value for key, value in made[name].items() if key != "metadata"} == {
                key: value for key, value in rights[name].items() if key != "metadata"
            }
        roles = {name for name in made if "Role" in name}
        assert roles == {
            f"{what} {name}"
            for name in ("winready", "winready-publishing")
            for what in ("ClusterRole", "ClusterRoleBinding")
        } | {"Role winready-publishing", "RoleBinding winready-publishing"}
        first = made["Role winready-publishing"]["rules"][0]
        assert first.get("resourceNames") == (["winready"] if kind == "job" else None)
        assert all("delete" not in rule["verbs"] for name in roles for rule in publishing(made, name))


def publishing(made: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = made[name].get("rules", []) if "publishing" in name else []
    return found


def test_every_option_of_the_run_travels_and_the_run_understands_it(tmp_path: Path) -> None:
    domain, junit = tmp_path / "domain.yaml", tmp_path / "junit.xml"
    domain.write_text(DOMAIN)
    junit.write_text('<testsuite><testcase name="a [Conformance]"/></testsuite>')
    words = ["--profile", "full", "--category", "core.network", "--requirement", "N1", "--skip", "N2",
             "--allow-disruptive", "--nodes", "all", "--node-selector", "a=b", "--tolerate", "x=$(y):NoSchedule",
             "--image-registry", "r.example.com", "--air-gapped", "--windows-builds", "current",
             "--allow-small-cluster", "--allow-downtime", "--timeout", "45m", "--parallel", "4",
             "--time-scale", "25"]  # fmt: skip
    made = printed("job", *IMAGE, *words, "--active-directory", str(domain), "--linux-conformance", str(junit))
    pod = made["Job winready"]["spec"]["template"]["spec"]
    arguments = [word.replace("$$", "$") for word in pod["containers"][0]["args"]]
    inside = run_command.make_context("run", arguments[1:]).params
    outside = run_command.make_context("run", list(words)).params
    assert {key for key in outside if inside[key] != outside[key]} == {
        "report_dir", "publish", "active_directory", "linux_conformance",
    }  # fmt: skip
    assert sorted(made["ConfigMap winready-inputs"]["data"]) == ["domain.yaml", "linux-conformance.xml"]
    assert made["ConfigMap winready-inputs"]["data"]["domain.yaml"] == DOMAIN
    mounts = {item["name"]: item["mountPath"] for item in pod["containers"][0]["volumeMounts"]}
    assert str(inside["active_directory"]) == f"{mounts['inputs']}/domain.yaml"
    # Longer than the run and its cleanup take, so that the Job is never what ends them.
    assert made["Job winready"]["spec"]["activeDeadlineSeconds"] > 45 * 60 + 300
    assert pod["terminationGracePeriodSeconds"] > 300


def test_the_objects_hold_before_the_api_and_are_applied_again_without_a_change(
    command_line: CommandLine, kubeconfig: str, namespace: str
) -> None:
    words = [
        "deploy",
        "job",
        *IMAGE,
        "--namespace",
        namespace,
        "--name",
        namespace,
        "--apply",
        "--kubeconfig",
        kubeconfig,
    ]
    tried = command_line(*words, "--dry-run")
    assert tried.returncode == 0, tried.stderr
    assert f"created: Job {namespace}/{namespace}" in tried.stdout
    assert do(kubeconfig, lambda client: client.find(NAMESPACES, namespace)) is None
    first = command_line(*words)
    assert first.returncode == 0, first.stderr
    assert {line.partition(":")[0] for line in first.stdout.splitlines()} == {"created"}
    assert f"kubectl -n {namespace} logs -f job/{namespace}" in first.stderr
    again = command_line(*words)
    assert {line.partition(":")[0] for line in again.stdout.splitlines()} == {"unchanged"}
    assert "to run it again" in again.stderr
    space = do(kubeconfig, lambda client: client.get(NAMESPACES, namespace))
    assert space["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"

    async def pod(client: Client) -> dict[str, Any]:
        while not (found := await client.list(PODS, namespace)):  # noqa: ASYNC110 - made by a controller
            await asyncio.sleep(0.1)
        return found[0]

    # The namespace takes no other pods than restricted ones, so that one that exists is one.
    found = do(kubeconfig, pod)
    assert found["metadata"]["labels"]["batch.kubernetes.io/job-name"] == namespace
    other = command_line(*words, "--category", "core.network")
    assert other.returncode == 3
    assert f"error: Job {namespace}/{namespace} is there with other settings" in other.stderr
    assert f"kubectl -n {namespace} delete job {namespace}" in other.stderr


def test_a_cron_job_is_taken_and_what_the_run_wrote_survives_another_apply(
    command_line: CommandLine, kubeconfig: str, namespace: str
) -> None:
    words = ["deploy", "cronjob", *IMAGE, *CRON, "--namespace", namespace, "--name", namespace, "--apply",
             "--kubeconfig", kubeconfig]  # fmt: skip
    assert command_line(*words).returncode == 0
    summary = f"{namespace}-summary"
    data = {"data": {"verdict": "Pass"}}
    do(kubeconfig, lambda client: client.patch(CONFIG_MAPS, summary, data, namespace))
    changed = command_line(*words[:-2], "--kubeconfig", kubeconfig, "--schedule", "@daily", "-o", "json")
    assert changed.returncode == 0, changed.stderr
    changes = {item["object"]: item["change"] for item in json.loads(changed.stdout)["changes"]}
    assert [name for name, change in changes.items() if change != "unchanged"] == [f"CronJob {namespace}/{namespace}"]
    assert do(kubeconfig, lambda client: client.get(CRON_JOBS, namespace, namespace))["spec"]["schedule"] == "@daily"
    assert do(kubeconfig, lambda client: client.get(CONFIG_MAPS, summary, namespace))["data"] == data["data"]


def test_a_namespace_of_somebody_else_stays_as_it_is(
    command_line: CommandLine, kubeconfig: str, namespace: str
) -> None:
    do(kubeconfig, lambda client: client.create(NAMESPACES, {"metadata": {"name": namespace}}))
    words = ["--namespace", namespace, "--name", namespace, "--apply", "--kubeconfig", kubeconfig]
    result = command_line("deploy", "job", *IMAGE, *words)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"kept: Namespace {namespace}\n  it was there before and is not winready's")
    space = do(kubeconfig, lambda client: client.get(NAMESPACES, namespace))
    assert "pod-security.kubernetes.io/enforce" not in space["metadata"]["labels"]
    assert do(kubeconfig, lambda client: client.find(JOBS, namespace, namespace)) is not None


def test_whoever_may_not_is_told_who_may(
    command_line: CommandLine, kubeconfig: str, namespace: str, tmp_path: Path
) -> None:
    config = yaml.safe_load(Path(kubeconfig).read_text())
    for user in config["users"]:
        user["user"]["as"] = "nobody"
    poor = tmp_path / "poor.yaml"
    poor.write_text(yaml.safe_dump(config))
    result = command_line("deploy", "job", *IMAGE, "--namespace", namespace, "--apply", "--kubeconfig", str(poor))
    assert result.returncode == 3
    assert "forbidden" in result.stderr
    assert "this takes an administrator" in result.stderr
    assert do(kubeconfig, lambda client: client.find(CLUSTER_ROLES, f"{namespace}-publishing")) is None


@pytest.mark.parametrize("kind", ["job", "cronjob"])
def test_our_own_linter_finds_nothing(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "objects.yaml"
    made = deploy(kind, *IMAGE, *(CRON if kind == "cronjob" else ()), "--metrics-port", "9100")
    file.write_text(made.stdout)
    result = CliRunner().invoke(cli, ["lint", str(file)])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("0 errors, 0 warnings, 0 notes in 1 file")


@pytest.mark.parametrize("output", ["yaml", "json"])
def test_what_is_printed_is_one_list_of_objects(output: str) -> None:
    result = deploy("job", *IMAGE, "--no-volume", "--existing-namespace", "--namespace", "kube-system", "-o", output)
    assert result.exit_code == 0
    found = json.loads(result.stdout)["items"] if output == "json" else list(yaml.safe_load_all(result.stdout))
    assert {item["kind"] for item in found}.isdisjoint({"Namespace", "PersistentVolumeClaim"})
    assert {item["metadata"].get("namespace", "kube-system") for item in found} == {"kube-system"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["job"], "missing option '--image'"),
        (["job", "--image", "Registry.Example.com/Winready"], "is not the name of an image"),
        (["job", "--image", "r.io/w:1 --privileged"], "is not the name of an image"),
        (["job", "--image", "r.io/w@sha256:abc"], "is not the name of an image"),
        (["job", *IMAGE, "--namespace", "Win_ready"], "cannot be the name of a namespace"),
        (["job", *IMAGE, "--namespace", "kube-system"], "--existing-namespace"),
        (["job", *IMAGE, "--name", "x" * 53], "cannot be the name of a Job"),
        (["job", *IMAGE, "--category", "core.netwrk"], "did you mean 'Core.Network'?"),
        (["job", *IMAGE, "--requirement", "core.none"], "unknown requirement"),
        (["job", *IMAGE, "--requirement", "N1", "--skip", "N1"], "the selection is empty"),
        (["job", *IMAGE, "--nodes", "none"], "neither a number from 1 nor 'all'"),
        (["job", *IMAGE, "--tolerate", "a:b:c"], "is not a toleration"),
        (["job", *IMAGE, "--runner-tolerate", "a=b:Never"], "is not a toleration"),
        (["job", *IMAGE, "--runner-node-selector", "linux"], "is not KEY=VALUE"),
        (["job", *IMAGE, "--timeout", "soon"], "is not a duration"),
        (["job", *IMAGE, "--storage-size", "much"], "is not a size"),
        (["job", *IMAGE, "--storage-size", "1_000"], "is not a size"),
        (["job", *IMAGE, "--storage-class", "A B"], "cannot be the name of a storage class"),
        (["job", *IMAGE, "--no-volume", "--storage-class", "fast"], "exclude each other"),
        (["job", *IMAGE, "--image-pull-secret", "$x"], "cannot be the name of a Secret"),
        (["job", *IMAGE, "--linux-conformance", "/nowhere.xml"], "cannot be read"),
        (["job", *IMAGE, "--dry-run"], "--dry-run goes with --apply"),
        (["job", *IMAGE, "--context", "x"], "--context goes with --apply"),
        (["cronjob", *IMAGE], "missing option '--schedule'"),
        (["cronjob", *IMAGE, "--schedule", "every monday"], "2 fields instead of five"),
        (["cronjob", *IMAGE, "--schedule", "61 * * * *"], "outside of what the minute can be"),
        (["cronjob", *IMAGE, "--schedule", "0 0 * * 7"], "outside of what the day of the week can be: 0 to 6"),
        (["cronjob", *IMAGE, "--schedule", "0 0 5-1 * *"], "outside of what the day of the month can be"),
        (["cronjob", *IMAGE, "--schedule", "*/0 * * * *"], "says nothing about the minute"),
        (["cronjob", *IMAGE, "--schedule", "a * * * *"], "says nothing about the minute"),
        (["cronjob", *IMAGE, "--schedule", "0 0 31 2,4 *"], "a day that none of its months has"),
        (["cronjob", *IMAGE, "--schedule", "TZ=UTC 0 0 * * *"], "--time-zone"),
        (["cronjob", *IMAGE, *CRON, "--time-zone", "../etc/passwd"], "is no time zone"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_printed(words: list[str], said: str) -> None:
    result = deploy(*words)
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "schedule",
    [
        "@daily",
        "@every 12h",
        "*/15 0-6,22 1,15 JAN-mar Mon-Fri",
        "0 0 ? * SUN",
        "5/10 * * * *",
        "0 0 29 2 *",
        "0 0 31 2 1",
    ],
)
def test_schedules_of_kubernetes_are_taken(schedule: str) -> None:
    assert printed("cronjob", *IMAGE, "--schedule", schedule)["CronJob winready"]["spec"]["schedule"] == schedule


def test_the_files_below_deploy_are_those_that_are_made() -> None:
    folder = ROOT / "deploy"
    made = files()
    assert {path: (folder / path).read_text() for path in made} == made
    written = {str(path.relative_to(folder)) for path in (folder / "kustomize").rglob("*") if path.is_file()}
    assert written == {path for path in made if path.startswith("kustomize/")}
    chart = yaml.safe_load((folder / "chart" / "Chart.yaml").read_text())
    from winready import __version__

    assert chart["appVersion"] == __version__


def test_results_can_go_to_a_store_whose_credentials_stay_in_a_secret() -> None:
    made = printed("cronjob", *IMAGE, *CRON, "--report-dir", "s3://shop-runs/fleet/", "--store-secret", "store")
    pod = made["CronJob winready"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["args"][:3] == ["run", "--report-dir", "s3://shop-runs/fleet"]
    assert container["envFrom"] == [{"secretRef": {"name": "store"}}]
    # What the store does not take waits on the volume.
    assert {"name": "XDG_STATE_HOME", "value": "/runs"} in container["env"]
    assert {"name": "runs", "mountPath": "/runs"} in container["volumeMounts"]
    assert not [name for name in made if name.startswith("Secret")]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--report-dir", "file:///mnt/share"), "is no object store"),
        (("--report-dir", "runs"), "is no object store"),
        (("--report-dir", "s3://AKIA:hunter2hunter2@runs/x"), "environment"),
        (("--store-secret", "store"), "--store-secret goes with --report-dir"),
        (("--report-dir", "s3://shop-runs", "--store-secret", "Store!"), "cannot be the name of a Secret"),
    ],
)
def test_a_store_that_makes_no_sense_in_a_pod_is_refused(words: tuple[str, ...], says: str) -> None:
    result = deploy("job", *IMAGE, *words)
    assert result.exit_code == 2
    assert says in result.output
    assert "hunter2" not in result.output

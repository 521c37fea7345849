"""``run --publish``: what kubectl alone shows of a run, with the rights of ``winready deploy`` and no others."""

from __future__ import annotations

import asyncio
import json
import signal
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from cli.conftest import SPEED, CommandLine
from cli.test_run import QUICK, left_behind
from winready.cluster.client import Client
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import CONFIG_MAPS, EVENTS, JOBS, NAMESPACES, ROLE_BINDINGS, SERVICE_ACCOUNTS, Resource
from winready.deploy.policy_report import CLUSTER_REPORTS, REPORTS

T = TypeVar("T")
CRDS = Resource("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
IMAGE = "registry.example.com/winready:0.1.0"
SERVICE_IP = "core.network.windows-to-linux-service-ip"
FAULT = "service-proxy.windows.not-programmed"


class Ground:
    """A deployment on a sandbox, and its account's way to the API server."""

    def __init__(self, command_line: CommandLine, kubeconfig: str, folder: Path, namespace: str) -> None:
        self.command_line, self.kubeconfig, self.folder, self.namespace = command_line, kubeconfig, folder, namespace
        self.words = ("--image", IMAGE, "--namespace", namespace, "--name", namespace, "--no-volume")
        made = command_line("deploy", "job", *self.words, "--apply", "--kubeconfig", kubeconfig)
        assert made.returncode == 0, made.stderr
        self.own = folder / "own.yaml"
        self.last_words = folder / "termination-log"

    def do(self, act: Callable[[Client], Awaitable[T]]) -> T:
        async def go() -> T:
            async with Client.connect(find_target(self.kubeconfig)) as client:
                return await act(client)

        return asyncio.run(go())

    def log_on(self) -> None:
        """A kubeconfig of the account that the Job has."""

        async def token(client: Client) -> str:
            path = SERVICE_ACCOUNTS.path(self.namespace, self.namespace, "token")
            answer = await client.transport.call("POST", path, body={"spec": {"expirationSeconds": 3600}})
            return str(answer.body["status"]["token"])

        config = yaml.safe_load(Path(self.kubeconfig).read_text())
        config["users"] = [{"name": user["name"], "user": {"token": self.do(token)}} for user in config["users"]]
        self.own.write_text(yaml.safe_dump(config))

    def arguments(self, *more: str) -> list[str]:
        """The command line of the Job's own container, but for what only a pod has."""
        job = self.do(lambda client: client.get(JOBS, self.namespace, self.namespace))
        words = job["spec"]["template"]["spec"]["containers"][0]["args"]
        places = {
            "/runs": str(self.folder / "runs"),
            "job=$(WINREADY_NAMESPACE)/$(WINREADY_JOB)": f"job={self.namespace}/{self.namespace}",
            "termination-log=/dev/termination-log": f"termination-log={self.last_words}",
        }
        assert places.keys() <= set(words)
        filled = [places.get(word, word).replace("$(WINREADY_NAMESPACE)", self.namespace) for word in words]
        return [*filled, "--kubeconfig", str(self.own), *more, "--time-scale", SPEED]

    def annotations(self) -> dict[str, str]:
        job = self.do(lambda client: client.get(JOBS, self.namespace, self.namespace))
        return {
            key.removeprefix("winready.io/"): value
            for key, value in job["metadata"]["annotations"].items()
            if key.startswith("winready.io/")
        }

    def events(self) -> list[dict[str, Any]]:
        found = self.do(lambda client: client.list(EVENTS, self.namespace))
        return [item for item in found if item.get("source", {}).get("component") == "winready"]

    def summary(self) -> dict[str, str]:
        found: dict[str, str] = self.do(
            lambda client: client.get(CONFIG_MAPS, f"{self.namespace}-summary", self.namespace)
        )["data"]
        return found


@pytest.fixture
def ground(command_line: CommandLine, kubeconfig: str, tmp_path: Path) -> Iterator[Ground]:
    found = Ground(command_line, kubeconfig, tmp_path, f"ground-{uuid.uuid4().hex[:8]}")
    found.log_on()
    yield found
    found.do(lambda client: client.delete(NAMESPACES, found.namespace))


def definition(resource: Resource) -> dict[str, Any]:
    """A policy report as the working group defines it, as far as the API server needs to know."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    group, _, version = resource.api_version.partition("/")
    return {
        "metadata": {"name": f"{resource.plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": resource.kind, "plural": resource.plural, "singular": resource.kind.lower()},
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [
                {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
            ],
        },
    }  # fmt: skip


def test_a_pass_is_seen_on_the_job_its_events_a_config_map_and_the_last_words(ground: Ground) -> None:
    result = ground.command_line(*ground.arguments("--requirement", QUICK))
    assert result.returncode == 0, result.stdout + result.stderr
    assert "cannot be told" not in result.stderr
    run = next((ground.folder / "runs").iterdir()).name
    told = ground.annotations()
    assert told["run-id"] == run
    assert told["verdict"] == "Pass (partial: 1 of 24 core requirements)"
    assert told["progress"] == "1 of 1 judged: 1 passed"
    assert "reasons" not in told
    job = ground.do(lambda client: client.get(JOBS, ground.namespace, ground.namespace))
    found = ground.events()
    assert {item["reason"] for item in found} == {"ReadinessStarted", "ReadinessPass"}
    assert {item["type"] for item in found} == {"Normal"}
    # By that kubectl describe finds them.
    assert {item["involvedObject"]["uid"] for item in found} == {job["metadata"]["uid"]}
    summary = ground.summary()
    assert summary["verdict"] == told["verdict"]
    document = json.loads(summary["summary.json"])
    assert (document["run"], document["verdict"], document["exit_code"]) == (run, "Pass", 0)
    assert [item["outcome"] for item in document["requirements"]] == ["passed"]
    assert f"✓ {QUICK}" in summary["summary.txt"]
    assert ground.last_words.read_text().splitlines() == [
        told["verdict"], f"run {run}, 1 of 1 judged: 1 passed", "the cluster was cleaned up",
    ]  # fmt: skip


def test_a_fail_names_its_requirement_everywhere_and_in_a_policy_report(
    command_line: CommandLine, tmp_path: Path
) -> None:
    broken = command_line.sandbox("broken", "--fault", f"{FAULT}@windows-2")
    ground = Ground(command_line, broken["kubeconfig"], tmp_path, "failing")
    ground.do(lambda client: client.create(CRDS, definition(REPORTS)))
    ground.do(lambda client: client.create(CRDS, definition(CLUSTER_REPORTS)))
    ground.log_on()
    result = command_line(*ground.arguments("--requirement", QUICK, "--requirement", SERVICE_IP))
    assert result.returncode == 1, result.stdout + result.stderr
    assert "cannot be told" not in result.stderr
    assert "windows-2" in ground.annotations()["reasons"]
    failed = [item for item in ground.events() if item["type"] == "Warning"]
    assert {item["reason"] for item in failed} == {"RequirementFailed", "ReadinessFail"}
    assert all("windows-2" in item["message"] for item in failed)
    words = ground.last_words.read_text()
    assert words.startswith("Fail (partial: 2 of 24 core requirements)\n")
    assert f"{SERVICE_IP} failed: " in words
    report = ground.do(lambda client: client.get(CLUSTER_REPORTS, "failing"))
    assert report["summary"] == {"pass": 1, "fail": 1, "warn": 0, "error": 0, "skip": 0}
    results = {item["rule"]: item for item in report["results"]}
    assert (results[SERVICE_IP]["result"], results[SERVICE_IP]["severity"]) == ("fail", "high")
    assert "windows-2" in results[SERVICE_IP]["message"]
    assert results[QUICK]["result"] == "pass"
    # Where only reports of namespaces are there, those are used, and a second run writes them anew.
    ground.do(lambda client: client.delete(CRDS, definition(CLUSTER_REPORTS)["metadata"]["name"]))
    for outcome in (QUICK, SERVICE_IP):
        command_line(*ground.arguments("--requirement", outcome))
    again = ground.do(lambda client: client.get(REPORTS, "failing", "failing"))
    assert [item["rule"] for item in again["results"]] == [SERVICE_IP]


def test_whoever_may_not_be_told_is_named_once_and_the_verdict_stays(ground: Ground) -> None:
    ground.do(lambda client: client.delete(ROLE_BINDINGS, f"{ground.namespace}-publishing", ground.namespace))
    result = ground.command_line(*ground.arguments("--requirement", QUICK))
    assert result.returncode == 0, result.stdout + result.stderr
    notes = [line for line in result.stderr.splitlines() if "cannot be told" in line]
    who = f"{ground.namespace}/{ground.namespace}"
    assert [note.partition(" cannot")[0] for note in notes] == [f"note: Job {who}", f"note: events of Job {who}"]
    assert all("forbidden" in note and note.endswith("the verdict does not depend on it") for note in notes)
    # The run itself may write ConfigMaps, so that one is told all the same.
    assert ground.summary()["verdict"].startswith("Pass")


def test_a_job_that_is_gone_costs_a_note(ground: Ground) -> None:
    words = ground.arguments("--requirement", QUICK)
    ground.do(lambda client: client.delete(JOBS, ground.namespace, ground.namespace))
    result = ground.command_line(*words)
    assert result.returncode == 0
    notes = [line for line in result.stderr.splitlines() if "cannot be told" in line]
    assert len(notes) == 1
    assert f'jobs.batch "{ground.namespace}" not found' in notes[0]


def test_a_run_that_is_told_to_end_cleans_up_and_says_so(ground: Ground) -> None:
    slow = "core.scheduling.limits-honoured"
    process = ground.command_line.start(*ground.arguments("--requirement", QUICK, "--requirement", slow))
    try:
        while "1 of 2 judged" not in (ground.last_words.read_text() if ground.last_words.exists() else ""):
            assert process.poll() is None, process.communicate()
            time.sleep(0.1)
        # Killed now, it would leave at least how far it was.
        assert ground.last_words.read_text().startswith("Unfinished\n")
        process.send_signal(signal.SIGTERM)
        output, said = process.communicate(timeout=110)
    finally:
        process.kill()
    assert process.returncode == 130, output + said
    words = ground.last_words.read_text().splitlines()
    assert words[0] == "Interrupted, no verdict"
    assert words[2:4] == ["the cluster was cleaned up", "the run was interrupted"]
    assert ground.annotations()["verdict"] == words[0]
    assert "ReadinessInterrupted" in {item["reason"] for item in ground.events()}
    assert left_behind(ground.kubeconfig) == []


def test_rights_that_are_missing_are_told_in_the_last_words(ground: Ground) -> None:
    poor = ground.folder / "poor.yaml"
    config = yaml.safe_load(ground.own.read_text())

    async def token(client: Client) -> str:
        path = SERVICE_ACCOUNTS.path(ground.namespace, "default", "token")
        return str((await client.transport.call("POST", path, body={"spec": {}})).body["status"]["token"])

    for user in config["users"]:
        user["user"]["token"] = ground.do(token)
    poor.write_text(yaml.safe_dump(config))
    words = [*ground.arguments("--requirement", QUICK), "--kubeconfig", str(poor)]
    result = ground.command_line(*words)
    assert result.returncode == 3, result.stdout + result.stderr
    left = ground.last_words.read_text()
    assert left.startswith("not started: ")
    assert "rights are missing: list nodes" in left


def test_a_full_disk_costs_the_last_words_and_a_note(ground: Ground) -> None:
    ground.last_words = Path("/dev/full")
    result = ground.command_line(*ground.arguments("--requirement", QUICK))
    assert result.returncode == 0, result.stdout + result.stderr
    notes = [line for line in result.stderr.splitlines() if "cannot be told" in line]
    assert notes == [
        "note: termination log /dev/full cannot be told: No space left on device; the verdict does not depend on it"
    ]


def test_metrics_in_a_file_and_over_http(ground: Ground) -> None:
    file = ground.folder / "winready.prom"
    slow = "core.scheduling.limits-honoured"
    words = ["--requirement", QUICK, "--requirement", slow, "--metrics-file", str(file), "--metrics-listen", "0"]
    process = ground.command_line.start(*ground.arguments(*words))
    try:
        assert process.stderr is not None
        address = process.stderr.readline().split()[-1]
        assert address.startswith("http://127.0.0.1:")
        while f'winready_requirement_outcome{{requirement="{QUICK}"' not in (text := fetch(address)[0]):
            assert process.poll() is None
            time.sleep(0.1)
        labels = f'requirement="{QUICK}",category="Core.Network",level="core"'
        assert f'winready_requirement_outcome{{{labels},outcome="passed"}} 1\n' in text
        assert f'winready_requirement_outcome{{{labels},outcome="failed"}} 0\n' in text
        # Nobody is told a verdict before there is one.
        assert "winready_verdict" not in text
        headers = fetch(address)[1]
        assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert status(address, Host="evil.example.com") == 421
        assert status(address.replace("/metrics", "/")) == 404
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=110)
    finally:
        process.kill()
    written = file.read_text()
    assert "winready_verdict{" not in written, "an interruption is no verdict"
    assert "winready_exit_code 130\n" in written
    assert list(file.parent.glob("*.part")) == []


def fetch(address: str) -> tuple[str, dict[str, str]]:
    with urllib.request.urlopen(address, timeout=60) as answer:  # noqa: S310 - our own address
        return answer.read().decode(), dict(answer.headers)


def status(address: str, **headers: str) -> int:
    request = urllib.request.Request(address, headers=headers)  # noqa: S310 - our own address
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--publish", "job"], "is no place to publish; write job=NAMESPACE/NAME"),
        (["--publish", "job=winready"], "names no namespace; write job=NAMESPACE/NAME"),
        (["--publish", "job=A/b"], "cannot be the name of a namespace"),
        (["--publish", "job=a/b/../c"], "cannot be the name of a Job"),
        (["--publish", "job=a/b", "--publish", "job=a/c"], "job is given twice"),
        (["--metrics-file", "/nowhere/at/all.prom"], "is in no folder that exists"),
        (["--metrics-file", "/tmp"], "is a folder"),
        (["--metrics-listen", "x"], "is no place to listen"),
        (["--metrics-listen", "example.com:80"], "is no address of this machine"),
        (["--metrics-listen", "192.0.2.1:9000"], "choose another address or port"),
    ],
)
def test_a_place_that_is_none_ends_the_command_before_anything_begins(
    command_line: CommandLine, kubeconfig: str, tmp_path: Path, words: list[str], said: str
) -> None:
    result = command_line("run", "--kubeconfig", kubeconfig, "--report-dir", str(tmp_path), *words)
    assert result.returncode == 2, result.stderr
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []

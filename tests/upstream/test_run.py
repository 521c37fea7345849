"""``winready run --engine upstream|both`` against a sandbox, with a program that behaves like e2e.test."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli.conftest import SPEED, CommandLine
from upstream.conftest import PASSES, MakeE2e, text_of
from winready.cli.main import cli
from winready.cluster.client import Client
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import NAMESPACES, NODES
from winready.cluster.steering import bindings, policies
from winready.spec.versions import Version
from winready.upstream.binary import Binary, misfit

HYBRID = "core.network.windows-to-linux-pod-ip"


class Upstream:
    """Runs the engine and reads its document."""

    def __init__(self, command_line: CommandLine, kubeconfig: str, reports: Path) -> None:
        self.command_line, self.kubeconfig, self.reports = command_line, kubeconfig, reports

    def arguments(self, program: Path, *more: str, engine: str = "upstream") -> list[str]:
        common = ["--kubeconfig", self.kubeconfig, "--time-scale", SPEED, "--report-dir", str(self.reports)]
        return ["run", *common, "--engine", engine, "--e2e-binary", str(program), "-o", "json", *more]

    def __call__(self, program: Path, *more: str, engine: str = "upstream") -> dict[str, Any]:
        result = self.command_line(*self.arguments(program, *more, engine=engine))
        assert result.stdout, result.stderr
        document: dict[str, Any] = json.loads(result.stdout)
        assert result.returncode == document["exit_code"]
        document["by_id"] = {item["id"]: item for item in document["requirements"]}
        document["said"] = result.stderr
        return document


@pytest.fixture
def run(command_line: CommandLine, kubeconfig: str, tmp_path: Path) -> Upstream:
    return Upstream(command_line, kubeconfig, tmp_path / "runs")


def ask(kubeconfig: str, resource: Any, labels: str = "") -> list[dict[str, Any]]:
    async def go() -> list[dict[str, Any]]:
        async with Client.connect(find_target(kubeconfig)) as client:
            return await client.list(resource, labels=labels)

    return asyncio.run(go())


def requirements(*names: str) -> list[str]:
    return [word for name in names for word in ("--requirement", name)]


def test_every_end_of_a_test_has_its_meaning(run: Upstream, make_e2e: MakeE2e, kubeconfig: str) -> None:
    steered = {"end": "pass", "os": ""}
    brief = {"end": "pass", "os": "windows", "brief": "registry.k8s.io/e2e-test-images/nonroot:1.5"}
    program = make_e2e(
        {
            "windows-hostpath": {"end": "fail", "os": "windows"},
            "statefulset-identity": {"end": "skip"},
            "windows-internet": {"end": "skip"},
            "service-recreated": {"end": "pass", "os": "linux", "tolerate": True},
            "endpointslice-ports": steered,
            "endpointslice-addresses": steered,
            "token-rotation": {"end": "pass"},
            "host-network-endpoints": {"end": "fail", "os": "windows"},
            "run-as-user": brief,
            "run-as-user-override": brief,
        },
        without=(text_of("windows-dns-config"),),
    )
    document = run(
        program,
        "--steer-by-taint",
        *("--shards", "4"),
        *requirements(
            HYBRID,
            "core.network.linux-to-windows-pod-ip",
            "core.storage.hostpath-read",
            "N9",
            "core.network.dns-external",
            "extend.activedirectory.run-as-user",
            "extend.hostprocess.bind-host-interface",
            "N8",
            "N13",
            "N12",
            "S5",
            "N7",
            "W1",
        ),
    )
    found = document["by_id"]
    passed = found[HYBRID]
    assert passed["outcome"] == "passed", passed
    assert passed["verifier"] == "upstream"
    assert passed["evidence"]["pods"][0]["build"] == "10.0.20348"
    assert passed["evidence"]["probes"][0]["title"] == text_of("hybrid-network")
    assert found["core.network.linux-to-windows-pod-ip"]["outcome"] == "passed"
    failed = found["core.storage.hostpath-read"]
    assert failed["outcome"] == "failed"
    assert "the answer was wrong" in failed["reason"]
    assert "at fake.go:1" in failed["observed"]
    skipped = found["core.network.dns-external"]
    assert skipped["outcome"] == "blocked"
    assert "skipped itself: no 'StorageClass'" in skipped["reason"]
    half = found["core.network.statefulset-identity"]
    assert half["outcome"] == "blocked"
    assert "a part of it only (1 passed)" in half["reason"]
    assert "should provide basic identity' skipped itself" in half["reason"]
    astray = found["core.network.service-recreated"]
    assert astray["outcome"] == "blocked"
    assert "passed with pods on Linux nodes (worker on linux-" in astray["reason"]
    assert found["core.network.endpointslice-routing"]["outcome"] == "passed"
    witnessed = found["extend.activedirectory.run-as-user"]
    assert witnessed["outcome"] == "passed", "another pod of that image on that node answers for one that ended"
    assert {pod["build"] for pod in witnessed["evidence"]["pods"]} == {"10.0.20348"}
    excused = found["extend.hostprocess.bind-host-interface"]
    assert excused["outcome"] == "blocked", "this test fails on sound clusters as well"
    assert "need not be the cluster's fault: its pods on Windows nodes are HostProcess pods" in excused["reason"]
    drifted = found["core.network.dns-custom"]
    assert drifted["outcome"] == "blocked"
    assert "drifted: no spec has this text" in drifted["reason"]
    unseen = found["core.storage.token-rotation"]
    assert unseen["outcome"] == "blocked"
    assert "none of its pods was seen" in unseen["reason"]
    part = found["core.network.distinct-pod-ips"]
    assert part["outcome"] == "blocked"
    assert "a part of it only" in part["reason"]
    assert "never compares their addresses" in part["reason"]
    assert "no upstream test of Kubernetes 1.36" in found["extend.worker.defender-exclusions"]["reason"]
    assert document["exit_code"] == 1
    assert "e2e.test 1/" in document["said"]
    texts = {path: path.read_bytes() for path in run.reports.rglob("*") if path.is_file()}
    assert any(b"noise \xff\xfe" in text for text in texts.values())
    assert [path for path, text in texts.items() if b"IPlanted" in text or b"eyJhbGci" in text] == []
    # Two specs of a serial kind never share a process with the others, and few processes are started.
    calls = [json.loads(line) for line in (program.parent / "calls.jsonl").read_text().splitlines()]
    assert len(calls) <= 5
    assert not [node for node in ask(kubeconfig, NODES) if node["spec"].get("taints")]
    assert ask(kubeconfig, NAMESPACES, "winready.io/run") == []


def test_a_focus_that_selects_nothing_is_blocked_and_says_3(run: Upstream, make_e2e: MakeE2e) -> None:
    program = make_e2e({}, without=(text_of("hybrid-network"),))
    document = run(program, *requirements(HYBRID))
    assert document["exit_code"] == 3
    assert document["by_id"][HYBRID]["outcome"] == "blocked"
    assert not (program.parent / "calls.jsonl").exists()


def test_without_a_way_to_steer_tests_that_need_it_are_blocked(
    command_line: CommandLine, make_e2e: MakeE2e, tmp_path: Path
) -> None:
    older = command_line.sandbox("no-policies", "--kubernetes", "1.35")["kubeconfig"]
    document = Upstream(command_line, older, tmp_path)(make_e2e({}, version="v1.35.0"), *requirements("N8", "N13"))
    command_line("sandbox", "down", "--name", "no-policies")
    assert {item["outcome"] for item in document["requirements"]} == {"blocked"}
    assert "--steer-by-taint" in document["requirements"][0]["next_step"]
    assert "winready steer serve" in document["requirements"][0]["next_step"]


def test_pods_are_steered_by_a_policy_that_is_gone_with_the_run(
    run: Upstream, make_e2e: MakeE2e, kubeconfig: str
) -> None:
    steered = {"end": "pass", "os": ""}
    document = run(make_e2e({"endpointslice-ports": steered, "endpointslice-addresses": steered}), *requirements("N13"))
    item = document["requirements"][0]
    assert item["outcome"] == "passed", item
    assert item["evidence"]["facts"]["upstream"]["steering"] == "policy"
    assert {pod["os"] for pod in item["evidence"]["pods"]} == {"windows"}
    assert ask(kubeconfig, policies("v1")) == []
    assert ask(kubeconfig, bindings("v1")) == []


def test_a_program_of_the_wrong_version_is_refused(run: Upstream, make_e2e: MakeE2e) -> None:
    document = run(make_e2e({}, version="v1.37.0"), *requirements(HYBRID))
    assert document["exit_code"] == 3
    assert "e2e.test v1.37.0 is newer" in document["by_id"][HYBRID]["reason"]


@pytest.mark.parametrize(
    ("program", "says"),
    [("v1.36.3", ""), ("v1.35.0", ""), ("v1.34.2", "older"), ("v1.37.0", "newer"), ("v2.36.0", "newer")],
)
def test_a_program_may_be_one_minor_older(program: str, says: str) -> None:
    refusal = misfit(Binary(Path("e2e.test"), program), Version(1, 36))
    assert bool(refusal) == bool(says)
    assert says in refusal


def test_a_program_that_breaks_is_an_error_with_its_last_words(run: Upstream, make_e2e: MakeE2e) -> None:
    document = run(make_e2e({}, **{"break": True}), *requirements(HYBRID))
    assert document["by_id"][HYBRID]["outcome"] == "error"
    assert "panic: something went wrong" in document["by_id"][HYBRID]["reason"]


def test_both_engines_agree_or_nothing_passes(run: Upstream, make_e2e: MakeE2e) -> None:
    program = make_e2e({"windows-dns-config": {"end": "fail", "os": "windows"}, "host-aliases": PASSES})
    document = run(program, "--steer-by-taint", *requirements(HYBRID, "core.network.dns-custom", "N7"), engine="both")
    found = document["by_id"]
    agreed = found[HYBRID]
    assert agreed["outcome"] == "passed"
    assert agreed["verifier"] == "both"
    assert agreed["evidence"]["facts"]["agreement"]["verdict"] == "agree"
    completed = found["core.network.distinct-pod-ips"]
    assert completed["outcome"] == "passed"
    assert completed["evidence"]["facts"]["agreement"]["verdict"] == "agree in part"
    assert "upstream agrees as far as it reaches" in document["said"]
    disputed = found["core.network.dns-custom"]
    assert disputed["outcome"] == "failed"
    assert "the two verifiers disagree: winready's check passed, upstream failed" in disputed["reason"]
    assert document["exit_code"] == 1
    assert f"check {HYBRID}" in document["said"]
    # Checks leave nothing in the cluster that upstream tests would wait for or trip over.
    seen = [json.loads(line) for line in (program.parent / "found.jsonl").read_text().splitlines()]
    assert not [name for names in seen for name in names if name.startswith("winready-")]


def test_sigterm_keeps_what_was_finished_and_leaves_nothing(run: Upstream, make_e2e: MakeE2e, kubeconfig: str) -> None:
    program = make_e2e({"windows-hostpath": {"end": "hang", "os": "windows"}})
    names = requirements(HYBRID, "core.storage.hostpath-read")
    process = run.command_line.start(*run.arguments(program, "--shards", "1", *names))
    end = time.monotonic() + 100
    story = ""
    while '"state":"passed"' not in story or "hostMapPath" not in story:
        assert time.monotonic() < end, story
        time.sleep(0.05)
        story = "".join(journal.read_text() for journal in run.reports.glob("*/journal.jsonl"))
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    document = json.loads(output)
    found = {item["id"]: item for item in document["requirements"]}
    assert process.returncode == 130
    # Whether its pod could be asked what it is before it was gone is another matter.
    assert found[HYBRID]["evidence"]["probes"][0]["observed"] == "passed", found[HYBRID]
    assert found["core.storage.hostpath-read"]["outcome"] == "blocked"
    assert ask(kubeconfig, NAMESPACES, "e2e-run") == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--engine", "upstream", "--e2e-binary", "missing"], "there is no file missing"),
        (["--engine", "upstream"], "winready upstream fetch"),
        (["--e2e-binary", "missing"], "goes with --engine upstream or both"),
        (["--engine", "native", "--test-directory", "."], "goes with --engine upstream"),
    ],
)
def test_wrong_usage(kubeconfig: str, arguments: list[str], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/nonexistent")
    result = CliRunner().invoke(cli, ["run", "--kubeconfig", kubeconfig, *arguments])
    assert result.exit_code == 2
    assert says in result.stderr
    assert "Traceback" not in result.stderr

"""Kubernetes' own e2e.test judges nodes of ours on the real control plane: what it shows, and what it must not.

A quick part: whole runs of the mapping take minutes and are for people (docs/upstream.md).
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import winready
from real.conftest import EMBEDDED, KUBERNETES, Cluster, Kubectl, programs
from real_programs import ensure
from winready.engine.rules.conformance import judge_conformance, read_conformance
from winready.upstream.listing import parse_listing

pytestmark = pytest.mark.e2e

HOSTPATH = "core.storage.hostpath-read"
SLICES = "core.network.endpointslice-routing"
PODS = "core.network.windows-to-linux-pod-ip"
TOKENS = "core.storage.token-rotation"
"""Its test looks once a minute, so that it cannot be over before it is stopped."""
STABLE = "should have stable networking for Linux and Windows pods"
LIMIT = 300
AGREEMENT = {
    "extend.hostprocess.api-access": "agree",
    "extend.hostprocess.system-api": "agree in part",
    "extend.activedirectory.run-as-user": "agree",
    "extend.networkpolicy.block-pods": "agree",
    "extend.networkpolicy.block-namespaces": "agree",
    "extend.network.windows-to-linux-service-ip-both-families": "agree in part",
    "extend.network.windows-to-linux-nodeport-both-families": "agree in part",
    "extend.network.linux-to-windows-service-ip-both-families": "agree in part",
    "extend.network.linux-to-windows-nodeport-both-families": "agree in part",
    "extend.network.dual-stack": "agree",
}
"""Requirements of extensions with upstream tests that these nodes can run, and how far those reach."""


@pytest.fixture(scope="session")
def real(clusters: Callable[[str], Cluster]) -> Cluster:
    return clusters(KUBERNETES)


@pytest.fixture(scope="session")
def real_kubectl(real: Cluster) -> Kubectl:
    return Kubectl(programs(KUBERNETES) / "kubectl", real.kubeconfig)


@pytest.fixture(scope="session")
def e2e() -> Path:
    return ensure(KUBERNETES, ["e2e.test"]) / "e2e.test"


@pytest.fixture(scope="session")
def renamed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package whose mapping calls one test by a name that no e2e.test has; the folder to import from."""
    folder = tmp_path_factory.mktemp("renamed")
    shutil.copytree(Path(winready.__file__).parent, folder / "winready")
    mapping = folder / "winready" / "upstream" / "mapping.yaml"
    text = mapping.read_text()
    assert STABLE in text
    mapping.write_text(text.replace(STABLE, "should have steady networking for Linux and Windows pods"))
    return folder


def test_a_result_with_the_very_conformance_tests_of_that_version_is_one(e2e: Path, tmp_path: Path) -> None:
    listed = subprocess.run([e2e, "--list-tests"], capture_output=True, check=True).stdout
    names = [text for text in parse_listing(listed, "e2e.test").texts if "[Conformance]" in text]
    suite = ElementTree.Element("testsuite")
    for name in names:
        ElementTree.SubElement(suite, "testcase", name=f"[It] {name}")
    ElementTree.ElementTree(suite).write(tmp_path / "junit_01.xml")
    outcome, reason = judge_conformance(read_conformance(tmp_path / "junit_01.xml"), f"v{KUBERNETES}")
    assert (outcome, f"all {len(names)} conformance tests" in reason) == ("passed", True)


def run(cluster: Cluster, e2e: Path, folder: Path, *requirements: str, engine: str = "upstream") -> list[str]:
    """The words of a run."""
    chosen = [word for name in requirements for word in ("--requirement", name)]
    options = ["--engine", engine, "--e2e-binary", str(e2e), "--time-scale", "5", "--report-dir", str(folder)]
    return ["run", "--kubeconfig", cluster.kubeconfig, *options, *chosen, "-o", "json"]


def outcomes(document: dict[str, Any]) -> dict[str, str]:
    return {item["id"]: item["outcome"] for item in document["requirements"]}


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that somebody else does."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.2)


def left_behind(kubectl: Kubectl) -> str:
    """Namespaces of e2e.test and policies of ours."""
    namespaces = kubectl.ok("get", "namespaces", "-l", "e2e-run", "-o", "name")
    policies = kubectl.ok("get", "mutatingadmissionpolicies,mutatingadmissionpolicybindings", "-o", "name")
    return namespaces + policies


@pytest.mark.timeout(900)
def test_whole_proofs_pass_with_evidence_and_steering_comes_and_goes(
    real: Cluster, real_kubectl: Kubectl, e2e: Path, tmp_path: Path
) -> None:
    result = real.winready(*run(real, e2e, tmp_path, HOSTPATH, SLICES, "core.storage.shared-files"))
    assert result.stdout, result.stderr
    document = json.loads(result.stdout)
    found = {item["id"]: item for item in document["requirements"]}
    assert outcomes(document) == {HOSTPATH: "passed", SLICES: "passed", "core.storage.shared-files": "blocked"}, found
    assert "instead of three that read and write at once" in found["core.storage.shared-files"]["reason"]
    steered = found[SLICES]["evidence"]
    assert steered["facts"]["upstream"] == {"program": f"e2e.test v{KUBERNETES}", "steering": "policy", "shown": "all"}
    assert {pod["os"] for pod in steered["pods"]} == {"windows"}
    assert any(pod["build"] == "10.0.20348" for pod in steered["pods"])
    assert all(probe["ok"] for probe in steered["probes"])
    assert result.returncode == document["exit_code"] == 3
    assert left_behind(real_kubectl) == ""


@pytest.mark.timeout(900)
def test_features_are_shown_by_tests_of_upstream(
    real: Cluster, real_kubectl: Kubectl, e2e: Path, tmp_path: Path
) -> None:
    chosen = ["--feature", "grpc-probes", "--feature", "hyperv-runtimeclass"]
    options = ["--engine", "upstream", "--e2e-binary", str(e2e), "--time-scale", "5", "--report-dir", str(tmp_path)]
    result = real.winready("matrix", "--verify", "--kubeconfig", real.kubeconfig, *chosen, *options, "-o", "json")
    assert result.stdout, result.stderr
    found = {item["id"]: item for item in json.loads(result.stdout)["features"]}
    assert found["grpc-probes"]["outcome"] == "passed", found
    assert found["grpc-probes"]["reason"].startswith("shown by upstream tests on windows-")
    # These nodes have no such runtime, and the test says so itself.
    assert found["hyperv-runtimeclass"]["outcome"] == "blocked"
    assert "skipped itself" in found["hyperv-runtimeclass"]["reason"]
    assert result.returncode == 3
    assert left_behind(real_kubectl) == ""


@pytest.mark.timeout(900)
def test_both_verifiers_agree_about_extensions(clusters: Callable[..., Cluster], e2e: Path, tmp_path: Path) -> None:
    cluster = clusters(KUBERNETES, "--dual-stack")
    result = cluster.winready(*run(cluster, e2e, tmp_path, *AGREEMENT, engine="both"))
    assert result.stdout, result.stderr
    found = {item["id"]: item for item in json.loads(result.stdout)["requirements"]}
    assert {name: item["evidence"]["facts"]["agreement"]["verdict"] for name, item in found.items()} == AGREEMENT
    assert {item["outcome"] for item in found.values()} == {"passed"}
    assert result.returncode == 0


@pytest.mark.timeout(900)
def test_a_taint_steers_where_there_are_no_policies(
    clusters: Callable[[str], Cluster], e2e: Path, tmp_path: Path
) -> None:
    embedded = clusters(EMBEDDED)
    result = embedded.winready(*run(embedded, e2e, tmp_path, SLICES), "--steer-by-taint")
    assert result.stdout, result.stderr
    document = json.loads(result.stdout)
    assert outcomes(document) == {SLICES: "passed"}, document
    evidence = document["requirements"][0]["evidence"]
    assert evidence["facts"]["upstream"]["steering"] == "taint"
    assert {pod["os"] for pod in evidence["pods"]} == {"windows"}
    kubectl = Kubectl(programs(KUBERNETES) / "kubectl", embedded.kubeconfig)
    assert kubectl.ok("get", "nodes", "-o", "jsonpath={.items[*].spec.taints}") == ""
    assert kubectl.ok("get", "namespaces", "-l", "e2e-run", "-o", "name") == ""


@pytest.mark.timeout(900)
def test_a_focus_that_matches_nothing_is_blocked_and_drift_names_the_test(
    real: Cluster, e2e: Path, renamed: Path, tmp_path: Path
) -> None:
    def edited(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(renamed)}
        command = [sys.executable, "-m", "winready", *arguments]
        return subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT, check=False
        )

    result = edited(*run(real, e2e, tmp_path, PODS))
    document = json.loads(result.stdout)
    assert outcomes(document) == {PODS: "blocked"}
    assert "drifted: no spec has this text" in document["requirements"][0]["reason"]
    assert result.returncode == 3
    drift = edited("upstream", "drift", "--e2e-binary", str(e2e), "-o", "json")
    assert drift.returncode == 1, drift.stderr
    drifted = [item for item in json.loads(drift.stdout)["tests"] if item["drifted"]]
    assert [item["test"] for item in drifted] == ["hybrid-network"]
    assert drifted[0]["nearest"][0].endswith(STABLE)
    unchanged = real.winready("upstream", "drift", "--e2e-binary", str(e2e))
    assert unchanged.returncode == 0, unchanged.stdout


@pytest.mark.timeout(900)
def test_steering_touches_the_chosen_namespaces_alone(real: Cluster, real_kubectl: Kubectl) -> None:
    def selector(namespace: str) -> str:
        pod = "run p --image=registry.k8s.io/pause:3.10.2 --dry-run=server -o jsonpath={.spec.nodeSelector} -n"
        return real_kubectl.ok(*pod.split(), namespace)

    def has_account(namespace: str) -> bool:
        return real_kubectl("get", "serviceaccount", "default", "-n", namespace).returncode == 0

    windows = '{"kubernetes.io/os":"windows"}'
    for name in ("steered", "spared"):
        real_kubectl.ok("create", "namespace", name)
    try:
        real_kubectl.ok("label", "namespace", "steered", "e2e-run=by-hand")
        for name in ("steered", "spared"):
            until(functools.partial(has_account, name))
        applied = real.winready("steer", "apply", "--kubeconfig", real.kubeconfig)
        assert applied.returncode == 0, applied.stderr
        until(lambda: selector("steered") == windows)
        assert selector("spared") == ""
        removed = real.winready("steer", "delete", "--kubeconfig", real.kubeconfig)
        assert removed.returncode == 0, removed.stderr
        until(lambda: selector("steered") == "")
    finally:
        real.winready("steer", "delete", "--kubeconfig", real.kubeconfig)
        real_kubectl.ok("delete", "namespace", "steered", "spared")
    assert left_behind(real_kubectl) == ""


@pytest.mark.timeout(900)
def test_sigterm_ends_it_and_leaves_no_namespace(
    real: Cluster, real_kubectl: Kubectl, e2e: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "winready", *run(real, e2e, tmp_path, TOKENS)]
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(real.runtime)}
    pipe = subprocess.PIPE

    def running() -> str:
        return real_kubectl.ok("get", "pods", "-A", "-o", "name", "--field-selector=status.phase=Running")

    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
        until(lambda: "/inclusterclient" in running() or process.poll() is not None)
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 130, errors
    assert outcomes(json.loads(output)) == {TOKENS: "blocked"}
    assert left_behind(real_kubectl) == ""

"""Classes of defects that once passed: one fault of each has the same outcome on a real control plane.

Only those who must notice it run, and a requirement beside them that must stay calm.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from real.conftest import KUBERNETES, Cluster, Kubectl, programs
from winready.engine.selection import Selection
from winready.proof.choosing import Trial
from winready.proof.expected.table import expected
from winready.proof.trial import hold_trial

TIME_SCALE = 5
CALM = "core.network.windows-to-linux-pod-ip"
CLASSES = {
    "another living service answers": ("dns.windows.other-service", ["core.network.dns-internal", CALM]),
    "only small packets get through": (
        "link.windows.mtu-black-hole",
        ["core.network.linux-to-windows-pod-ip", "core.scheduling.unschedulable-stays-pending"],
    ),
    "every third look-up fails": ("dns.windows.every-third-fails", ["core.network.dns-external", CALM]),
    "rules are lost after a while": (
        "service-proxy.windows.rules-lost-later",
        ["core.network.windows-to-linux-service-ip", CALM],
    ),
    "the first container only": ("volumes.windows.updates-first-container", ["core.storage.host-volumes", CALM]),
    "the service proxy is dead after a reboot": (
        "reboot.windows.service-proxy-dead",
        ["core.storage.reboot-recovery", CALM],
    ),
    "a node lies about its build": ("node.windows.build-lies", ["core.storage.hostpath-write", CALM]),
    "a limit that is a weight": ("machine.windows.cpu-limit-is-weight", ["core.scheduling.limits-honoured", CALM]),
}


def run(cluster: Cluster, folder: Path, requirements: Sequence[str], *more: str) -> dict[str, Any]:
    """The record of a run."""
    words = [word for name in requirements for word in ("--requirement", name)]
    words += ["--time-scale", str(TIME_SCALE), "--report-dir", str(folder), "--allow-disruptive", "-o", "json", *more]
    result = cluster.winready("run", "--kubeconfig", cluster.kubeconfig, *words)
    assert result.returncode in (0, 1, 3), result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", CLASSES)
def test_a_fault_of_each_class(clusters: Callable[[str], Cluster], tmp_path: Path, name: str) -> None:
    cluster = clusters(KUBERNETES)
    fault, requirements = CLASSES[name]
    broken = cluster.winready("sandbox", "break", fault, "--name", cluster.document["name"])
    assert broken.returncode == 0, broken.stderr
    try:
        document = run(cluster, tmp_path, requirements)
    finally:
        cluster.winready("sandbox", "heal", "--name", cluster.document["name"])
    real = {item["id"]: item["outcome"] for item in [*document["requirements"], *document["rules"]]}
    embedded = hold_trial(Trial(fault, Selection(requirements=list(requirements)))).outcomes
    judged = [*requirements, *(each for each in expected(fault).requirements if each.startswith("rule."))]
    assert {each: real[each] for each in judged} == {each: embedded[each] for each in judged}
    failed = {each for each in judged if real[each] == "failed"}
    assert failed == {*expected(fault).requirements} & {*judged}
    assert failed, "somebody noticed it"


@pytest.mark.timeout(900)
def test_nodes_that_were_not_judged_and_a_simulated_cluster_are_named(
    clusters: Callable[[str], Cluster], tmp_path: Path
) -> None:
    document = run(clusters(KUBERNETES), tmp_path, [CALM], "--nodes", "1")
    assert "1 of 2 Windows nodes judged" in document["verdict_text"]
    assert document["cluster"]["simulated"] is True


def hold_back(kubectl: Kubectl) -> str:
    """Put an object that nobody releases into the first namespace of a run, as a controller that died would."""
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    for _ in range(300):
        found = kubectl.ok("get", "namespaces", "-l", "winready.io/run", "-o", "jsonpath={.items[*].metadata.name}")
        if found:
            kubectl.ok("create", "-n", found.split()[0], "-f", "-", stdin=json.dumps(held))
            return found.split()[0]
        time.sleep(0.2)
    raise AssertionError("the run made no namespace")


@pytest.mark.timeout(900)
def test_what_stays_behind_is_named_until_cleanup_removes_it(
    clusters: Callable[[str], Cluster], tmp_path: Path
) -> None:
    cluster = clusters(KUBERNETES)
    kubectl = Kubectl(programs(KUBERNETES) / "kubectl", cluster.kubeconfig)
    with ThreadPoolExecutor() as beside:
        holding = beside.submit(hold_back, kubectl)
        document = run(cluster, tmp_path, [CALM])
        namespace = holding.result()
    assert (document["verdict"], document["exit_code"]) == ("Pass", 3)
    (left,) = document["leftovers"]
    assert left.startswith(f"Namespace {namespace} (")
    assert "example.com/hold in 1 resource instances" in left

    cleanup = ("cleanup", "--kubeconfig", cluster.kubeconfig, "--objects-only", "--timeout")
    still = cluster.winready(*cleanup, "5s")
    assert still.returncode == 3
    assert namespace in still.stdout + still.stderr
    kubectl.ok("patch", "configmap", "held", "-n", namespace, "-p", '{"metadata": {"finalizers": null}}')
    gone = cluster.winready(*cleanup, "2m")
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert kubectl("get", "namespace", namespace).returncode != 0

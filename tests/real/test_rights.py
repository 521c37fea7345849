"""The rights that ``winready rbac`` prints, on a real API server with its own RBAC and its audit log.

They suffice, each is used, and each is missed by name before the first pod. Whole suites in the whole cluster run in
``test_suite.py``; here they run in prepared namespaces, with something in their way in each.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from proof.test_rights import losing_answers
from real.conftest import KUBERNETES, OLDER, WITH_OLDER, Cluster
from real.least_rights import UNHAPPY, UNSEEN, Operator
from winready.cli.main import cli
from winready.cluster.client import Client
from winready.cluster.errors import ExecFailed
from winready.cluster.kubeconfig import find_target
from winready.cluster.rights import Right
from winready.proof.healthy.admission import DENY, limit_range

PREFIX = "prepared"
QUICK = "core.storage.hostpath-write"
FILES = "core.storage.host-volumes"
ADDRESSES = "core.network.distinct-pod-ips"
FAR = {"core.scheduling.limits-honoured": "rights are missing: get nodes/proxy in the whole cluster"}
"""What prepared namespaces do not suffice for."""
OBSTACLES: dict[str, tuple[str, dict[str, Any]]] = {
    "NetworkPolicy": ("networking.k8s.io/v1", DENY),
    "LimitRange": ("v1", limit_range(max={"memory": "32Mi"})),
}
DISRUPTIVE = "core.storage.reboot-recovery"
UNWANTED = {
    ("list", "daemonsets"): "what the cluster offers, which a cleanup does not need to know",
    ("list", "gmsacredentialspecs"): "likewise",
    ("list", "mutatingadmissionpolicybindings"): "what 'winready steer' left, of which only who may steer can make any",
    ("list", "mutatingadmissionpolicies"): "likewise",
    ("list", "mutatingwebhookconfigurations"): "likewise",
}
"""What a cleanup asks for besides and does without."""
STUCK = {
    ("list", "events"): "where its pod does not start",
    ("get", "nodes"): "where its pod is lost, or on a node that has just joined",
    ("delete", "pods"): "where a pod of a run is on a node that is gone",
}
"""What it uses only then."""
VERSIONS = [KUBERNETES, pytest.param(OLDER, marks=WITH_OLDER)]
Clusters = Callable[[str], Cluster]


def run(operator: Operator, folder: Path, *words: str) -> Result:
    """A run in this process, so that answers can be lost on their way to it."""
    options = ["--kubeconfig", operator.kubeconfig, "--time-scale", "5", "--report-dir", str(folder), "-o", "json"]
    return CliRunner().invoke(cli, ["run", *options, *words])


def outcomes(result: Result) -> dict[str, dict[str, Any]]:
    assert result.stdout, result.output
    return {item["id"]: item for item in json.loads(result.stdout)["requirements"]}


def obstruct(operator: Operator, kind: str, *spaces: str) -> None:
    """As an administrator, put something in the way of runs, into some or all of the prepared namespaces."""
    version, body = OBSTACLES[kind]
    own = {right.place for right in operator.rights if right.place.startswith(PREFIX)}
    places = [f"{PREFIX}-{space}" for space in spaces] or sorted(own)
    items = [
        {"apiVersion": version, "kind": kind, **body, "metadata": {**body["metadata"], "namespace": place}}
        for place in places
    ]
    operator.kubectl.ok("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", VERSIONS)
def test_in_prepared_namespaces_the_suite_uses_every_right_and_each_is_missed_by_name(
    clusters: Clusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    words = ["--namespace-prefix", PREFIX]
    operator = Operator(clusters(version), tmp_path, "team", *words)
    for right in operator.rights:
        reaches = right.place == "" and right.resource not in (
            "nodes",
            "namespaces",
            "daemonsets",
            "gmsacredentialspecs",
        )
        assert not reaches, right
        assert right.place or right.verb in ("get", "list")
    obstruct(operator, "NetworkPolicy")
    with operator.heard() as asked:
        with losing_answers(monkeypatch):
            whole = run(operator, tmp_path, *words)
        obstruct(operator, "LimitRange", "ips")
        refused = run(operator, tmp_path, *words, "--requirement", ADDRESSES)
    found = outcomes(whole)
    assert {name: item["reason"] for name, item in found.items() if item["outcome"] != "passed"} == {
        **FAR,
        DISRUPTIVE: "it disturbs nodes and was not allowed",
    }
    assert len(found) == 24
    assert json.loads(whole.stdout)["leftovers"] == []
    assert "LimitRange bounds" in outcomes(refused)[ADDRESSES]["reason"]
    assert asked.refused == set()
    assert asked.unused(operator.rights) <= UNSEEN.keys()
    left = operator.kubectl.ok("get", "pods,services,configmaps,secrets,networkpolicies", "-A", "-o", "name")
    assert "winready" not in left
    named = asyncio.run(operator.named_when_missing(*words))
    operator.leave()
    assert named == dict.fromkeys(operator.rights, True)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", VERSIONS)
def test_in_the_whole_cluster_each_right_is_missed_by_name(clusters: Clusters, tmp_path: Path, version: str) -> None:
    operator = Operator(clusters(version), tmp_path, "whole", "--allow-disruptive")
    named = asyncio.run(operator.named_when_missing("--allow-disruptive"))
    operator.leave()
    assert named == dict.fromkeys(operator.rights, True)


@pytest.mark.timeout(300)
def test_a_run_without_a_right_ends_before_its_first_pod_or_says_what_it_will_not_know(
    clusters: Clusters, tmp_path: Path
) -> None:
    operator = Operator(clusters(KUBERNETES), tmp_path, "less", "--requirement", QUICK, "--requirement", FILES)
    for right, name, outcome in (
        (Right("create", "pods/exec"), QUICK, "error"),
        (Right("create", "secrets"), FILES, "blocked"),
    ):
        operator.lack(right)
        with operator.heard() as asked:
            result = run(operator, tmp_path, "--requirement", name)
        assert (result.exit_code, outcomes(result)[name]["outcome"]) == (3, outcome)
        assert outcomes(result)[name]["reason"] == f"rights are missing: {right}"
        assert f"'winready rbac --requirement {name} | kubectl apply -f -'" in outcomes(result)[name]["next_step"]
        assert not any(each.verb == "create" and each.resource in ("pods", "namespaces") for each in asked.allowed)
    operator.lack(Right("list", "limitranges"))
    result = run(operator, tmp_path, "--requirement", QUICK)
    operator.leave()
    assert (result.exit_code, outcomes(result)[QUICK]["outcome"]) == (0, "passed")
    assert "rights are missing: list limitranges; without them a run knows less" in result.stderr
    assert "next step: 'winready rbac" in result.stderr


@pytest.mark.parametrize("version", VERSIONS)
def test_what_the_audit_log_does_not_show_is_asked_for_all_the_same(
    clusters: Clusters, tmp_path: Path, version: str
) -> None:
    operator = Operator(clusters(version), tmp_path, "streams", "--requirement", QUICK)
    assert "HTTP 404" in asyncio.run(exec_into_nothing(operator))
    operator.lack(Right("create", "pods/exec"))
    said = asyncio.run(exec_into_nothing(operator))
    operator.leave()
    assert ("HTTP 403" in said) == (version == KUBERNETES), said


async def exec_into_nothing(operator: Operator) -> str:
    """How an exec into a pod that is not there fails."""
    async with Client.connect(find_target(operator.kubeconfig)) as client:
        with pytest.raises(ExecFailed) as failed:
            await client.exec("default", "nobody", "main", ["true"], deadline=30)
    return failed.value.message


@pytest.mark.timeout(300)
def test_a_cleanup_with_its_least_rights_looks_at_every_node(clusters: Clusters, tmp_path: Path) -> None:
    operator = Operator(clusters(KUBERNETES), tmp_path, "cleaning", "--for", "cleanup")
    with operator.heard() as asked:
        result = operator.cluster.winready("cleanup", "--kubeconfig", operator.kubeconfig)
    operator.leave()
    assert result.returncode == 0, result.stdout + result.stderr
    assert {right[:2] for right in asked.refused} <= UNWANTED.keys()
    assert asked.unused(operator.rights) <= {*UNHAPPY, *UNSEEN, *STUCK}

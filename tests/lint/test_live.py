"""A cluster as the source of facts and objects."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lint.manifests import pod, workload
from winready.cli.main import cli
from winready.cli.own_sandbox import own_sandbox
from winready.cluster.client import Client
from winready.cluster.inventory import Inventory, Node
from winready.cluster.inventory import Taint as NodeTaint
from winready.cluster.kubeconfig import Target, find_target
from winready.cluster.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES
from winready.lint.context import Profile, Taint
from winready.lint.finding import Finding
from winready.lint.live import CSI_NODES, ask, profile_of, without_defaults
from winready.lint.run import Run, Settings


def inventory(*nodes: Node, version: str = "v1.33.2", **features: str) -> Inventory:
    return Inventory(server="", version=version, nodes=list(nodes), features=features, missing={})


def windows(build: str, *taints: tuple[str, str]) -> Node:
    found = [NodeTaint(key=key, value=value, effect="NoSchedule") for key, value in taints]
    return Node(name=build, uid="", os="windows", build=build, taints=found)


def test_the_profile_of_a_cluster() -> None:
    linux = Node(name="l", uid="", os="linux", build="6.8", taints=[NodeTaint(key="gpu", effect="NoSchedule")])
    nodes = (windows("10.0.20348", ("os", "windows"), ("pool", "a")), windows("10.0.26100", ("os", "windows")), linux)
    notices: list[str] = []
    engine = {"network-policy": "Calico (DaemonSet calico-node-windows)"}
    profile = profile_of(inventory(*nodes, **engine), Profile(namespace="web"), notices)
    assert (profile.versions.low, profile.versions.high) == (33, 33)
    assert profile.builds == (20348, 26100)
    assert profile.taints == (Taint("os", "windows", "NoSchedule"),)  # what every Windows node has
    assert profile.cni == "calico"
    assert profile.namespace == "web"
    assert notices == []


def test_a_version_without_facts_is_said() -> None:
    notices: list[str] = []
    profile = profile_of(inventory(version="v1.41.0-eks-1"), Profile(), notices)
    assert profile.versions.low == 37
    assert not profile.has_windows_nodes
    assert notices == ["the cluster is v1.41.0-eks-1; the nearest version with facts is 1.37"]


def test_what_the_api_server_added_is_taken_off_again() -> None:
    mine = pod({"volumes": [{"name": "s", "secret": {"secretName": "s"}}]})
    live = pod(
        {
            "volumes": [
                {"name": "s", "secret": {"secretName": "s", "defaultMode": 420}},
                {"name": "kube-api-access-x", "projected": {"defaultMode": 420, "sources": []}},
            ],
            "containers": [{"volumeMounts": [{"name": "kube-api-access-x", "mountPath": "/var/run"}]}],
        }
    )
    live["status"] = {"phase": "Running"}
    live["metadata"]["managedFields"] = [{}]
    mine["spec"]["containers"][0]["volumeMounts"] = []
    assert without_defaults(live) == mine


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Any:
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(tmp_path_factory.mktemp("run"))
    with own_sandbox("lint", "max") as (path, _):
        yield path
    if before is None:
        del os.environ["XDG_RUNTIME_DIR"]
    else:
        os.environ["XDG_RUNTIME_DIR"] = before


def test_live_objects_and_a_file_judged_for_the_cluster(kubeconfig: Path, tmp_path: Path) -> None:
    live = CliRunner().invoke(
        cli,
        ["lint", "--live", "-n", "kube-system", "--kubeconfig", str(kubeconfig), "-o", "json", "--severity", "info"],
    )
    assert live.exception is None or isinstance(live.exception, SystemExit), live.output
    document = json.loads(live.stdout)
    assert document["kubernetes"] == "1.36"
    assert document["summary"]["unreadable"] == 0
    proxies = [one for one in document["findings"] if one["name"] == "kube-proxy-windows"]
    assert "hpc-gate" in {one["rule"] for one in proxies}
    assert "res-missing-limits" not in {one["rule"] for one in document["findings"]}
    assert proxies[0]["path"] == "live/kube-system/daemonset/kube-proxy-windows"
    (tmp_path / "old.yaml").write_text(json.dumps(pod({"containers": [{"image": "a:ltsc2019"}]})))
    arguments = ["lint", "--cluster", "--kubeconfig", str(kubeconfig), "-o", "json", str(tmp_path / "old.yaml")]
    judged = json.loads(CliRunner().invoke(cli, arguments).stdout)
    assert "img-os-build-mismatch" in {one["rule"] for one in judged["findings"]}


UNMET = {
    "priorityClassName": "gold",
    "runtimeClassName": "nowhere",
    "nodeSelector": {"disk": "ssd"},
    "volumes": [{"name": "v", "csi": {"driver": "linux.example.org"}}],
}
"""What the cluster of these tests has nothing of."""
UNMET_RULES = {"sched-priority-unknown", "rc-unknown", "sched-no-node", "vol-csi-not-on-windows", "vol-class-unknown"}


def judged(target: Target, folder: Path) -> dict[str, str]:
    """The rules that a workload violates on a cluster, with what is said."""
    claim = {"metadata": {"name": "data"}, "spec": {"storageClassName": "gone"}}
    (folder / "app.yaml").write_text(json.dumps(workload("StatefulSet", UNMET, volumeClaimTemplates=[claim])))
    seen = asyncio.run(ask(target, Profile(), with_objects=False, namespace=""))
    found = Run([str(folder)], Settings(seen.profile)).results()
    told = {one.rule: one.message for one in found if isinstance(one, Finding)}
    return told | {"notices": "; ".join(seen.notices)}


def test_what_a_cluster_does_not_have_is_found_where_it_may_be_looked_for(kubeconfig: Path, tmp_path: Path) -> None:
    target = find_target(str(kubeconfig))
    reader = {"metadata": {"name": "reader"}}
    subject = {"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"}
    reference = {"kind": "ClusterRole", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}

    async def prepare() -> None:
        async with Client.connect(target) as client:
            for node, drivers in (("linux-1", ["linux.example.org", "both"]), ("windows-1", ["both"])):
                spec = {"drivers": [{"name": name, "nodeID": node} for name in drivers]}
                await client.create(CSI_NODES, {"metadata": {"name": node}, "spec": spec})
            rule = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}
            await client.create(CLUSTER_ROLES, {**reader, "rules": [rule]})
            await client.create(CLUSTER_ROLE_BINDINGS, {**reader, "roleRef": reference, "subjects": [subject]})

    asyncio.run(prepare())
    told = judged(target, tmp_path)
    assert told.keys() >= UNMET_RULES
    assert "(windows-1: no label disk: ssd; windows-2: no label disk: ssd)" in told["sched-no-node"]
    assert told["notices"] == ""
    # Whoever may only look at nodes is told what was not looked at, and of nothing else that it is missing.
    limited = judged(replace(target, impersonate={"Impersonate-User": ("eve",)}), tmp_path)
    assert limited.keys() & UNMET_RULES == {"sched-no-node"}
    for kind in ("runtimeclasses", "priorityclasses", "storageclasses", "persistentvolumes", "csinodes"):
        assert f"{kind} were left out" in limited["notices"]


def test_no_cluster_is_said_plainly(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["lint", "--live", "--kubeconfig", str(tmp_path / "nowhere")])
    assert result.exit_code == 2
    assert "does not exist" in result.output
    result = CliRunner().invoke(cli, ["lint", "--live", "--fix"])
    assert result.exit_code == 2
    assert "leave --live out" in result.output

"""A cluster as the source of facts and objects."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lint.manifests import pod
from winready.cli.main import cli
from winready.cli.own_sandbox import own_sandbox
from winready.cluster.inventory import Inventory, Node
from winready.cluster.inventory import Taint as NodeTaint
from winready.lint.context import Profile, Taint
from winready.lint.live import profile_of, without_defaults


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


def test_no_cluster_is_said_plainly(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["lint", "--live", "--kubeconfig", str(tmp_path / "nowhere")])
    assert result.exit_code == 2
    assert "does not exist" in result.output
    result = CliRunner().invoke(cli, ["lint", "--live", "--fix"])
    assert result.exit_code == 2
    assert "leave --live out" in result.output

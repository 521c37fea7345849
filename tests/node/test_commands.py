"""``winready node`` as a user runs it: every command is there, and the add-ons say what they did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.conftest import CommandLine
from node.sandboxes import ask, command_line
from node.test_joining import parameters, write_bundle
from winready.cli.node import COMMANDS
from winready.cluster.client import Client
from winready.cluster.resources import CONFIG_MAPS, DAEMON_SETS, NAMESPACES
from winready.node.addons import NAMESPACE

__all__ = ["command_line"]
GIVEN = [
    "--pod-cidr", "10.244.0.0/16", "--service-cidr", "10.96.0.0/16", "--endpoint", "api.example:6443",
]  # fmt: skip


@pytest.fixture(scope="module")
def own_cluster(command_line: CommandLine) -> str:
    """A cluster with the service proxy and the pod network that sandboxes have."""
    return str(command_line.sandbox("commands", "--linux", "1", "--windows", "1")["kubeconfig"])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(command_line: CommandLine, name: str) -> None:
    assert name in command_line("node", "--help").stdout
    result = command_line("node", name, "--help")
    assert result.returncode == 0, result.stderr
    assert "Usage: winready node" in result.stdout


def test_add_ons_come_stay_and_go(command_line: CommandLine, own_cluster: str) -> None:
    def run(*words: str) -> tuple[int, str, str]:
        result = command_line("node", "addons", *words, "--kubeconfig", own_cluster)
        return result.returncode, result.stdout, result.stderr

    code, out, err = run("apply", *GIVEN)
    assert (code, out) == (2, "")
    assert "calico-node-windows brings a pod network (calico) to Windows nodes already" in err
    assert len(err.splitlines()) == 2
    # What would be refused is refused here, too.
    assert run("diff", *GIVEN) == (code, out, err)
    assert ask(own_cluster, lambda client: client.find(NAMESPACES, NAMESPACE)) is None

    async def clear(client: Client) -> None:
        for name in ("kube-proxy-windows", "calico-node-windows"):
            await client.delete(DAEMON_SETS, name, "kube-system")

    ask(own_cluster, clear)
    code, out, _ = run("diff", *GIVEN)
    assert code == 1
    assert f"created: DaemonSet {NAMESPACE}/flannel" in out
    assert "  +    name: flannel" in out or "  +  name: flannel" in out
    assert ask(own_cluster, lambda client: client.find(NAMESPACES, NAMESPACE)) is None
    code, out, _ = run("apply", *GIVEN)
    assert code == 0
    assert f"created: DaemonSet {NAMESPACE}/kube-proxy" in out
    # Nobody is at this address, so Flannel never comes up, and --wait says so.
    code, out, _ = run("apply", *GIVEN, "--wait", "1s")
    assert code == 1
    assert f"not yet: DaemonSet {NAMESPACE}/flannel: " in out
    code, out, _ = run("apply", *GIVEN)
    assert (code, out.splitlines()[-1]) == (0, "nothing was changed")
    code, out, _ = run("diff", *GIVEN, "--mode", "l2bridge", "-o", "json")
    changes = {item["object"]: item for item in json.loads(out)["changes"]}
    assert code == 1
    assert any('"Type": "host-gw"' in line for line in changes[f"ConfigMap {NAMESPACE}/flannel"]["lines"])
    code, out, _ = run("diff", *GIVEN)
    assert (code, out.splitlines()[-1]) == (0, "nothing changes")
    code, out, _ = run("delete")
    assert (code, f"removed: Namespace {NAMESPACE}" in out) == (0, True)
    assert run("delete")[:2] == (0, "there was nothing to remove\n")


def test_a_bundle_of_another_cluster_is_refused(command_line: CommandLine, own_cluster: str, tmp_path: Path) -> None:
    newer = write_bundle(tmp_path / "newer", parameters(kubernetes="1.99.0"))
    kubeadm = {
        "metadata": {"name": "kubeadm-config"},
        "data": {"ClusterConfiguration": "networking: {podSubnet: 10.200.0.0/16}"},
    }
    fits = write_bundle(tmp_path / "fits")
    for path, words, there in (
        (newer, "a kubelet 1.99.0 is newer than the API server", False),
        (fits, "the addresses of pods are 10.200.0.0/16 in this cluster, 10.244.0.0/16 in the bundle", True),
    ):
        if there:
            ask(own_cluster, lambda client: client.create(CONFIG_MAPS, kubeadm, "kube-system"))
        for command in ("apply", "diff"):
            result = command_line("node", "addons", command, "--bundle", str(path), "--kubeconfig", own_cluster)
            assert (result.returncode, result.stdout) == (2, "")
            assert words in result.stderr
    ask(own_cluster, lambda client: client.delete(CONFIG_MAPS, "kubeadm-config", "kube-system"))
    assert ask(own_cluster, lambda client: client.find(NAMESPACES, NAMESPACE)) is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["apply"], "--pod-cidr"),
        (["apply", *GIVEN, "--cni", "none"], "--network-name Calico"),
        (["apply", *GIVEN, "--kubernetes", "1.99.0"], "newer than the API server"),
        (["apply", *GIVEN, "--kubernetes", "1.x"], "is not a release"),
        (["apply", *GIVEN, "--service-cidr", "10.244.0.0/24"], "overlap"),
        (["apply", "--bundle", "nowhere.zip"], "there is no bundle"),
        (["diff", *GIVEN, "--endpoint", "10.96.0.1"], "is one of the cluster's services"),
    ],
)
def test_wrong_input_gets_one_sentence_and_changes_nothing(
    command_line: CommandLine, own_cluster: str, words: list[str], said: str
) -> None:
    result = command_line("node", "addons", *words, "--kubeconfig", own_cluster)
    assert (result.returncode, result.stdout) == (2, "")
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert ask(own_cluster, lambda client: client.find(NAMESPACES, NAMESPACE)) is None

"""The real kubeadm.exe joins a real control plane, by what our own commands print and look for."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import winready.node
from real_programs import ensure
from windows.candidate import NAME, Candidate, Line
from windows.control_plane import ENDPOINT, KUBERNETES, ControlPlane
from windows.ground import Ground, Result, stopped_at_last
from windows.judges import put_agnhost
from winready.checks.core_storage.token_rotation import read_calls
from winready.node.skew import join_api

pytestmark = pytest.mark.windows_programs
CONFIG = "var/lib/kubelet/config.yaml"
JOINED = {"etc/kubernetes/kubelet.conf", "etc/kubernetes/pki/ca.crt", CONFIG, "var/lib/kubelet/kubeadm-flags.env"}


@pytest.fixture(scope="module")
def joining(machine: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Candidate]:
    with ControlPlane(tmp_path_factory.mktemp("plane"), machine.network) as plane:
        yield Candidate(machine, plane)


@pytest.fixture
def candidate(joining: Candidate) -> Iterator[Candidate]:
    joining.clean()
    with joining.runtime():
        yield joining


def test_preflight_reads_what_kubeadm_wrote(joining: Candidate) -> None:
    """All is well but for the address, which is this machine's own."""
    said = joining.winready("node", "preflight", "--cni", "none", check=False).splitlines()
    for line in (
        f"a kubelet {KUBERNETES} fits the API server ({KUBERNETES})",
        "pods 10.244.0.0/16, services 10.96.0.0/16; no overlap, also with nodes",
        f"machines can join at {ENDPOINT}",
    ):
        assert [words[:2] for words in said if words.endswith(line)] == ["ok"]
    (problem,) = [words for words in said if words.startswith("problem ")]
    assert "every machine would ask itself" in problem


def test_without_a_runtime_nothing_happens(joining: Candidate) -> None:
    joining.clean()
    result = joining.join(joining.line())
    assert result.code == 1
    assert "[ERROR CRI]" in result.err
    assert joining.files() == {}
    assert joining.service() == "STOPPED"
    assert joining.plane.get("nodes,csr")["items"] == []


def test_join_upgrade_reset_and_join_again(candidate: Candidate) -> None:
    plane = candidate.plane
    line = candidate.line()
    result = candidate.join(line)
    assert result.code == 0, result
    joined = candidate.files()
    assert set(joined) >= JOINED
    assert "etc/kubernetes/bootstrap-kubelet.conf" not in joined
    assert candidate.service() == "RUNNING"
    node = plane.get("node", NAME)
    assert node["metadata"]["labels"]["kubernetes.io/os"] == "windows"
    (request,) = plane.get("csr")["items"]
    assert request["spec"]["username"] == f"system:bootstrap:{line.token.partition('.')[0]}"
    assert request["spec"]["signerName"] == "kubernetes.io/kube-apiserver-client-kubelet"
    assert [condition["type"] for condition in request["status"]["conditions"]] == ["Approved"]
    assert request["status"]["certificate"]
    settings = yaml.safe_load(joined[CONFIG])
    assert settings["authentication"]["x509"]["clientCAFile"] == r"C:\etc\kubernetes\pki\ca.crt"
    assert settings["resolvConf"] == ""

    result = candidate.join(line)
    assert result.code == 1
    assert len(re.findall(r"ERROR FileAvailable-\S*(?:kubelet\.conf|ca\.crt)", result.err)) == 2
    assert candidate.files() == joined
    assert plane.get("node", NAME)["metadata"]["uid"] == node["metadata"]["uid"]

    told = yaml.safe_load(plane.get("configmap", "kubelet-config", "-n", "kube-system")["data"]["kubelet"])
    change = {"data": {"kubelet": yaml.safe_dump({**told, "maxPods": 77})}}
    plane.kubectl("patch", "configmap", "kubelet-config", "-n", "kube-system", "-p", json.dumps(change))
    assert candidate.kubeadm("upgrade", "node").code == 0
    upgraded = candidate.files()
    assert set(joined[CONFIG].splitlines()) ^ set(upgraded[CONFIG].splitlines()) == {b"maxPods: 77"}
    (kept,) = set(upgraded) - set(joined)
    assert upgraded[kept] == joined[CONFIG]

    result = candidate.kubeadm("reset", "--force")
    assert result.code == 0, result
    assert set(candidate.files()) == {kept}
    assert candidate.service() == "STOPPED"
    assert plane.get("node", NAME)["metadata"]["uid"] == node["metadata"]["uid"]
    candidate.winready("node", "drain", NAME)
    candidate.winready("node", "remove", NAME)
    assert plane.get("nodes")["items"] == []

    assert candidate.join(candidate.line()).code == 0
    assert candidate.service() == "RUNNING"
    assert plane.get("node", NAME)["metadata"]["uid"] != node["metadata"]["uid"]


def test_another_fingerprint_is_refused(candidate: Candidate) -> None:
    line = candidate.line()
    digits = line.ca_hash.removeprefix("sha256:")
    result = candidate.join(Line(line.token, f"sha256:{digits[::-1]}"))
    assert result.code == 1
    assert "none of the public keys" in result.err
    assert candidate.files() == {}
    assert candidate.service() == "STOPPED"


def test_the_name_of_a_node_that_works_is_refused(candidate: Candidate) -> None:
    """What such a join leaves is what node.ps1 takes away before the next one."""
    ready = {"type": "Ready", "status": "True", "reason": "a", "message": "b"}
    _make_node(candidate, conditions=[ready])
    result = candidate.join(candidate.line())
    assert result.code == 1
    assert "already exists in the cluster" in result.err
    script = (Path(winready.node.__file__).parent / "scripts/parts/join.ps1").read_text()
    listed = script.partition("function Get-LeftBehind")[2].partition("}")[0]
    left = {Path(name).name for name in candidate.files()}
    assert left == {"bootstrap-kubelet.conf", "ca.crt"}
    assert all(f"'{name}'" in listed for name in left)


def _make_node(candidate: Candidate, **status: object) -> None:
    path = candidate.plane.pki.parent / "node.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NAME}}))
    candidate.plane.kubectl("create", "-f", str(path))
    candidate.plane.kubectl("patch", "node", NAME, "--subresource=status", "-p", json.dumps({"status": status}))


def test_a_token_that_was_deleted_joins_nobody(candidate: Candidate) -> None:
    line = candidate.line()
    candidate.plane.kubectl("delete", "secret", "-n", "kube-system", f"bootstrap-token-{line.token.partition('.')[0]}")
    result = _join_with(candidate, line, timeouts={"discovery": "3s"})
    assert result.code == 1
    assert candidate.files() == {}
    assert candidate.plane.get("nodes,csr")["items"] == []


def _join_with(candidate: Candidate, line: Line, **more: object) -> Result:
    token = {"token": line.token, "apiServerEndpoint": ENDPOINT, "caCertHashes": [line.ca_hash]}
    document = {"kind": "JoinConfiguration", "discovery": {"bootstrapToken": token}, **more}
    candidate.ground.put(r"C:\join.yaml", json.dumps({"apiVersion": join_api(KUBERNETES), **document}))
    return candidate.kubeadm("join", "--config", r"C:\join.yaml")


def test_flags_that_kubeadm_hands_on_are_read_as_it_meant_them(candidate: Candidate) -> None:
    flags = {"node-labels": "a.example/b=c,d=e", "lock-file": r"C:\some\where", "system-reserved": 'a="b"'}
    wanted = [{"name": name, "value": value} for name, value in flags.items()]
    result = _join_with(candidate, candidate.line(), nodeRegistration={"name": NAME, "kubeletExtraArgs": wanted})
    assert result.code == 0, result
    parts = Path(winready.node.__file__).parent / "scripts/parts"
    candidate.ground.put(r"C:\kubelet.ps1", parts / "kubelet.ps1")
    read = r"ConvertFrom-KubeadmFlags -Text ([IO.File]::ReadAllText('C:\var\lib\kubelet\kubeadm-flags.env'))"
    (said,) = candidate.ground.powershell(read, prelude=r". C:\kubelet.ps1")
    assert said.out.split() == [f"--{name}={value.replace(chr(34), '')}" for name, value in flags.items()]


SECRETS = r"C:\var\run\secrets\kubernetes.io\serviceaccount"
SERVICE = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}


def test_a_client_in_a_pod_is_understood(joining: Candidate, tmp_path: Path) -> None:
    """The real agnhost calls a real API server with its token, and our reader knows what came of that."""
    put_agnhost(joining.ground)
    good = joining.plane.kubectl("create", "token", "default", "-n", "default").strip()
    joining.ground.put(rf"{SECRETS}\ca.crt", joining.plane.pki / "ca.crt")
    for token, allowed in ((good, True), (good[:-9] + good[-9:][::-1], False)):
        joining.ground.put(rf"{SECRETS}\token", token)
        calls = read_calls(_log_of_calls(joining.ground, tmp_path / "log"))
        digest = hashlib.sha256(f"salt|Bearer {token}".encode()).digest()
        assert calls.tokens == [base64.urlsafe_b64encode(digest).rstrip(b"=").decode()]
        assert bool(calls.refusals) != allowed
        assert bool(calls.errors) != allowed


def _log_of_calls(ground: Ground, path: Path) -> str:
    """Of three calls, the last of which may not have an answer yet."""
    with path.open("wb") as log:
        command = ground.command(["/agnhost", "inclusterclient", "--poll-interval=1"], env=SERVICE)
        with stopped_at_last(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)) as client:
            while path.read_text().count("calling /healthz") < 3:
                assert client.poll() is None, path.read_text()
                time.sleep(0.2)
            assert ground.run(["taskkill", "/f", "/im", "agnhost"]).code == 0
    return path.read_text()


def test_kube_proxy_has_the_rights_that_it_needs(candidate: Candidate) -> None:
    """As the account of our add-ons, the real kube-proxy.exe gets past the cluster, to what wine does not have."""
    ground, plane = candidate.ground, candidate.plane
    _make_node(candidate, addresses=[{"type": "InternalIP", "address": "10.250.0.7"}])
    candidate.winready("node", "addons", "apply", "--cni", "none", "--network-name", "other")
    try:
        arguments = plane.get("configmap", "kube-proxy", "-n", "winready-node")["data"]["kube-proxy.args"].split()
        ground.put(rf"{SECRETS}\ca.crt", plane.pki / "ca.crt")
        ground.put(rf"{SECRETS}\token", plane.kubectl("create", "token", "kube-proxy", "-n", "winready-node").strip())
        ground.put(r"C:\k\kube-proxy.exe", ensure(KUBERNETES, ["kube-proxy.exe"]) / "kube-proxy.exe")
        words = [r"C:\k\kube-proxy.exe", *arguments, f"--hostname-override={NAME}", "--v=2"]
        result = ground.run(words, env=SERVICE)
    finally:
        candidate.winready("node", "addons", "delete")
    assert '"Successfully retrieved NodeIPs" NodeIPs=["10.250.0.7"]' in result.err
    assert "Windows kernel is not compatible for Kernel mode" in result.err

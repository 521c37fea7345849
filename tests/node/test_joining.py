"""``winready node join-command``: token, fingerprints and the one line, on a cluster as kubeadm leaves it."""

from __future__ import annotations

import asyncio
import base64
import datetime
import hashlib
import json
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.test_run import _kubeconfig
from node.sandboxes import ENDPOINT, ask, call, cluster_info, command_line, node_cluster, put_cluster_info
from winready.cli.node_commands import join_command
from winready.cluster.client import Client, Object
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import CONFIG_MAPS, SECRETS
from winready.node.joining import GROUP, TYPE, Joining, ca_hashes, join_line, list_tokens, new_token, token_secret
from winready.node.opened import open_bundle
from winready.node.parameters import (
    Endpoint,
    Images,
    Kubelet,
    Network,
    Parameters,
    ParametersError,
    encode,
)

__all__ = ["command_line", "node_cluster"]


def parameters(**given: object) -> Parameters:
    """As small as they can be."""
    network = Network(pod_cidrs=["10.244.0.0/16"], service_cidrs=["10.96.0.0/16"], dns_servers=["10.96.0.10"])
    values = {
        "kubernetes": "1.36.3",
        "server": "1.36.3",
        "endpoint": Endpoint(host="api.example"),
        "network": network,
        "images": Images(
            pause="r.example/pause:3.10.2", host_process="mcr.example/windows-host-process-containers-base-image:v1.0.0"
        ),
        "kubelet": Kubelet(flags=[]),
        **given,
    }
    return Parameters(**values)  # type: ignore[arg-type]


def write_bundle(folder: Path, said: Parameters | None = None) -> Path:
    """A bundle of the two files that every bundle has."""
    folder.mkdir()
    files = {"node.json": encode(said or parameters()), "node.ps1": b"'joined'\r\n"}
    lines = []
    for name, data in sorted(files.items()):
        (folder / name).write_bytes(data)
        lines.append(f"{hashlib.sha256(data).hexdigest()}  {name}\n")
    (folder / "SHA256SUMS").write_text("".join(lines))
    return folder


def tokens(kubeconfig: str) -> list[Object]:
    return ask(kubeconfig, lambda client: client.list(SECRETS, "kube-system", fields=f"type={TYPE}"))


@pytest.fixture(autouse=True)
def tidied(node_cluster: str) -> Iterator[None]:
    """No token of a test outlives it."""
    yield

    async def remove(client: Client) -> None:
        for secret in await client.list(SECRETS, "kube-system", fields=f"type={TYPE}"):
            await client.delete(SECRETS, secret["metadata"]["name"], "kube-system")

    ask(node_cluster, remove)


@pytest.fixture
def joinable(node_cluster: str) -> Iterator[str]:
    """A cluster that kubeadm made, whose bootstrap signer works."""
    ask(node_cluster, lambda client: put_cluster_info(client, cluster_info(node_cluster)))
    over = threading.Event()
    signer = threading.Thread(target=_sign, args=(node_cluster, over))
    signer.start()
    yield node_cluster
    over.set()
    signer.join()


def _sign(kubeconfig: str, over: threading.Event) -> None:
    async def go(client: Client) -> None:
        while not over.is_set():
            names = [f"jws-kubeconfig-{token.identifier}" for token in await list_tokens(client)]
            if names:
                await client.patch(CONFIG_MAPS, "cluster-info", {"data": dict.fromkeys(names, "x..y")}, "kube-public")
            await asyncio.sleep(0.1)

    ask(kubeconfig, go)


def test_a_token_is_made_and_the_line_carries_everything(joinable: str, tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "worker")
    result = call(join_command, joinable, "--bundle", str(bundle), "--ttl", "10m", "-o", "json")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    document = json.loads(result.stdout)
    (secret,) = tokens(joinable)
    values = {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}
    assert document["token"] == f"{values['token-id']}.{values['token-secret']}"
    assert secret["metadata"]["name"] == f"bootstrap-token-{values['token-id']}"
    assert values["auth-extra-groups"] == GROUP
    assert (values["usage-bootstrap-authentication"], values["usage-bootstrap-signing"]) == ("true", "true")
    assert "winready" in values["description"]
    expires = datetime.datetime.fromisoformat(values["expiration"])
    left = (expires - datetime.datetime.now(datetime.UTC)).total_seconds()
    assert 0 < left <= 600
    digest = hashlib.sha256((bundle / "SHA256SUMS").read_bytes()).hexdigest()
    entry = hashlib.sha256((bundle / "node.ps1").read_bytes()).hexdigest()
    ca = find_target(joinable).ca
    assert ca
    assert document["ca_hashes"] == ca_hashes(ca)
    assert document["endpoint"] == ENDPOINT
    assert "\n" not in document["command"]
    # The machine can tell an old line before its first step.
    assert f" -Token {document['token']} -TokenExpires {values['expiration']} -CaHash " in document["command"]
    assert values["expiration"].endswith("Z")
    # Options such as -WhatIf can be written behind it.
    assert document["command"].endswith(f"-BundleDigest {digest}")
    for part in (digest, entry, document["token"], *document["ca_hashes"]):
        assert part in document["command"]


def test_the_line_alone_goes_to_standard_output(joinable: str) -> None:
    result = call(join_command, joinable)
    assert result.exit_code == 0, result.output
    (line,) = result.stdout.splitlines()
    assert line.startswith(".\\node.ps1 join -Token ")
    token = line.split()[3]
    assert token not in result.stderr
    assert "does not check which bundle" in result.stderr


def test_a_bundle_for_another_endpoint_is_said(joinable: str, tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "worker", parameters(endpoint=Endpoint(host="other.example", port=443)))
    result = call(join_command, joinable, "--bundle", str(bundle))
    assert result.exit_code == 0
    assert f"the bundle is for other.example:443, the cluster names {ENDPOINT}" in result.stderr


@pytest.mark.parametrize(
    ("release", "words"), [("1.99.0", "newer than the API server"), ("1.31.0", "older than the API server")]
)
def test_a_bundle_that_this_cluster_cannot_take_gets_no_token(
    joinable: str, tmp_path: Path, release: str, words: str
) -> None:
    bundle = write_bundle(tmp_path / "worker", parameters(kubernetes=release))
    result = call(join_command, joinable, "--bundle", str(bundle))
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert tokens(joinable) == []


def test_a_cluster_that_nobody_signs_for_is_said(node_cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("winready.node.joining.make_joining.__kwdefaults__", {"patience": 0.0})
    ask(node_cluster, lambda client: put_cluster_info(client, cluster_info(node_cluster)))
    result = call(join_command, node_cluster)
    assert result.exit_code == 0
    assert "machines refuse to join" in result.stderr


@pytest.mark.parametrize(
    ("config_map", "words"),
    [
        (None, "no ConfigMap cluster-info"),
        ({"data": {"kubeconfig": "clusters: []"}}, "names no server"),
        ({"data": {"kubeconfig": "\x00"}}, "names no server"),
        ({"data": {"kubeconfig": "clusters: [{cluster: {server: s, certificate-authority-data: eA==}}]"}}, "no server"),
    ],
    ids=["not made by kubeadm", "empty", "hostile", "no certificate"],
)
def test_a_cluster_that_cannot_be_joined_gets_no_token(
    node_cluster: str, config_map: Object | None, words: str
) -> None:
    before = tokens(node_cluster)
    if config_map is None:
        ask(node_cluster, lambda client: client.delete(CONFIG_MAPS, "cluster-info", "kube-public"))
    else:
        named = {"metadata": {"name": "cluster-info"}, **config_map}
        ask(node_cluster, lambda client: put_cluster_info(client, named))
    result = call(join_command, node_cluster)
    assert result.exit_code == 2
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 2
    assert tokens(node_cluster) == before


def test_a_missing_right_is_named(joinable: str, tmp_path: Path) -> None:
    target = find_target(joinable)
    assert target.ca

    async def token_of_nobody(client: Client) -> str:
        path = "/api/v1/namespaces/default/serviceaccounts/default/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        return str((await client.transport.call("POST", path, body=request)).body["status"]["token"])

    nobody = _kubeconfig(tmp_path / "own", target.server, target.ca, ask(joinable, token_of_nobody))
    result = call(join_command, nobody)
    assert result.exit_code == 3
    assert 'cannot get resource "configmaps"' in result.stderr
    assert "winready rbac --for node" in result.stderr
    assert tokens(joinable) == []


@pytest.mark.parametrize("ttl", ["30s", "25h", "soon", "-1m"])
def test_a_life_that_makes_no_sense_is_refused(node_cluster: str, ttl: str) -> None:
    before = tokens(node_cluster)
    assert call(join_command, node_cluster, "--ttl", ttl).exit_code == 2
    assert tokens(node_cluster) == before


def test_a_damaged_bundle_is_refused(tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "worker")
    (bundle / "node.ps1").write_text("'something else'")
    with pytest.raises(ParametersError, match=r"node\.ps1 is not the file"):
        open_bundle(bundle)
    (bundle / "node.ps1").unlink()
    with pytest.raises(ParametersError, match=r"it has no node\.ps1"):
        open_bundle(bundle)
    (bundle / "SHA256SUMS").write_text(f"{'0' * 64}  ../../etc/passwd\n")
    with pytest.raises(ParametersError, match="no digest and file name"):
        open_bundle(bundle)
    (bundle / "SHA256SUMS").write_text("")
    with pytest.raises(ParametersError, match="does not name"):
        open_bundle(bundle)
    for wrong, words in ((tmp_path / "nowhere", "there is no bundle"), (bundle / "node.json", "nor a ZIP")):
        with pytest.raises(ParametersError, match=words):
            open_bundle(wrong)


def test_folder_and_zip_are_the_same_bundle(tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "worker")
    with zipfile.ZipFile(tmp_path / "worker.zip", "w") as archive:
        for path in bundle.iterdir():
            archive.write(path, path.name)
    assert open_bundle(tmp_path / "worker.zip") == open_bundle(bundle)


def test_tokens_are_read_without_their_secrets(joinable: str) -> None:
    token = new_token()
    secret = token_secret(token, "2020-01-01T00:00:00Z", "old")
    ask(joinable, lambda client: client.create(SECRETS, secret, "kube-system"))
    (found,) = ask(joinable, list_tokens)
    assert (found.identifier, found.joins_nodes) == (token[:6], True)
    assert found.expires == datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    assert token[7:] not in repr(found)
    joining = Joining(token, "", "", ["sha256:00"], signed=True)
    assert token not in repr(joining)
    assert token in join_line(joining, None)

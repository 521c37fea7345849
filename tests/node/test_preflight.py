"""``winready node preflight``: what would keep a machine from joining is found, and said with what to do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.test_run import _kubeconfig
from node.registry import Registry, platform, serving
from node.sandboxes import ENDPOINT, ask, call, cluster_info, command_line, node_cluster, put_cluster_info
from node.test_joining import parameters, write_bundle
from winready.cli.node_preflight import preflight
from winready.cluster.client import Client, Object
from winready.cluster.errors import NotFound
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import CONFIG_MAPS, NAMESPACES, SECRETS
from winready.node.findings import Finding
from winready.node.flannel import flannel_findings
from winready.node.joining import new_token, token_secret
from winready.node.parameters import Endpoint, Images, Network, Parameters

__all__ = ["command_line", "node_cluster"]
NET_CONF = {"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan", "VNI": 4096, "Port": 4789}}


def like_the_sandbox(**more: Any) -> Parameters:
    network = Network(pod_cidrs=["10.244.0.0/16"], service_cidrs=["10.96.0.0/16"], dns_servers=["10.96.0.10"])
    return parameters(
        **{"kubernetes": "1.36.0", "server": "1.36.0", "network": network, "endpoint": Endpoint(host="api.example"),
           **more}
    )  # fmt: skip


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    """One that has the images of every bundle of these tests, for current builds."""
    with serving() as found:
        found.index("pause", "3.10.2", platform("20348"), platform("26100"))
        found.index("pause", "3.5", platform("17763"))
        found.single("base", "v1.0.0", platform())
        yield found


def images(registry: Registry, pause: str = "3.10.2") -> Images:
    return Images(pause=f"{registry.host}/pause:{pause}", host_process=f"{registry.host}/base:v1.0.0")


@pytest.fixture
def prepared(node_cluster: str) -> Iterator[str]:
    """A cluster as kubeadm and Flannel leave it."""
    flannel = {"metadata": {"name": "kube-flannel-cfg"}, "data": {"net-conf.json": json.dumps(NET_CONF)}}
    said = "networking: {podSubnet: 10.244.0.0/16, serviceSubnet: 10.96.0.0/16, dnsDomain: cluster.local}"
    kubeadm = {"metadata": {"name": "kubeadm-config"}, "data": {"ClusterConfiguration": said}}
    kubelet = {"metadata": {"name": "kubelet-config"}, "data": {"kubelet": "clusterDNS: [10.96.0.10]"}}

    async def make(client: Client) -> None:
        await put_cluster_info(client, cluster_info(node_cluster))
        await client.create(NAMESPACES, {"metadata": {"name": "kube-flannel"}})
        await client.create(CONFIG_MAPS, flannel, "kube-flannel")
        for config_map in (kubeadm, kubelet):
            await client.create(CONFIG_MAPS, config_map, "kube-system")

    async def tidy(client: Client) -> None:
        for name in ("kubeadm-config", "kubelet-config"):
            await client.delete(CONFIG_MAPS, name, "kube-system")
        await client.delete(NAMESPACES, "kube-flannel")
        for _ in range(200):
            try:
                await client.get(NAMESPACES, "kube-flannel")
            except NotFound:
                return
            await asyncio.sleep(0.05)

    ask(node_cluster, make)
    yield node_cluster
    ask(node_cluster, tidy)


def looked(kubeconfig: str, *arguments: str, code: int) -> dict[str, list[Object]]:
    """The findings by level."""
    result = call(preflight, kubeconfig, *arguments, "-o", "json")
    assert result.exit_code == code, result.output
    found: dict[str, list[Object]] = {}
    for item in json.loads(result.stdout)["findings"]:
        found.setdefault(item["level"], []).append(item)
        assert item["todo"] or item["level"] == "ok"
    return found


def test_a_cluster_that_is_ready_for_a_machine(prepared: str, tmp_path: Path, registry: Registry) -> None:
    bundle = str(write_bundle(tmp_path / "worker", like_the_sandbox(images=images(registry))))
    found = looked(prepared, "--bundle", bundle, "--windows-build", "26100", "--name", "win-9", code=0)
    assert "problem" not in found
    assert "unknown" not in found
    assert {item["subject"] for item in found["ok"]} == {
        "versions", "addresses", "machine", "images", "flannel", "joining",
    }  # fmt: skip
    notes = {item["subject"]: item["message"] for item in found["note"]}
    assert notes["tokens"] == "no token can join a machine"
    assert "calico-node-windows brings a pod network" in notes["add-ons"]
    told = [item["message"] for item in found["ok"] if item["subject"] == "images"]
    assert len(told) == 2
    assert all("sha256:" in text and f"says {registry.host}" in text for text in told)
    from_cluster = looked(prepared, "--no-registries", code=0)
    assert {item["subject"] for item in from_cluster["ok"]} == {"versions", "addresses", "flannel", "joining"}
    assert ["no registry was asked" in item["message"] for item in from_cluster["unknown"]] == [True, True]
    text = call(preflight, prepared, "--no-registries").stdout
    assert text.splitlines()[-1] == "no problems; 2 could not be looked at"


def test_everything_that_is_wrong_is_said_at_once(prepared: str, tmp_path: Path, registry: Registry) -> None:
    wrong = like_the_sandbox(
        kubernetes="1.37.0",
        network=Network(pod_cidrs=["10.250.0.0/16"], service_cidrs=["10.250.128.0/17"], dns_servers=["10.96.0.99"]),
        endpoint=Endpoint(host="127.0.0.1"),
        images=images(registry, "9.9"),
    )
    bundle = str(write_bundle(tmp_path / "worker", wrong))
    arguments = ["--bundle", bundle, "--windows-build", "17763", "--name", "windows-1"]
    text = call(preflight, prepared, *arguments)
    assert text.exit_code == 1
    problems = [item["message"] for item in looked(prepared, *arguments, code=1)["problem"]]
    for words in (
        "a kubelet 1.37.0 is newer than the API server",
        "the addresses of pods (10.250.0.0/16) and of services (10.250.128.0/17) overlap",
        "the addresses of pods are 10.244.0.0/16 in the cluster, not 10.250.0.0/16",
        "of node linux-1 is one of the cluster's pods",
        "node windows-1 has the pod range",
        "the service of the API server has the address",
        "cluster DNS has the address 10.96.0.10, pods would ask 10.96.0.99",
        "there is a node windows-1 already",
        "too old for the scripts",
        "Flannel hands out 10.244.0.0/16",
        f"pause:9.9 is not in the registry {registry.host}",
        "every machine would ask itself",
    ):
        assert any(words in message for message in problems), words
        assert words in text.stdout
    assert text.stdout.splitlines()[-1] == f"{len(problems)} problems"


def test_a_pause_image_that_a_build_cannot_run_is_a_problem(prepared: str, tmp_path: Path, registry: Registry) -> None:
    bundle = str(write_bundle(tmp_path / "old", like_the_sandbox(images=images(registry, "3.5"))))
    (problem,) = looked(prepared, "--bundle", bundle, "--windows-build", "20348", code=1)["problem"]
    assert "has no entry for Windows build 20348, only for 17763" in problem["message"]


def test_a_registry_that_is_away_is_no_pass(prepared: str, tmp_path: Path) -> None:
    away = Images(pause="127.0.0.1:9/pause:3.10.2", host_process="127.0.0.1:9/base:v1.0.0")
    bundle = str(write_bundle(tmp_path / "worker", like_the_sandbox(images=away)))
    found = looked(prepared, "--bundle", bundle, code=0)
    assert [item["subject"] for item in found["unknown"]] == ["images", "images"]
    assert not any(item["subject"] == "images" for item in found["ok"])


def test_a_cluster_that_kubeadm_did_not_make(node_cluster: str) -> None:
    ask(node_cluster, lambda client: client.delete(CONFIG_MAPS, "cluster-info", "kube-public"))
    given = ["--pod-cidr", "10.244.0.0/16", "--service-cidr", "10.96.0.0/16", "--endpoint", ENDPOINT]
    found = looked(node_cluster, *given, "--no-registries", code=1)
    messages = [item["message"] for item in found["problem"]]
    assert any("takes no machines by 'kubeadm join'" in message for message in messages)
    assert any("no Flannel was found on the Linux side" in message for message in messages)
    (only,) = looked(node_cluster, code=1)["problem"]
    assert (only["subject"], "--pod-cidr" in only["message"] + only["todo"]) == ("parameters", True)


def test_tokens_that_end_soon_or_never_are_named_without_their_secret(prepared: str) -> None:
    tokens = {new_token(): text for text in ("2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z", "")}

    async def make(client: Client) -> None:
        for token, expires in tokens.items():
            await client.create(SECRETS, token_secret(token, expires, "x"), "kube-system")

    async def remove(client: Client) -> None:
        for token in tokens:
            await client.delete(SECRETS, f"bootstrap-token-{token[:6]}", "kube-system")

    ask(prepared, make)
    result = call(preflight, prepared, "--no-registries")
    ask(prepared, remove)
    old, _, endless = tokens
    assert f"the token {old[:6]} has expired" in result.stdout
    assert f"the token {endless[:6]} never ends" in result.stdout
    assert "2 tokens can join machines" in result.stdout
    assert not any(token[7:] in result.output for token in tokens)


def test_what_may_not_be_looked_at_is_unknown(prepared: str, tmp_path: Path) -> None:
    from winready.cluster.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES

    target = find_target(prepared)
    assert target.ca
    rules = [
        {"apiGroups": [""], "resources": ["nodes", "services", "configmaps"], "verbs": ["get", "list"]},
        {"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["get", "list"]},
    ]
    account = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "looks"}

    async def grant(client: Client) -> str:
        await client.create(CLUSTER_ROLES, {"metadata": {"name": "looks"}, "rules": rules})
        binding = {"metadata": {"name": "looks"}, "roleRef": role, "subjects": [account]}
        await client.create(CLUSTER_ROLE_BINDINGS, binding)
        path = "/api/v1/namespaces/default/serviceaccounts/default/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        return str((await client.transport.call("POST", path, body=request)).body["status"]["token"])

    async def take_back(client: Client) -> None:
        await client.delete(CLUSTER_ROLE_BINDINGS, "looks")
        await client.delete(CLUSTER_ROLES, "looks")

    token = ask(prepared, grant)
    own = _kubeconfig(tmp_path / "own", target.server, target.ca, token)
    (unknown,) = [item for item in looked(own, "--no-registries", code=0)["unknown"] if item["subject"] != "images"]
    ask(prepared, take_back)
    assert unknown["subject"] == "tokens"
    assert 'cannot list resource "secrets"' in unknown["message"]
    assert "winready rbac --for node" in unknown["todo"]


@pytest.mark.parametrize("arguments", [["--windows-build", "ltsc2022"], ["--windows-build", "10.0"]])
def test_wrong_usage(node_cluster: str, arguments: list[str]) -> None:
    given = ["--pod-cidr", "10.244.0.0/16", "--service-cidr", "10.96.0.0/16", "--endpoint", ENDPOINT]
    assert call(preflight, node_cluster, *given, *arguments).exit_code == 2


def test_a_bundle_leaves_nothing_to_say(node_cluster: str, tmp_path: Path) -> None:
    bundle = str(write_bundle(tmp_path / "worker"))
    result = call(preflight, node_cluster, "--bundle", bundle, "--pod-cidr", "10.0.0.0/8")
    assert (result.exit_code, "leave --pod-cidr out" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("conf", "words"),
    [
        ({"Network": "10.244.0.0/16"}, "works as 'udp'"),
        ({"Network": "10.244.0.0/16", "Backend": "vxlan"}, "works as 'udp'"),
        ({**NET_CONF, "Backend": {"Type": "host-gw"}}, "works as 'host-gw'"),
        ({**NET_CONF, "Backend": {"Type": "vxlan"}}, "uses VNI 1; Windows can only do a VNI from 4096 on"),
        ({**NET_CONF, "Backend": {"Type": "vxlan", "VNI": 4096}}, "uses Port 8472; Windows can only do UDP port 4789"),
        ({**NET_CONF, "Backend": {"Type": "vxlan", "VNI": "x", "Port": 4789}}, "uses VNI x"),
        ({**NET_CONF, "Backend": {**NET_CONF["Backend"], "VNI": 5000}}, "VNI 5000, the parameters say 4096"),  # type: ignore[dict-item]
        ({**NET_CONF, "Backend": {**NET_CONF["Backend"], "DirectRouting": True}}, "DirectRouting"),  # type: ignore[dict-item]
        ({**NET_CONF, "Network": "10.1.0.0/16"}, "Flannel hands out 10.1.0.0/16"),
    ],
)
def test_flannel_on_the_linux_side(conf: dict[str, Any], words: str) -> None:
    found: list[Finding] = list(flannel_findings(parameters(), conf))
    assert any(item.level == "problem" and words in item.message for item in found), found
    assert [item.level for item in flannel_findings(parameters(), NET_CONF)] == ["ok"]

"""What a bundle takes from the cluster, and what it says when the cluster does not tell."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from node.mirror import Mirror
from winready.cli.main import cli
from winready.cli.own_sandbox import own_sandbox
from winready.cluster.client import Client
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import CONFIG_MAPS, NAMESPACES
from winready.node.parameters import Parameters, decode
from winready.node.skew import plain_release

MAPS = {
    ("kube-system", "kubeadm-config"): {
        "ClusterConfiguration": yaml.safe_dump(
            {
                "kind": "ClusterConfiguration",
                "controlPlaneEndpoint": "other.example.com:6443",
                "networking": {
                    "podSubnet": "10.32.0.0/16", "serviceSubnet": "10.33.0.0/16", "dnsDomain": "kube.example",
                },
            }
        )
    },
    ("kube-system", "kubelet-config"): {"kubelet": yaml.safe_dump({"clusterDNS": ["10.33.0.10"]})},
    ("kube-public", "cluster-info"): {
        "kubeconfig": yaml.safe_dump({"clusters": [{"cluster": {"server": "https://api.example.com:7443"}}]})
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A sandbox of this module's own."""
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(tmp_path_factory.mktemp("run"))
    with own_sandbox("bundle", "max") as (path, _):
        yield str(path)
    if before is None:
        del os.environ["XDG_RUNTIME_DIR"]
    else:
        os.environ["XDG_RUNTIME_DIR"] = before


def version(kubeconfig: str) -> str:
    async def ask() -> str:
        async with Client.connect(find_target(kubeconfig)) as client:
            return plain_release((await client.version())["gitVersion"])

    return asyncio.run(ask())


def put(kubeconfig: str, maps: dict[tuple[str, str], dict[str, str]]) -> None:
    async def go() -> None:
        async with Client.connect(find_target(kubeconfig)) as client:
            for (namespace, name), data in maps.items():
                if await client.find(NAMESPACES, namespace) is None:
                    await client.create(NAMESPACES, {"metadata": {"name": namespace}})
                await client.delete(CONFIG_MAPS, name, namespace)
                await client.create(CONFIG_MAPS, {"metadata": {"name": name}, "data": data}, namespace)

    asyncio.run(go())


def drop(kubeconfig: str, *names: tuple[str, str]) -> None:
    async def go() -> None:
        async with Client.connect(find_target(kubeconfig)) as client:
            for namespace, name in names:
                await client.delete(CONFIG_MAPS, name, namespace)

    asyncio.run(go())


def bundle(kubeconfig: str, mirror: Mirror, to: Path, *arguments: str) -> Result:
    command = ["node", "bundle", "--kubeconfig", kubeconfig, "--mirror", mirror.url, "--to", str(to)]
    return CliRunner().invoke(cli, [*command, *arguments], catch_exceptions=False)


def read(to: Path) -> Parameters:
    return decode((to / "node.json").read_bytes())


def test_everything_comes_from_a_cluster_that_kubeadm_made(kubeconfig: str, mirror: Mirror, tmp_path: Path) -> None:
    put(kubeconfig, MAPS)
    mirror.release(version(kubeconfig))
    result = bundle(kubeconfig, mirror, tmp_path / "bundle")
    assert result.exit_code == 0, result.output
    parameters = read(tmp_path / "bundle")
    assert parameters.kubernetes == parameters.server == version(kubeconfig)
    assert str(parameters.endpoint) == "api.example.com:7443"
    network = parameters.network
    assert (network.pod_cidrs, network.service_cidrs) == (["10.32.0.0/16"], ["10.33.0.0/16"])
    assert (network.dns_servers, network.dns_domain) == (["10.33.0.10"], "kube.example")


def test_a_flag_wins_over_the_cluster(kubeconfig: str, mirror: Mirror, tmp_path: Path) -> None:
    put(kubeconfig, MAPS)
    mirror.release(version(kubeconfig))
    result = bundle(kubeconfig, mirror, tmp_path / "bundle", "--endpoint", "vip:443", "--pod-cidr", "10.50.0.0/16")
    assert result.exit_code == 0, result.output
    assert str(read(tmp_path / "bundle").endpoint) == "vip:443"
    assert read(tmp_path / "bundle").network.pod_cidrs == ["10.50.0.0/16"]


def test_skew_is_judged_by_the_cluster(kubeconfig: str, mirror: Mirror, tmp_path: Path) -> None:
    put(kubeconfig, MAPS)
    for release, words in (("1.99.0", "is newer than the API server"), ("1.27.0", "minor versions older")):
        result = bundle(kubeconfig, mirror, tmp_path / "bundle", "--kubernetes", release)
        assert result.exit_code == 2
        assert words in result.stderr
    assert list(tmp_path.iterdir()) == []
    assert mirror.asked == []


def test_what_the_cluster_does_not_tell_is_named(kubeconfig: str, mirror: Mirror, tmp_path: Path) -> None:
    drop(kubeconfig, *MAPS)
    result = bundle(kubeconfig, mirror, tmp_path / "bundle")
    assert result.exit_code == 2
    assert "give it with --pod-cidr" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_right_that_is_missing_is_named(kubeconfig: str, mirror: Mirror, tmp_path: Path) -> None:
    put(kubeconfig, MAPS)
    admin = yaml.safe_load(Path(kubeconfig).read_text())
    admin["users"][0]["user"]["as"] = "somebody"
    (tmp_path / "config").write_text(yaml.safe_dump(admin))
    result = bundle(str(tmp_path / "config"), mirror, tmp_path / "bundle")
    assert result.exit_code == 2
    assert "give it with --pod-cidr" in result.stderr
    assert 'cannot get resource "configmaps"' in result.stderr
    assert not (tmp_path / "bundle").exists()


def test_a_service_and_the_kubeconfig_fill_in(kubeconfig: str, mirror: Mirror, tmp_path: Path) -> None:
    drop(kubeconfig, *MAPS)
    mirror.release(version(kubeconfig))
    ranges = ("--pod-cidr", "10.50.0.0/16", "--service-cidr", "10.96.0.0/12")
    result = bundle(kubeconfig, mirror, tmp_path / "bundle", *ranges)
    assert result.exit_code == 0, result.output
    assert read(tmp_path / "bundle").network.dns_servers == ["10.96.0.10"]
    assert "is this very computer; other machines need --endpoint" in result.stderr


def test_hostile_text_in_the_cluster_stays_text(kubeconfig: str, mirror: Mirror, tmp_path: Path) -> None:
    for domain, pods in (("x'; calc #", "10.32.0.0/16"), ("kube.example", "$(calc)"), ("\x1b[31m", "10.32.0.0/16")):
        networking = {"podSubnet": pods, "serviceSubnet": "10.33.0.0/16", "dnsDomain": domain}
        hostile = {"ClusterConfiguration": yaml.safe_dump({"networking": networking})}
        put(kubeconfig, MAPS | {("kube-system", "kubeadm-config"): hostile})
        result = bundle(kubeconfig, mirror, tmp_path / "bundle")
        assert result.exit_code == 2
        assert "\x1b" not in result.stderr
    put(kubeconfig, MAPS | {("kube-system", "kubeadm-config"): {"ClusterConfiguration": "{[: no YAML"}})
    assert bundle(kubeconfig, mirror, tmp_path / "bundle").exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_flannel_on_the_linux_side_must_suit_windows(kubeconfig: str, mirror: Mirror, tmp_path: Path) -> None:
    mirror.release(version(kubeconfig))
    where = ("kube-flannel", "kube-flannel-cfg")
    wrong = {"Network": "10.32.0.0/16", "Backend": {"Type": "vxlan"}}
    put(kubeconfig, MAPS | {where: {"net-conf.json": json.dumps(wrong)}})
    result = bundle(kubeconfig, mirror, tmp_path / "bundle")
    assert result.exit_code == 2
    assert "VNI 1 and UDP port 8472" in result.stderr
    right = {"Network": "10.32.0.0/16", "Backend": {"Type": "vxlan", "VNI": 4100, "Port": 4789}}
    put(kubeconfig, {where: {"net-conf.json": json.dumps(right)}})
    assert bundle(kubeconfig, mirror, tmp_path / "bundle").exit_code == 0
    assert read(tmp_path / "bundle").network.vni == 4100
    drop(kubeconfig, where)


def test_a_cluster_that_does_not_answer_us_is_not_wrong_input(kubeconfig: str, mirror: Mirror, tmp_path: Path) -> None:
    stranger = yaml.safe_load(Path(kubeconfig).read_text())
    stranger["users"][0]["user"] = {"token": "long-gone"}
    (tmp_path / "config").write_text(yaml.safe_dump(stranger))
    result = bundle(str(tmp_path / "config"), mirror, tmp_path / "bundle")
    assert result.exit_code == 3
    assert result.stderr.startswith("error: ")
    assert "long-gone" not in result.stderr
    assert not (tmp_path / "bundle").exists()

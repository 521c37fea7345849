"""Parameters from flags and from what a cluster says; kubelet flags and skew by version."""

from __future__ import annotations

import tomllib
from typing import Any

import msgspec
import pytest

from winready.node.discovery import Findings
from winready.node.parameters import Containerd, Parameters, ParametersError
from winready.node.runtime import runtime_settings
from winready.node.settling import Wishes, parse_endpoint, settle
from winready.node.skew import plain_release

CLUSTER = Findings(
    server="1.36.3",
    endpoint="10.0.0.5:6443",
    pod_cidrs=["10.244.0.0/16"],
    service_cidrs=["10.96.0.0/12"],
    dns_servers=["10.96.0.10"],
)


def settled(release: str = "1.36.3", found: Findings = CLUSTER, **wishes: Any) -> Parameters:
    return settle(Wishes(**wishes), found, release)


def names(parameters: Parameters) -> set[str]:
    return {flag.lstrip("-").partition("=")[0] for flag in parameters.kubelet.flags}


@pytest.mark.parametrize(
    ("release", "has", "removed"),
    [
        ("1.26.15", {"pod-infra-container-image"}, {"network-plugin", "log-dir"}),
        ("1.30.0", set(), {"container-runtime"}),
        ("1.34.2", set(), {"cloud-config", "register-schedulable"}),
        ("1.35.0", set(), {"pod-infra-container-image"}),
        ("1.37.0-rc.1", set(), {"pod-infra-container-image"}),
    ],
)
def test_flags_are_those_that_the_kubelet_of_this_version_knows(release: str, has: set[str], removed: set[str]) -> None:
    parameters = settled(release, Findings(**{**vars(CLUSTER), "server": release}))
    assert has == names(parameters) & {"pod-infra-container-image"}
    assert removed <= set(parameters.kubelet.removed_flags)
    assert not names(parameters) & set(parameters.kubelet.removed_flags)
    assert {"windows-service", "config", "kubeconfig", "bootstrap-kubeconfig", "hostname-override"} <= names(parameters)


def test_what_is_removed_only_later_is_still_passed_on() -> None:
    assert "pod-infra-container-image" not in settled("1.34.9").kubelet.removed_flags


@pytest.mark.parametrize(("release", "api"), [("1.30.4", "v1beta3"), ("1.31.0", "v1beta4"), ("1.37.0", "v1beta4")])
def test_kubeadm_gets_a_configuration_that_it_reads(release: str, api: str) -> None:
    parameters = settled(release, Findings(**{**vars(CLUSTER), "server": release}))
    assert parameters.join_api == f"kubeadm.k8s.io/{api}"


@pytest.mark.parametrize(
    ("server", "release", "sentence"),
    [
        ("1.36.3", "1.37.0", "a kubelet 1.37.0 is newer than the API server (1.36.3)"),
        ("1.36.3", "1.32.9", "4 minor versions older than the API server (1.36.3); 3 are allowed"),
        ("1.36.3", "1.25.3", "is too old"),
        ("1.36.3", "1.36", "is not a release"),
        ("1.36.3", "36", "is not a release"),
    ],
)
def test_a_skew_that_kubernetes_does_not_allow_is_refused(server: str, release: str, sentence: str) -> None:
    with pytest.raises(ParametersError) as error:
        settled(release, Findings(**{**vars(CLUSTER), "server": server}))
    assert sentence in error.value.message


@pytest.mark.parametrize("release", ["1.33.0", "1.36.9", "1.35.0"])
def test_a_patch_level_and_three_older_minors_are_fine(release: str) -> None:
    assert settled(release).server == "1.36.3"


@pytest.mark.parametrize(
    ("said", "release"),
    [
        ("v1.34.2", "1.34.2"),
        ("v1.34.2-gke.100", "1.34.2"),
        ("v1.34.2-eks-abc", "1.34.2"),
        ("v1.34.2+k3s1", "1.34.2"),
        ("v1.37.0-rc.1", "1.37.0-rc.1"),
        ("v1.37.0-rc.1+abc", "1.37.0-rc.1"),
    ],
)
def test_the_release_behind_what_a_provider_calls_it(said: str, release: str) -> None:
    assert plain_release(said) == release


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("api", "api", 6443), ("10.0.0.1:443", "10.0.0.1", 443), ("[fd00::1]:6443", "fd00::1", 6443)],
)
def test_endpoints(text: str, host: str, port: int) -> None:
    endpoint = parse_endpoint(text)
    assert (endpoint.host, endpoint.port) == (host, port)


@pytest.mark.parametrize("text", ["", "api:0", "api:99999", "a b", "api:6443/x", "-x", "a;b"])
def test_what_is_no_endpoint(text: str) -> None:
    with pytest.raises(ParametersError):
        parse_endpoint(text)


@pytest.mark.parametrize(
    ("missing", "option"),
    [
        ("pod_cidrs", "--pod-cidr"),
        ("service_cidrs", "--service-cidr"),
        ("dns_servers", "--dns"),
        ("endpoint", "--endpoint"),
    ],
)
def test_what_the_cluster_does_not_tell_is_asked_of_the_operator(missing: str, option: str) -> None:
    with pytest.raises(ParametersError) as error:
        settled(found=Findings(**{**vars(CLUSTER), missing: type(getattr(CLUSTER, missing))()}))
    assert option in error.value.remedy


@pytest.mark.parametrize(
    ("backend", "mode", "sentence"),
    [
        ({"Type": "vxlan"}, "overlay", "uses VNI 1 and UDP port 8472"),
        ({"Type": "vxlan", "VNI": 4096}, "overlay", "uses VNI 4096 and UDP port 8472"),
        ({"Type": "host-gw"}, "overlay", "works as 'host-gw'"),
        ({"Type": "vxlan", "VNI": 4096, "Port": 4789}, "l2bridge", "works as 'vxlan'"),
        ({"Type": "wireguard"}, "overlay", "works as 'wireguard'"),
    ],
)
def test_a_linux_side_that_windows_cannot_talk_to_is_refused(backend: Any, mode: Any, sentence: str) -> None:
    found = Findings(**{**vars(CLUSTER), "flannel": {"Backend": backend}})
    with pytest.raises(ParametersError) as error:
        settled(found=found, mode=mode)
    assert sentence in error.value.message
    assert error.value.remedy
    assert settled(found=found, mode=mode, cni="none").network.cni == "none"


def test_the_linux_side_decides_the_identifier() -> None:
    backend = {"Type": "vxlan", "VNI": 5000, "Port": 4789}
    network = settled(found=Findings(**{**vars(CLUSTER), "flannel": {"Backend": backend}})).network
    assert (network.vni, network.name) == (5000, "flannel.5000")
    assert settled(mode="l2bridge").network.name == "cbr0"


def test_a_registry_takes_the_place_of_all_others() -> None:
    images = settled(registry="registry.example.com/mirror").images
    assert images.pause.startswith("registry.example.com/mirror/pause:")
    assert images.host_process.startswith("registry.example.com/mirror/oss/kubernetes/")


def test_a_proxy_is_not_used_for_the_cluster_itself() -> None:
    proxy = settled(https_proxy="http://proxy:3128", no_proxy=["intern.example.com"]).proxy
    assert {"10.0.0.5", ".svc", ".cluster.local", "10.244.0.0/16", "10.96.0.0/12", "intern.example.com"} <= set(
        proxy.no_proxy
    )
    assert settled().proxy.no_proxy == []


def test_labels_and_taints_become_flags() -> None:
    flags = settled(labels=["b=2", "a=1"], taints=["os=windows:NoSchedule"]).kubelet.flags
    assert "--node-labels=a=1,b=2" in flags
    assert "--register-with-taints=os=windows:NoSchedule" in flags


@pytest.mark.parametrize("version", ["1.7.29", "2.0.7", "2.1.5", "2.2.0"])
def test_the_runtime_is_told_where_its_mirrors_stand_only_if_there_are_some(version: str) -> None:
    given = ["docker.io=https://mirror.example.com/hub/", "r.example.com:5000=http://10.0.0.9:5000"]
    parameters = settled(containerd=version, registry_mirrors=[*given, given[0]])
    assert [(item.host, item.endpoint) for item in parameters.containerd.mirrors] == [
        ("docker.io", "https://mirror.example.com/hub"),
        ("r.example.com:5000", "http://10.0.0.9:5000"),
    ]
    plugin = "io.containerd.grpc.v1.cri" if version.startswith("1.") else "io.containerd.cri.v1.images"
    settings = tomllib.loads(runtime_settings(parameters))["plugins"][plugin]
    assert settings["registry"] == {"config_path": r"C:\Program Files\containerd\certs.d"}
    assert "registry" not in tomllib.loads(runtime_settings(settled(containerd=version)))["plugins"][plugin]


@pytest.mark.parametrize("version", ["1.7.29", "2.0.7", "2.1.5", "2.2.0"])
def test_the_runtime_gets_settings_of_its_own_version(version: str) -> None:
    parameters = msgspec.structs.replace(settled(), containerd=Containerd(version=version))
    settings = tomllib.loads(runtime_settings(parameters))
    pause = parameters.images.pause
    assert settings["grpc"]["address"] == r"\\.\pipe\containerd-containerd"
    if version.startswith("1."):
        plugin = settings["plugins"]["io.containerd.grpc.v1.cri"]
        assert (settings["version"], plugin["sandbox_image"]) == (2, pause)
        assert plugin["cni"] == {"bin_dir": "C:/opt/cni/bin", "conf_dir": "C:/etc/cni/net.d"}
        return
    assert settings["version"] == 3
    assert settings["plugins"]["io.containerd.cri.v1.images"]["pinned_images"] == {"sandbox": pause}
    cni = settings["plugins"]["io.containerd.cri.v1.runtime"]["cni"]
    assert cni["conf_dir"] == "C:/etc/cni/net.d"
    assert cni.get("bin_dirs", cni.get("bin_dir")) == ("C:/opt/cni/bin" if version < "2.1" else ["C:/opt/cni/bin"])

"""The real kubelet.exe, kube-proxy.exe, kube-log-runner.exe and host-local.exe take what our scripts give them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import winready.node
from real_programs import ensure
from windows.control_plane import KUBERNETES
from windows.ground import Ground, Result
from winready.node.addons import kube_proxy_arguments
from winready.node.parameters import Endpoint, Images, Kubelet, Network, Parameters, Paths
from winready.node.skew import REMOVED_FLAGS, kubelet_flags, removed_flags

pytestmark = pytest.mark.windows_programs
PATHS = Paths()
PROGRAMS = ("kubelet.exe", "kube-proxy.exe", "kube-log-runner.exe")
DATA = Path(winready.node.__file__).parent / "data"
CONFIG = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "cgroupDriver": "systemd",
    "clusterDNS": ["10.96.0.10"],
    "resolvConf": "/run/systemd/resolve/resolv.conf",
}
"""As clusters have it, whose other nodes run Linux."""


@pytest.fixture(scope="module")
def node(machine: Ground) -> Ground:
    """A machine with the real programs."""
    built = ensure(KUBERNETES, [*PROGRAMS, "host-local.exe"])
    for name in PROGRAMS:
        machine.put(rf"{PATHS.binaries}\{name}", built / name)
    machine.put(rf"{PATHS.cni_binaries}\host-local.exe", built / "host-local.exe")
    machine.put(rf"{PATHS.kubelet}\config.yaml", json.dumps(CONFIG))
    machine.path(PATHS.logs).mkdir(parents=True)
    return machine


def _run(node: Ground, program: str, *words: str) -> Result:
    return node.run([rf"{PATHS.binaries}\{program}", *words])


def test_the_kubelet_takes_our_flags_and_settings_of_a_linux_cluster(node: Ground) -> None:
    """It gets as far as looking for the cluster. As a service it would wait for the service manager before."""
    labels, taints = {"example.com/a": "b"}, ["os=windows:NoSchedule"]
    flags = [flag.replace("{node}", "windows-1") for flag in kubelet_flags(KUBERNETES, PATHS, "", labels, taints)]
    elsewhere = [flag.replace("config.yaml", "missing.yaml") for flag in flags]
    assert "failed to load kubelet config file" in _run(node, "kubelet.exe", *elsewhere).err
    flags.remove("--windows-service")
    result = _run(node, "kubelet.exe", *flags)
    assert "bootstrap-kubelet.conf" in result.err.splitlines()[-1]
    assert "not supported on Windows" not in result.err


def test_the_kubelet_takes_no_other_flag(node: Ground) -> None:
    assert "unknown flag: --bogus" in _run(node, "kubelet.exe", "--bogus").err


@pytest.mark.parametrize("name", removed_flags(KUBERNETES))
def test_the_kubelet_refuses_what_we_say_was_removed(node: Ground, name: str) -> None:
    result = _run(node, "kubelet.exe", f"--{name}=x")
    assert result.code == 1
    assert f"unknown flag: --{name}" in result.err


def test_every_removed_flag_is_asked_for() -> None:
    assert sorted(name for names in REMOVED_FLAGS.values() for name in names) == removed_flags(KUBERNETES)


def test_the_log_runner_takes_our_flags_and_writes_the_log(node: Ground) -> None:
    script = (DATA.parent / "scripts/parts/kubelet.ps1").read_text()
    words = script.partition("kube-log-runner.exe'),")[2].partition("kubelet.exe'")[0]
    flags = re.findall(r"'(-[a-z-]+=[^']*)'", words)
    assert len(flags) == 4
    log = rf"{PATHS.logs}\kubelet.log"
    flags = [flag + log if flag == "-log-file=" else flag for flag in flags]
    kubelet = rf"{PATHS.binaries}\kubelet.exe"
    assert _run(node, "kube-log-runner.exe", *flags, kubelet, "--version").code == 0
    assert node.path(log).read_text().strip() == f"Kubernetes v{KUBERNETES}"
    assert _run(node, "kube-log-runner.exe", "-bogus=1", kubelet, "--version").code != 0


HNS = """
function Get-HnsNetwork {{
    [pscustomobject]@{{ Name = 'flannel.4096'; Type = 'Overlay'; Subnets = @(@{{ AddressPrefix = '{subnet}' }}) }}
}}
function Start-Sleep {{ throw 'it would wait now' }}
"""
"""The pod network that a script finds, and an end to what it does for ever."""
MOUNTED = r"C:\hpc"
NODE = {
    "CONTAINER_SANDBOX_MOUNT_POINT": MOUNTED,
    "KUBE_NETWORK": "flannel.4096",
    "CNI_BINARIES": PATHS.cni_binaries,
    "CNI_CONFIGURATION": PATHS.cni_configuration,
    "PROGRAM": rf"{PATHS.binaries}\kube-proxy.exe",
    "NODE_NAME": "windows-1",
    "SOURCE_VIP": "subnet",
}


def _script(node: Ground, name: str, subnet: str) -> Result:
    node.put(rf"{MOUNTED}\{name}", DATA / name)
    (result,) = node.powershell(rf"& {MOUNTED}\{name}", prelude=HNS.format(subnet=subnet), env=NODE)
    return result


def test_the_source_address_is_kept_out_of_use_by_the_real_host_local(node: Ground) -> None:
    folder = rf"{MOUNTED}\etc\winready-node"
    node.put(rf"{folder}\cni-conf.json", '{"cniVersion": "0.3.1"}')
    node.path(PATHS.cni_configuration).mkdir(parents=True)
    first = _script(node, "cni.ps1", "10.244.1.0/24")
    assert "10.244.1.2 is kept out of use" in first.out
    held = node.path(r"C:\var\lib\cni\networks\flannel.4096\10.244.1.2")
    assert held.read_text().split() == ["winready-node", "reserved"]
    assert node.path(rf"{PATHS.cni_configuration}\10-flannel.conf").read_text().strip() == '{"cniVersion": "0.3.1"}'
    again = _script(node, "cni.ps1", "10.244.1.0/24")
    assert "it would wait now" in again.out
    assert "kept out of use" not in again.out
    held.write_text("somebody\r\neth0")
    assert "belongs to the container somebody already" in _script(node, "cni.ps1", "10.244.1.0/24").out
    assert "has no IPv4 subnet" in _script(node, "cni.ps1", "fd00::/64").out


def _parameters() -> Parameters:
    return Parameters(
        kubernetes=KUBERNETES,
        server=KUBERNETES,
        endpoint=Endpoint(host="api.example.com"),
        network=Network(pod_cidrs=["10.244.0.0/16"], service_cidrs=["10.96.0.0/12"], dns_servers=["10.96.0.10"]),
        images=Images(pause="pause", host_process="base"),
        kubelet=Kubelet(flags=[], removed_flags=[]),
    )


def test_kube_proxy_takes_our_arguments(node: Ground) -> None:
    """It gets as far as looking for the API server; nothing of its command line is old or unknown."""
    arguments = kube_proxy_arguments(_parameters())
    node.put(rf"{MOUNTED}\etc\winready-node\kube-proxy.args", "\n".join(arguments) + "\n")
    result = _script(node, "kube-proxy.ps1", "10.244.1.0/24")
    assert "--source-vip=10.244.1.2" in result.out
    assert "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined" in result.out
    assert not re.search("unknown flag|deprecated|feature gate", result.out)

"""From a cluster to a worker and back: the line that we print, node.ps1 in a real PowerShell, the real kubeadm.exe."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from node.mirror import Mirror, running
from real_programs import ensure, stand_ins
from windows.candidate import ELEVATED, NAME, STAND_INS, Operator
from windows.control_plane import KUBERNETES, ControlPlane
from windows.ground import Ground, Result
from windows.worker import Worker

pytestmark = pytest.mark.windows_programs
OLDER = "1.36.2"
"""Published with the same programs, but for a few bytes of the kubelet."""
REAL = ("kubeadm.exe", "kube-log-runner.exe")
STANDING_IN = ("kubelet.exe", "containerd.exe")
MANIFEST = "k/kubeadm.exe.manifest"
"""Put there by the test: wine starts kubeadm as an administrator by it."""


class Way:
    """An operator with a cluster and bundles for it, and a machine that has a copy of the older one."""

    def __init__(self, ground: Ground, plane: ControlPlane, mirror: Mirror, folder: Path) -> None:
        self.operator = Operator(plane)
        self.bundles = {version: folder / version for version in (OLDER, KUBERNETES)}
        for version, target in self.bundles.items():
            words = ["--kubernetes", version, "--cni", "none", "--mirror", mirror.url, "--to", str(target)]
            self.operator.winready("node", "bundle", *words)
        self.machine = Worker(ground)
        self.machine.prepare(self.bundles[OLDER])
        ground.put(rf"C:\{MANIFEST}", ELEVATED)

    def line(self) -> str:
        """What an operator copies."""
        words = ["node", "join-command", "--bundle", str(self.bundles[OLDER])]
        return self.operator.winready(*words).strip().splitlines()[-1]

    def upgrade(self) -> str:
        """The same for an upgrade to the newer bundle."""
        words = ["node", "upgrade-command", "--bundle", str(self.bundles[KUBERNETES])]
        return self.operator.plane.run([sys.executable, "-m", "winready", *words]).strip()

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a controller of the cluster."""
        while not condition():
            time.sleep(0.2)

    def paste(self, line: str) -> Result:
        """As a user does: in the folder of the bundle."""
        (result,) = self.machine.powershell(rf"Set-Location C:\bundle; {line}")
        return result

    def kubelet(self) -> str:
        """What the service manager says of it."""
        return self.machine.ground.run(["sc", "query", "kubelet"]).out


def publish(mirror: Mirror) -> None:
    """Two releases that a machine can be made of."""
    built, standing_in = ensure(KUBERNETES, list(REAL)), stand_ins(KUBERNETES, STAND_INS)
    programs = {name: (built / name).read_bytes() for name in REAL}
    programs |= {name: (standing_in / name).read_bytes() for name in STANDING_IN}
    mirror.release(OLDER, programs={**programs, "kubelet.exe": programs["kubelet.exe"] + b"older"})
    mirror.release(KUBERNETES, programs=programs)


@pytest.fixture(scope="module")
def way(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    with Ground(NAME) as ground, ControlPlane(tmp_path_factory.mktemp("plane"), ground.network) as plane:
        mirroring = running()
        with ground.network():
            mirror = mirroring.__enter__()
        try:
            publish(mirror)
            yield Way(ground, plane, mirror, tmp_path_factory.mktemp("bundles"))
        finally:
            mirroring.__exit__(None, None, None)


@pytest.mark.timeout(600)
def test_refused_joined_upgraded_reset_removed(way: Way) -> None:
    plane, machine, ground = way.operator.plane, way.machine, way.machine.ground
    bare = set(machine.files())
    line = way.line()
    (token,) = re.findall(r"-Token (\S+)", line)

    ground.put(r"C:\bundle\SHA256SUMS", b"other" + (way.bundles[OLDER] / "SHA256SUMS").read_bytes())
    result = way.paste(line)
    assert "this folder is not the bundle that the join line was made for" in result.out
    assert result.code == 1
    assert set(machine.files()) == bare
    ground.put(r"C:\bundle\SHA256SUMS", way.bundles[OLDER] / "SHA256SUMS")

    # What is wrong with the line is said by the real API server, and before anything is changed.
    old = re.sub(r"-TokenExpires \S+", "-TokenExpires 2020-01-01T00:00:00Z", line)
    other = re.sub(r"(sha256:)(\w+)", lambda found: found[1] + found[2][::-1], line)
    for wrong, words in (
        (old, "the token has expired at 2020-01-01T00:00:00Z"),
        (other, "has another certificate authority than -CaHash says"),
        (line.replace(token, f"zzzzzz{token[6:]}"), "the token is unknown to the cluster or has expired"),
        (line.replace(token, token[:-1] + ("a" if token[-1] != "a" else "b")), "the second half of the token is not"),
    ):
        result = way.paste(wrong)
        assert result.code == 2, result.out
        assert words in result.out
        assert set(machine.files()) == bare
    plane.kubectl("delete", "secret", "-n", "kube-system", f"bootstrap-token-{token[:6]}")
    way.until(
        lambda: (
            f"jws-kubeconfig-{token[:6]}"
            not in plane.kubectl("get", "cm", "cluster-info", "-n", "kube-public", "-o", "yaml")
        )
    )
    result = way.paste(line)
    assert result.code == 2
    assert "the token is unknown to the cluster or has expired" in result.out
    assert set(machine.files()) == bare
    assert plane.get("nodes,csr")["items"] == []
    line = way.line()
    (token,) = re.findall(r"-Token (\S+)", line)

    result = way.paste(line)
    assert result.code == 0, result.out
    assert "RUNNING" in way.kubelet()
    node = plane.get("node", NAME)["metadata"]
    (request,) = plane.get("csr")["items"]
    assert request["spec"]["username"] == f"system:bootstrap:{token.partition('.')[0]}"
    assert request["status"]["certificate"]
    assert token not in machine.log()
    assert not any(token.encode() in path.read_bytes() for path in ground.path(r"C:\ProgramData").rglob("*.*"))

    machine.change_bundle(way.bundles[KUBERNETES])
    upgrade = way.upgrade()
    result = way.paste(upgrade)
    assert result.code == 0, result.out
    assert "The kubelet configuration for this node was successfully upgraded" in result.out
    assert ground.path(r"C:\k\kubelet.exe").read_bytes()[-5:] != b"older"
    assert ground.path(r"C:\ProgramData\winready\previous\kubelet.exe").read_bytes()[-5:] == b"older"
    assert "RUNNING" in way.kubelet()
    assert plane.get("node", NAME)["metadata"]["uid"] == node["uid"]

    (result,) = machine.node("reset")
    assert result.code == 0, result.out
    left = set(machine.files()) - bare
    assert {name for name in left if "logs" not in name} == {"ProgramData/winready"}
    assert "STATE" not in way.kubelet()
    way.operator.winready("node", "drain", NAME)
    way.operator.winready("node", "remove", NAME)
    assert plane.get("nodes")["items"] == []

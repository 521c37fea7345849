"""A sandbox on a real control plane from start to end: quick, on loopback only, and nothing is left of it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from real.conftest import KUBERNETES, OLDER, WITH_OLDER, Cluster, Kubectl, programs, start, winready

LISTENING = "0A"
LOOPBACK = ("0100007F", "00000000000000000000000001000000")


@pytest.fixture
def runtime() -> Iterator[Path]:
    """A folder for sandboxes of the test's own."""
    folder = Path(tempfile.mkdtemp(prefix="wr-"))
    yield folder
    assert winready(folder, "sandbox", "down", "--all").returncode == 0
    assert list((folder / "winready").iterdir()) == []
    shutil.rmtree(folder)


def family(pid: int) -> dict[str, int]:
    """The living children of a process by program name."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {Path(f"/proc/{child}/comm").read_text().strip(): int(child) for child in children}


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has buried yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def all_end(pids: list[int]) -> bool:
    """Wait until none of the processes runs."""
    for _ in range(1000):
        if not any(alive(pid) for pid in pids):
            return True
        time.sleep(0.02)
    return False


def listening(pid: int) -> set[str]:
    """The addresses that a process listens on."""
    process = Path("/proc") / str(pid)
    links = {os.readlink(descriptor) for descriptor in (process / "fd").iterdir()}
    rows = [line.split() for table in ("tcp", "tcp6") for line in (process / "net" / table).read_text().splitlines()]
    return {row[1].split(":")[0] for row in rows if row[3] == LISTENING and f"socket:[{row[9]}]" in links}


def test_from_start_to_end(runtime: Path) -> None:
    cluster = start(runtime, KUBERNETES, "--linux", "1", "--windows", "1", "--speed", "max", "--dual-stack")
    document = cluster.document
    assert document["kubernetes"] == f"v{KUBERNETES}"
    assert [(node["name"], node["version"], node["ready"]) for node in document["nodes"]] == [
        ("linux-1", f"v{KUBERNETES}", True),
        ("windows-1", f"v{KUBERNETES}", True),
    ]
    kubectl = Kubectl(programs(KUBERNETES) / "kubectl", cluster.kubeconfig)
    families = kubectl.ok("get", "node", "windows-1", "-o", "jsonpath={.spec.podCIDRs}{.status.addresses[*].address}")
    assert "fd00:10:244:" in families
    assert "fd00:10:250::" in families
    children = family(document["pid"])
    assert {"etcd", "kube-apiserver", "kube-controller", "kube-scheduler"} <= set(children)
    for pid in (document["pid"], *children.values()):
        assert listening(pid) <= set(LOOPBACK)
    assert cluster.winready("sandbox", "down").stdout == "Stopped: default\n"
    assert not any(alive(pid) for pid in (document["pid"], *children.values()))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(document["server"].rpartition(":")[2])))


def test_component_that_dies_ends_the_sandbox_with_its_words(runtime: Path) -> None:
    cluster = start(runtime, KUBERNETES, "--linux", "1", "--windows", "0")
    children = family(cluster.document["pid"])
    os.kill(children["kube-scheduler"], signal.SIGKILL)
    assert all_end([cluster.document["pid"], *children.values()])
    status = cluster.winready("sandbox", "status")
    assert status.returncode == 1
    assert "ended by itself: kube-scheduler was ended by signal 9; its last log lines:\n" in status.stdout
    assert (
        "kube-scheduler was ended" in json.loads(cluster.winready("sandbox", "status", "-o", "json").stdout)["failure"]
    )


def test_killed_sandbox_takes_its_control_plane_along(runtime: Path) -> None:
    cluster = start(runtime, KUBERNETES, "--linux", "1", "--windows", "0", "--kubernetes", "1.34")
    assert cluster.document["nodes"][0]["version"] == "v1.34.0"
    children = family(cluster.document["pid"])
    os.kill(cluster.document["pid"], signal.SIGKILL)
    assert all_end(list(children.values()))
    assert cluster.winready("sandbox", "status").returncode == 1


@pytest.fixture
def assets(tmp_path: Path) -> Path:
    """A folder of links to the programs, for tests that spoil it."""
    for program in programs(KUBERNETES).iterdir():
        (tmp_path / program.name).symlink_to(program)
    return tmp_path


def refused(runtime: Path, *options: str, **environment: str) -> str:
    """What is said about a sandbox that does not start."""
    result = winready(runtime, "sandbox", "up", "--detach", *options, **environment)
    assert (result.returncode, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
    return result.stderr


def test_wrong_sets_of_programs_are_refused(runtime: Path, assets: Path) -> None:
    newer = refused(runtime, "--control-plane", str(assets), "--kubernetes", "1.37")
    assert f"--kubernetes 1.37 is newer than the control plane (v{KUBERNETES})" in newer
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"port {port} on 127.0.0.1 is taken" in refused(runtime, "--control-plane", str(assets), "--port", port)
    (assets / "kube-scheduler").unlink()
    assert f"{assets} lacks kube-scheduler" in refused(runtime, KUBEBUILDER_ASSETS=str(assets))


@WITH_OLDER
def test_programs_of_two_versions_are_refused(runtime: Path, assets: Path) -> None:
    (assets / "kube-scheduler").unlink()
    (assets / "kube-scheduler").symlink_to(programs(OLDER) / "kube-scheduler")
    assert f"different versions (kube-apiserver {KUBERNETES}" in refused(runtime, "--control-plane", str(assets))


def test_component_that_cannot_start_is_quoted_and_the_others_stopped(runtime: Path, assets: Path) -> None:
    (assets / "kube-scheduler").unlink()
    real = programs(KUBERNETES) / "kube-scheduler"
    (assets / "kube-scheduler").write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && exec {real} --version\necho it hurts; exit 3\n'
    )
    (assets / "kube-scheduler").chmod(0o755)
    result = winready(runtime, "sandbox", "up", "--detach", "--control-plane", str(assets))
    assert result.returncode == 2
    assert "kube-scheduler ended with exit code 3; its last log lines:\n  it hurts\n" in result.stderr


def test_faults_of_the_embedded_control_plane_are_refused(sandbox: Cluster) -> None:
    name = str(sandbox.document["name"])
    result = sandbox.winready("sandbox", "break", "api.slow", "--name", name)
    if sandbox.document["control_plane"] == "embedded":
        assert result.returncode == 0
        sandbox.winready("sandbox", "heal", "--name", name)
    else:
        assert result.returncode == 2
        assert "this fault is one of the embedded control plane" in result.stderr

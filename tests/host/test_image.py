"""The image of winready, run by runc and on a host node: not root, a read-only root, no shell."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from host.conftest import start, winready
from host.pods import Pods, pod
from winready.cluster.client import Client
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import CLUSTER_ROLE_BINDINGS
from winready.deploy.image import IMAGE
from winready_sandbox.host.images import HostImage, architecture, load

ROOT = Path(__file__).resolve().parents[2]


def make(target: Path) -> str:
    """Build the image as ``make image`` does; its digest."""
    command = [sys.executable, str(ROOT / "tools" / "image.py"), "--output", str(target)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["digest"])


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("layout") / "image"
    return folder, make(folder)


@pytest.fixture(scope="module")
def image(layout: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> HostImage:
    return load(f"{IMAGE}={layout[0]}", tmp_path_factory.mktemp("unpacked"))


def run(image: HostImage, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run it by runc, as its own user, with nothing that can be written to."""
    subprocess.run(["runc", "spec"], cwd=folder, check=True)
    spec: dict[str, Any] = json.loads((folder / "config.json").read_text())
    user, group = (int(part) for part in image.user.split(":"))
    spec["root"] = {"path": str(image.root), "readonly": True}
    spec["process"] |= {"terminal": False, "args": [*image.entrypoint, *words], "cwd": "/"}
    spec["process"] |= {
        "user": {"uid": user, "gid": group},
        "env": [f"{key}={value}" for key, value in image.env.items()],
    }
    spec["process"]["capabilities"] = {}
    (folder / "config.json").write_text(json.dumps(spec))
    command = ["runc", "--root", str(folder / "state"), "run", f"winready-{os.getpid()}-{folder.name}"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def test_two_builds_have_one_digest(layout: tuple[Path, str], tmp_path: Path) -> None:
    assert make(tmp_path / "again") == layout[1]
    index = json.loads((layout[0] / "index.json").read_text())
    nested = json.loads((layout[0] / "blobs/sha256" / index["manifests"][0]["digest"][7:]).read_text())
    assert [each["platform"]["architecture"] for each in nested["manifests"]] == ["amd64", "arm64"]
    assert architecture() in ("amd64", "arm64")


def test_there_is_no_shell_and_no_root(image: HostImage) -> None:
    programs = sorted(path.name for path in (image.root / "usr" / "bin").iterdir())
    assert programs == ["kubectl-winready", "python3", "python3.11", "winready"]
    assert image.user == "65532:65532"
    assert not [path for path in image.root.rglob("*") if path.is_file() and path.stat().st_mode & 0o6000]


@pytest.mark.parametrize("words", [("--version",), ("spec", "list"), ("sandbox", "faults"), ("matrix",)])
def test_runc_runs_it(image: HostImage, tmp_path: Path, words: tuple[str, ...]) -> None:
    done = run(image, tmp_path, *words)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout


@pytest.fixture(scope="module")
def cluster(layout: tuple[Path, str], busybox: Path) -> Iterator[dict[str, Any]]:
    runtime = Path(tempfile.mkdtemp(prefix="wr-"))
    yield start(runtime, busybox, "--host-image", f"{IMAGE}={layout[0]}")
    assert winready(runtime, "sandbox", "down", "--all").returncode == 0
    shutil.rmtree(runtime)


async def test_it_judges_the_cluster_that_it_runs_in(cluster: dict[str, Any]) -> None:
    async with Client.connect(find_target(cluster["kubeconfig"], None)) as client:
        pods = await Pods.make(client)
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        subjects = [{"kind": "ServiceAccount", "name": "default", "namespace": pods.namespace}]
        binding = {"metadata": {"name": pods.namespace}, "roleRef": role, "subjects": subjects}
        await client.create(CLUSTER_ROLE_BINDINGS, binding)
        container = {
            "image": IMAGE,
            "args": ["plan", "--allow-small-cluster", "--category", "core.network", "-o", "json"],
            "securityContext": {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False},
        }
        told = pod("w", container=container, securityContext={"runAsNonRoot": True})
        del told["spec"]["containers"][0]["command"]
        code, log = await pods.run(told)
        assert code == 0, log
        await pods.clean()
    assert '"windows-1"' in log
    assert '"host-1"' in log, "it says that the host node is left out"

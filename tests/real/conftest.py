"""Sandboxes on the embedded and on real control planes, and the real kubectl, shared by the whole session."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from real.auditing import audited
from real_programs import ensure

KUBERNETES, OLDER = "1.36.3", "1.32.2"
ROOT = Path(__file__).resolve().parents[2]
EMBEDDED = "embedded"
SPEED = 25
"""Of the nodes; the clocks of a real control plane do not scale."""
WITH_OLDER = pytest.mark.older
"""On tests that need the programs of the older version, so that the others can run where these are not built."""
PAIRS = [
    (EMBEDDED, KUBERNETES),
    pytest.param((EMBEDDED, OLDER), marks=WITH_OLDER),
    (KUBERNETES, KUBERNETES),
    pytest.param((OLDER, OLDER), marks=WITH_OLDER),
]


LOST_BY_KUBECTL = "Unknown stream id"
"""kubectl 1.32 reads a connection's messages before it has made the streams for them, and drops what comes too early.
Later versions wait. It happens to ``exec`` and ``cp`` alone, which can be called again."""


class Kubectl:
    """The real kubectl, pointed at a sandbox."""

    def __init__(self, program: Path, kubeconfig: str) -> None:
        self.program = program
        self.environment = {**os.environ, "KUBECONFIG": kubeconfig, "HOME": str(Path(kubeconfig).parent)}

    def command(self, *arguments: str) -> list[str]:
        """The words of a call."""
        return [str(self.program), "--cache-dir", str(Path(self.environment["HOME"]) / "cache"), *arguments]

    def __call__(self, *arguments: str, stdin: str = "", timeout: float = 180) -> subprocess.CompletedProcess[str]:
        for _ in range(5):
            result = subprocess.run(
                self.command(*arguments),
                input=stdin,
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
            if LOST_BY_KUBECTL not in result.stderr:
                break
        return result

    def ok(self, *arguments: str, stdin: str = "") -> str:
        """Run it, insist on success, and return what it printed."""
        result = self(*arguments, stdin=stdin)
        assert result.returncode == 0, f"kubectl {' '.join(arguments)}\n{result.stdout}{result.stderr}"
        return result.stdout


@dataclass(frozen=True)
class Cluster:
    """A running sandbox."""

    document: dict[str, Any]
    runtime: Path

    @property
    def kubeconfig(self) -> str:
        """Its administrator's."""
        return str(self.document["kubeconfig"])

    @property
    def version(self) -> str:
        """Of its API server."""
        return str(self.document["kubernetes"])

    def winready(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command line, for this sandbox."""
        return winready(self.runtime, *arguments)


def winready(runtime: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    command = [sys.executable, "-m", "winready", *arguments]
    env = {**os.environ, "XDG_RUNTIME_DIR": str(runtime), **environment}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=800, check=False)


def programs(version: str) -> Path:
    """The folder with the real programs of a Kubernetes version."""
    return ensure(version, ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"])


def start(runtime: Path, plane: str, *options: str, folder: Path | None = None) -> Cluster:
    """A sandbox on the embedded control plane, or on the real one of a version, whose programs may be elsewhere."""
    real = [] if plane == EMBEDDED else ["--control-plane", str(folder or programs(plane))]
    result = winready(runtime, "sandbox", "up", "--detach", *real, *options, "-o", "json")
    assert result.returncode == 0, result.stderr
    return Cluster(json.loads(result.stdout), runtime)


@pytest.fixture(scope="session")
def clusters() -> Iterator[Callable[..., Cluster]]:
    """Sandboxes by control plane and options, each started when it is first asked for."""
    runtime = Path(tempfile.mkdtemp(prefix="wr-"))

    @functools.cache
    def cluster(plane: str, *options: str) -> Cluster:
        name = "".join([plane, *(option.removeprefix("-") for option in options)]).replace(".", "-")
        folder = None if plane == EMBEDDED else audited(runtime / f"programs-{name}", programs(plane))
        return start(runtime, plane, "--name", name, "--speed", str(SPEED), *options, folder=folder)

    yield cluster
    assert winready(runtime, "sandbox", "down", "--all").returncode == 0
    shutil.rmtree(runtime)


@pytest.fixture(scope="session", params=PAIRS, ids=lambda pair: f"{pair[0]}-kubectl-{pair[1]}")
def pair(request: pytest.FixtureRequest, clusters: Callable[[str], Cluster]) -> tuple[Cluster, str]:
    """A control plane and the version of the kubectl that talks to it."""
    plane, version = request.param
    return clusters(plane), version


@pytest.fixture(scope="session")
def sandbox(pair: tuple[Cluster, str]) -> Cluster:
    """The sandbox of this pair."""
    return pair[0]


@pytest.fixture(scope="session")
def kubectl(pair: tuple[Cluster, str]) -> Kubectl:
    """The real kubectl of this pair."""
    return Kubectl(programs(pair[1]) / "kubectl", pair[0].kubeconfig)


@pytest.fixture(scope="session")
def winready_image() -> Iterator[Path]:
    """Our image, as 'make image' makes it."""
    folder = Path(tempfile.mkdtemp(prefix="wr-image-"))
    command = [sys.executable, str(ROOT / "tools" / "image.py"), "--output", str(folder / "winready")]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    yield folder / "winready"
    shutil.rmtree(folder)

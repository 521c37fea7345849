"""A sandbox and the real kubectl for the whole session."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from real_programs import ensure

KUBERNETES = "1.36.3"


class Kubectl:
    """The real kubectl, pointed at a sandbox."""

    def __init__(self, program: Path, kubeconfig: str) -> None:
        self.program = program
        self.environment = {**os.environ, "KUBECONFIG": kubeconfig, "HOME": str(Path(kubeconfig).parent)}

    def command(self, *arguments: str) -> list[str]:
        """The words of a call."""
        return [str(self.program), "--cache-dir", str(Path(self.environment["HOME"]) / "cache"), *arguments]

    def __call__(self, *arguments: str, stdin: str = "", timeout: float = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            input=stdin,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def ok(self, *arguments: str, stdin: str = "") -> str:
        """Run it, insist on success, and return what it printed."""
        result = self(*arguments, stdin=stdin)
        assert result.returncode == 0, f"kubectl {' '.join(arguments)}\n{result.stdout}{result.stderr}"
        return result.stdout


@pytest.fixture(scope="session")
def sandbox() -> Iterator[dict[str, str]]:
    """A running sandbox; its document."""
    folder = tempfile.mkdtemp(prefix="wr-")
    environment = {**os.environ, "XDG_RUNTIME_DIR": folder}
    winready = [sys.executable, "-m", "winready", "sandbox"]
    up = [*winready, "up", "--detach", "--speed", "max", "-o", "json"]
    result = subprocess.run(up, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    yield json.loads(result.stdout)
    subprocess.run([*winready, "down"], env=environment, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def kubectl(sandbox: dict[str, str]) -> Kubectl:
    """The real kubectl of the pinned version."""
    return Kubectl(ensure(KUBERNETES, ["kubectl"]) / "kubectl", sandbox["kubeconfig"])

"""The command line as a user runs it, in processes of its own, with runtime and report folders of the test's own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SPEED = "25"


@dataclass
class CommandLine:
    """Runs ``winready`` and starts sandboxes."""

    runtime: Path
    cwd: Path | None = None

    def environment(self, **more: str) -> dict[str, str]:
        """No kubeconfig and no artifacts folder of the machine gets in."""
        mine = {key: value for key, value in os.environ.items() if key not in ("KUBECONFIG", "ARTIFACTS")}
        return {**mine, "XDG_RUNTIME_DIR": str(self.runtime), "HOME": str(self.runtime), **more}

    def __call__(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [sys.executable, "-m", "winready", *arguments],
            env=self.environment(**environment),
            cwd=self.cwd,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start a command and leave it running."""
        command = [sys.executable, "-m", "winready", *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=self.environment(**environment), stdout=pipe, stderr=pipe, text=True)

    def sandbox(self, name: str, *options: str) -> dict[str, Any]:
        """Start a sandbox; its document."""
        result = self("sandbox", "up", "--detach", "--name", name, "--speed", SPEED, "-o", "json", *options)
        assert result.returncode == 0, result.stderr
        document: dict[str, Any] = json.loads(result.stdout)
        return document


@pytest.fixture(scope="session")
def command_line() -> Iterator[CommandLine]:
    """The command line, with sandboxes that are stopped at the end."""
    folder = Path(tempfile.mkdtemp(prefix="wr-"))
    command = CommandLine(folder)
    yield command
    command("sandbox", "down", "--all")
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def cluster(command_line: CommandLine) -> dict[str, Any]:
    """A healthy sandbox that several tests share."""
    return command_line.sandbox("shared")


@pytest.fixture(scope="session")
def kubeconfig(cluster: dict[str, Any]) -> str:
    """The way to it."""
    return str(cluster["kubeconfig"])

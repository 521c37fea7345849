"""A sandbox with a host node, as root and as somebody else, and an image of busybox to run on it."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from host.pods import Pods
from winready.cluster.client import Client
from winready.cluster.kubeconfig import find_target

APPLETS = ("cat", "echo", "env", "hostname", "id", "ls", "nc", "ps", "sh", "sleep", "touch", "wget", "httpd", "kill")
SOMEBODY = 1234
NAME = "busybox:1"


@functools.cache
def interpreter(user: int | None) -> tuple[str, dict[str, str]]:
    """A Python that may be run by that user, and what it needs to find winready: ours may be closed to others."""
    found = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    groups: list[int] | None = None if user is None else []
    for program in (sys.executable, f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"):
        trial, env = [program, "-c", "import winready_sandbox"], {**os.environ, **found}
        with contextlib.suppress(OSError):
            done = subprocess.run(
                trial, env=env, user=user, group=user, extra_groups=groups, cwd="/", capture_output=True, check=False
            )
            if done.returncode == 0:
                return program, found
    raise AssertionError("no Python here can be run by another user")


def winready(
    runtime: Path, *words: str, user: int | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, as root or as another user."""
    python, found = interpreter(user)
    env = {**os.environ, "XDG_RUNTIME_DIR": str(runtime), "PYTHONDONTWRITEBYTECODE": "1", **found, **environment}
    command = [python, "-m", "winready", *words]
    groups: list[int] | None = None if user is None else []
    return subprocess.run(
        command,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        user=user,
        group=user,
        extra_groups=groups,
        cwd="/",
    )


@pytest.fixture(scope="session")
def busybox() -> Iterator[Path]:
    """A root file system that everybody may read."""
    folder = Path(tempfile.mkdtemp(prefix="wr-image-"))
    folder.chmod(0o755)
    for name in ("bin", "tmp", "etc"):
        (folder / name).mkdir()
    program = shutil.which("busybox")
    assert program is not None, "busybox is not installed; Debian has it in busybox-static"
    shutil.copy(program, folder / "bin" / "busybox")
    for applet in APPLETS:
        (folder / "bin" / applet).symlink_to("busybox")
    (folder / "etc" / "passwd").write_text("root:x:0:0::/:\nworker:x:1000:3000::/:\n")
    yield folder
    shutil.rmtree(folder)


def start(runtime: Path, busybox: Path, *options: str, user: int | None = None) -> dict[str, Any]:
    """A sandbox with a host node; its document."""
    words = ("sandbox", "up", "--detach", "--linux", "1", "--windows", "1", "--speed", "max", "--host-node")
    result = winready(runtime, *words, "--host-image", f"{NAME}={busybox}", *options, "-o", "json", user=user)
    assert result.returncode == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


@pytest.fixture(scope="session", params=["root", "somebody"])
def sandbox(request: pytest.FixtureRequest, busybox: Path) -> Iterator[dict[str, Any]]:
    """The same cluster, run by root and by a user without any rights."""
    user = None if request.param == "root" else SOMEBODY
    runtime = Path(tempfile.mkdtemp(prefix="wr-"))
    if user:
        os.chown(runtime, user, user)
    yield {**start(runtime, busybox, user=user), "as_root": user is None, "runtime": runtime}
    assert winready(runtime, "sandbox", "down", "--all", user=user).returncode == 0
    assert list((runtime / "winready").iterdir()) == []
    shutil.rmtree(runtime)


@pytest.fixture
async def pods(sandbox: dict[str, Any]) -> AsyncIterator[Pods]:
    """Pods on the host node, in a namespace of the test's own."""
    async with Client.connect(find_target(sandbox["kubeconfig"], None)) as client:
        made = await Pods.make(client)
        yield made
        await made.clean()

"""However a sandbox with a host node ends, nothing of it is left: no process, mount, namespace or file."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from host.conftest import start, winready
from host.pods import Pods, pod
from winready.cluster.client import Client
from winready.cluster.kubeconfig import find_target

MARK = "98765.4321"
"""How long the process of these tests sleeps: nobody else sleeps exactly that long."""


def command_lines() -> Iterator[tuple[int, bytes]]:
    """Of every process of this machine, its number and the words it was started with."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield int(folder.name), (folder / "cmdline").read_bytes()


def sleeping() -> list[int]:
    """The processes of these tests that still live."""
    return [each for each, words in command_lines() if MARK.encode() in words.split(b"\0")]


def soon_gone() -> bool:
    """Wait until none lives; the kernel ends them when it has ended the first process of their namespace."""
    until = time.monotonic() + 60
    while sleeping() and time.monotonic() < until:
        time.sleep(0.02)
    return sleeping() == []


def namespaces() -> set[str]:
    """Networks of processes of this machine."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found.add(os.readlink(folder / "ns" / "net"))
    return found


def mounts() -> str:
    return Path("/proc/self/mountinfo").read_text()


@pytest.fixture
def running(busybox: Path) -> Iterator[dict[str, Any]]:
    """A sandbox of the test's own."""
    runtime = Path(tempfile.mkdtemp(prefix="wr-"))
    yield {**start(runtime, busybox, "--name", "end"), "runtime": runtime}
    winready(runtime, "sandbox", "down", "--all")
    assert list((runtime / "winready").iterdir()) == []
    shutil.rmtree(runtime)


@pytest.mark.parametrize("way", ["down", "kill -9"])
async def test_nothing_is_left(running: dict[str, Any], way: str) -> None:
    before = mounts()
    assert sleeping() == []
    async with Client.connect(find_target(running["kubeconfig"], None)) as client:
        pods = await Pods.make(client)
        await pods.create(pod("a", "sleep", MARK))
        await pods.phase("a", "Running")
    (process, *others) = sleeping()
    networks = {os.readlink(f"/proc/{each}/ns/net") for each in (process, *others)}
    assert mounts() == before, "whatever is mounted is mounted in namespaces of its own"
    if way == "down":
        assert winready(running["runtime"], "sandbox", "down", "--name", "end").returncode == 0
        assert sleeping() == []
    else:
        os.kill(running["pid"], signal.SIGKILL)
        assert soon_gone()
    assert networks & namespaces() == set()
    assert mounts() == before


def test_a_keeper_that_is_killed_ends_the_sandbox_with_the_reason(running: dict[str, Any]) -> None:
    runtime = running["runtime"]
    keepers = [each for each, words in command_lines() if str(runtime).encode() in words and b"keeper.py" in words]
    assert keepers
    for each in keepers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    until = time.monotonic() + 60
    # While it ends it neither answers nor has told the reason yet.
    reason, told = "the processes of the host node were ended from outside", ""
    while reason not in told and time.monotonic() < until:
        told = winready(runtime, "sandbox", "status", "--name", "end").stdout
    assert reason in told


def test_without_bubblewrap_one_sentence_says_so(tmp_path: Path) -> None:
    runtime = Path(tempfile.mkdtemp(prefix="wr-"))
    (tmp_path / "ip").symlink_to("/bin/true")
    said = winready(runtime, "sandbox", "up", "--detach", "--host-node", PATH=str(tmp_path))
    assert said.returncode == 2
    words = "error: --host-node needs bubblewrap (bwrap is not on PATH); install it: apt install bubblewrap\n"
    assert (said.stdout, said.stderr) == ("", words)
    assert list((runtime / "winready").iterdir()) == []
    shutil.rmtree(runtime)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--host-image", "a=b"), "--host-image names what a host node runs; write --host-node as well"),
        (("--host-node", "--host-image", "nothing"), "--host-image nothing: write NAME=FOLDER"),
        (("--host-node", "--host-image", "a=/no/such"), "/no/such is no folder"),
    ],
)
def test_wrong_images_are_refused(words: tuple[str, ...], said: str) -> None:
    runtime = Path(tempfile.mkdtemp(prefix="wr-"))
    result = winready(runtime, "sandbox", "up", "--detach", *words)
    assert (result.returncode, said in result.stderr, "Traceback" in result.stderr) == (2, True, False), result.stderr
    shutil.rmtree(runtime)

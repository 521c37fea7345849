"""Processes of a control plane end with their sandbox, and never without a word."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from winready_sandbox.control_plane.real.processes import Components
from winready_sandbox.state import StateError

OWNER = """
import asyncio, sys
from pathlib import Path
from winready_sandbox.control_plane.real.processes import Components

async def main():
    component = await Components(Path(sys.argv[1])).start(Path("/bin/sleep"), ["1000"])
    print(component.process.pid, flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has buried yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_killed_owner_leaves_no_process(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER, tmp_path], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        assert alive(pid)
        owner.send_signal(signal.SIGKILL)
        for _ in range(3000):
            if not alive(pid):
                break
            time.sleep(0.02)
        assert not alive(pid)


async def test_stopping_ends_all_of_them(tmp_path: Path) -> None:
    components = Components(tmp_path)
    started = [await components.start(Path("/bin/sleep"), ["1000"]) for _ in range(2)]
    await components.stop()
    assert [component.process.returncode for component in started] == [-signal.SIGKILL, -signal.SIGKILL]
    await components.stop()


async def test_one_that_ends_is_quoted(tmp_path: Path) -> None:
    components = Components(tmp_path)
    await components.start(Path("/bin/sleep"), ["1000"])
    script = tmp_path / "kube-scheduler"
    script.write_text("#!/bin/sh\nfor n in $(seq 40); do echo line $n; done\nexit 3\n")
    script.chmod(0o755)
    await components.start(script, [])
    with pytest.raises(StateError, match=r"(?s)kube-scheduler ended with exit code 3; .*line 29\n.*line 40\Z") as error:
        await asyncio.wait_for(components.failure(), 60)
    assert "line 28" not in str(error.value)
    await components.stop()


async def test_one_that_is_killed_says_so(tmp_path: Path) -> None:
    components = Components(tmp_path)
    component = await components.start(Path("/bin/sleep"), ["1000"])
    os.kill(component.process.pid, signal.SIGKILL)
    with pytest.raises(StateError, match="sleep was ended by signal 9; its log is empty"):
        await asyncio.wait_for(components.failure(), 60)
    await components.stop()

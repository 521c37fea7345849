"""The ground itself: machines do not know each other, and nothing of one is left, however it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from windows.ground import Ground

ROOT = Path(__file__).resolve().parents[2]


def gone(pid: int) -> bool:
    """Wait until a process is no more."""
    for _ in range(1500):
        if not Path(f"/proc/{pid}").exists():
            return True
        time.sleep(0.02)
    return False


def test_two_machines_share_nothing_and_the_layers_stay_as_they_are(ground: Path) -> None:
    with Ground("one") as one, Ground("two") as two:
        one.put(r"C:\only\here.txt", "x")
        (answer,) = one.powershell(r"[IO.File]::Exists('C:\only\here.txt'); [Net.Dns]::GetHostName()")
        assert answer.out.split() == ["True", "one"]
        assert not two.path(r"C:\only").exists()
        assert two.run(["cmd", "/c", "type", r"C:\only\here.txt"]).code != 0
        first = int(one.c_drive.parts[2])
    assert gone(first)
    assert not list(ground.glob("*/wine/drive_c/only"))
    assert "winready-ground-" not in Path("/proc/mounts").read_text()


def test_the_network_of_a_machine_is_its_own(machine: Ground) -> None:
    with machine.network():
        server = socket.create_server(("127.0.0.1", 0))
    with server:
        address = server.getsockname()
        with machine.network():
            socket.create_connection(address, timeout=5).close()
        # Outside nobody answers there; inside there is nowhere else to go.
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, timeout=5)
    with machine.network(), pytest.raises(OSError, match="unreachable"):
        socket.create_connection(("192.0.2.1", 80), timeout=5)


def test_a_machine_ends_with_whoever_made_it(tmp_path: Path) -> None:
    script = (
        "import sys, time\n"
        f"sys.path[:0] = [{str(ROOT / 'tools')!r}, {str(ROOT / 'tests')!r}]\n"
        "from windows.ground import Ground\n"
        "with Ground() as machine:\n"
        "    print(machine.c_drive.parts[2], flush=True)\n"
        "    time.sleep(600)\n"
    )
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", script], env=env, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        first = int(owner.stdout.readline())
        os.kill(owner.pid, signal.SIGKILL)
        assert gone(first)


def test_a_script_that_does_not_run_is_no_success(machine: Ground) -> None:
    # PowerShell ends before it gets to the canary.
    with pytest.raises(AssertionError, match="did not run its script"):
        machine.powershell("1", prelude="exit 0")


def test_a_program_that_hangs_is_given_up(machine: Ground) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        machine.run(["cmd", "/c", "pause"], timeout=2, terminal=True)

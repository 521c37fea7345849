"""Other ways to join, run by the real PowerShell: through a proxy, with a file for the token, beside other services."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from node.mirror import Mirror, running
from windows.cluster import CA_HASH, RELEASE, TOKEN, api_server
from windows.ground import Ground
from windows.worker import JOIN, SERVICES, Worker, make_bundle, publish, standin, worker

THEIRS = r"C:\theirs\containerd.exe"


def settings(machine: Worker, service: str) -> str:
    """What the service manager stores of a service."""
    return machine.ground.run(["reg", "query", rf"{SERVICES}\{service}", "/s"]).out


class Proxy(Mirror):
    """Answers for whomever it is asked about, as a proxy does."""

    def stand_for(self, mirror: Mirror) -> None:
        self.held = {f"{mirror.url}{path}": content for path, content in mirror.held.items()}


@contextlib.contextmanager
def elsewhere() -> Iterator[str]:
    """An address that is not the loopback's: nobody asks a proxy about that."""
    subprocess.run(["ip", "address", "add", "10.9.9.9/32", "dev", "lo"], check=True)
    yield "10.9.9.9"


def test_a_proxy_a_token_from_a_file_and_a_name(tmp_path: Path) -> None:
    with (
        Ground() as ground,
        api_server(ground),
        ground.network(),
        elsewhere() as address,
        running(address=address) as mirror,
        running(Proxy()) as proxy,
    ):
        publish(mirror, RELEASE)
        flags = (
            "--http-proxy",
            proxy.url,
            "--https-proxy",
            "http://proxy.example:3128",
            "--no-proxy",
            "registry.example",
        )
        make_bundle(mirror, RELEASE, tmp_path / "bundle", *flags)
        assert isinstance(proxy, Proxy)
        proxy.stand_for(mirror)
        mirror.asked.clear()
        machine = Worker(ground)
        machine.prepare(tmp_path / "bundle")
        ground.put(r"C:\ground\token.txt", f"{TOKEN}\r\n")
        joined, again, status = machine.powershell(
            "Set-Location C:\\ground\n"
            rf"& C:\bundle\node.ps1 join -TokenFile token.txt -CaHash {CA_HASH} -NodeName Worker-7",
            rf"& C:\bundle\node.ps1 {JOIN}",
            rf"& C:\bundle\node.ps1 {JOIN} -NodeName other",
        )
        assert joined.code == 0, joined.out
        assert "node worker-7: " in joined.out
        assert TOKEN not in joined.out + machine.log()
        # Everything came through the proxy, once.
        assert mirror.asked == []
        assert len(proxy.asked) == len(set(proxy.asked)) == 9
        for service in ("kubelet", "containerd"):
            (variables,) = re.findall(r"Environment +REG_MULTI_SZ +(.*)", settings(machine, service))
            assert variables.startswith(rf"HTTP_PROXY={proxy.url}\0HTTPS_PROXY=http://proxy.example:3128\0NO_PROXY=")
            assert "registry.example" in variables
        assert again.code == 0
        assert "node worker-7: nothing had to be changed" in again.out
        assert status.code == 2
        assert "this machine is prepared as node worker-7" in status.out


def test_services_of_others_are_as_they_were(tmp_path: Path) -> None:
    with Ground() as ground, api_server(ground), running() as mirror:
        publish(mirror, RELEASE)
        make_bundle(mirror, RELEASE, tmp_path / "bundle", "--offline")
        machine = Worker(ground)
        machine.prepare(tmp_path / "bundle")
        ground.put(THEIRS, standin(RELEASE))
        (made,) = machine.powershell(
            f"New-Service -Name containerd -BinaryPathName '{THEIRS} --theirs' -StartupType Manual -DependsOn eventlog"
        )
        assert made.code == 0, made.out
        before = settings(machine, "containerd")
        joined, status, reset = machine.node(JOIN, "status", "reset")
        assert joined.code == 0, joined.out
        assert status.code == 0, status.out
        assert reset.code == 0, reset.out
        assert "left    service containerd, stopped (it was there before" in reset.out
        # No action on failure is stored as an empty list, and as a zero.
        stored = r" +FailureActions(?: +REG_BINARY +0{24}\w+|OnNonCrashFailures +REG_DWORD +0x0)\n"
        assert re.sub(stored, "", settings(machine, "containerd")) == before
        assert "Unable to find" in settings(machine, "kubelet")


def test_a_join_that_was_cut_off_goes_on_and_can_be_taken_back(bundles: dict[str, Path]) -> None:
    with worker(bundles[RELEASE]) as machine:
        before = machine.picture()
        # As when the power fails at the moment the first service is to start.
        with pytest.raises(AssertionError, match="did not run its script"):
            machine.powershell(
                rf"function global:Start-Service {{ [Environment]::Exit(9) }}; & C:\bundle\node.ps1 {JOIN}"
            )
        joined, again, reset = machine.node(JOIN, JOIN, "reset")
        assert joined.code == 0, joined.out
        assert "nothing had to be changed" in again.out
        assert reset.code == 0, reset.out
        after = machine.picture()
        assert after[1] == before[1]
        assert set(after[0]) - set(before[0]) == {"ProgramData/winready", "ProgramData/winready/logs"}
        assert set(before[0]) <= set(after[0])


def test_a_record_that_is_damaged_is_said_and_nothing_is_guessed(bundles: dict[str, Path]) -> None:
    with worker(bundles[RELEASE]) as machine:
        machine.ground.put(r"C:\ProgramData\winready\record.json", "{ half of")
        before = machine.picture()
        results = machine.node(JOIN, "reset", "status")
        assert [result.code for result in results] == [1, 1, 1]
        for result in results:
            assert r"error: C:\ProgramData\winready\record.json is damaged, and tells what was on this" in result.out
        assert machine.picture() == before

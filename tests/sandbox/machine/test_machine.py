"""Machines: identity, restarts, the node's own state."""

from __future__ import annotations

import pytest

from sandbox.helpers.containers import container, machine, run
from winready_sandbox.machine.builds import windows_build
from winready_sandbox.machine.domain import CredentialSpec, Domain, Share
from winready_sandbox.machine.machine import MachineDefects, PowerRequest

SYSTEM = "NT AUTHORITY\\SYSTEM"


@pytest.mark.parametrize(
    ("name", "label", "image"),
    [
        ("2019", "10.0.17763", "Windows Server 2019 Datacenter"),
        ("20348", "10.0.20348", "Windows Server 2022 Datacenter"),
        ("ltsc2025", "10.0.26100", "Windows Server 2025 Datacenter"),
    ],
)
def test_builds(name: str, label: str, image: str) -> None:
    host = machine(build=name)
    assert host.build is not None
    assert (host.build.label, host.os_image) == (label, image)
    assert host.kernel_version.startswith(f"{label}.")


def test_an_unknown_build_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="write one of 17763"):
        windows_build("1234")


def test_a_restart_counts_the_boot_id_up_and_empties_what_is_volatile() -> None:
    host = machine()
    host.files.write("C:\\Windows\\Temp\\f", b"x")
    host.files.write("C:\\kept.txt", b"x")
    before = int(host.boot_id)
    host.restart()
    assert int(host.boot_id) == before + 1
    assert host.files.exists("C:\\kept.txt")
    assert not host.files.exists("C:\\Windows\\Temp\\f")
    host.defects = MachineDefects(boot_id_stays=True)
    host.restart()
    assert int(host.boot_id) == before + 1


def test_linux_boot_ids_are_random() -> None:
    host = machine("linux")
    before = host.boot_id
    host.restart()
    assert host.boot_id != before


async def test_shutdown_asks_the_machine_and_can_be_taken_back() -> None:
    host = machine()
    asked: list[PowerRequest | None] = []
    host.on_power = asked.append
    where = container("busybox", on=host, host_process=True, user=SYSTEM)
    assert (await run(where, "shutdown.exe", "-r", "-t", "30")).code == 0
    assert (await run(where, "shutdown.exe", "/r", "/t", "5")).code == 1190
    assert (await run(where, "shutdown.exe", "/a")).code == 0
    assert (await run(where, "powershell", "Restart-Computer -Force")).code == 0
    assert asked == [PowerRequest(True, 30), None, PowerRequest(True, 0)]


async def test_only_an_administrator_of_the_node_restarts_it() -> None:
    host = machine()
    service = container("busybox", on=host, host_process=True, user="NT AUTHORITY\\Local service")
    assert (await run(service, "shutdown.exe", "/r", "/t", "0")).code == 5
    ordinary = container("servercore", on=host)
    assert (await run(ordinary, "shutdown.exe", "/r", "/t", "0")).code == 5
    assert host.power is None


async def test_fact_a1_a3_a_share_opens_to_the_credential_spec_only() -> None:
    domain = Domain("corp.test", "CORP", ("web",), shares={"data": Share({"web"}), "secret": Share()})
    host = machine(domain=domain)
    spec = CredentialSpec("corp.test", "CORP", "web")
    member, stranger = container(on=host, credential_spec=spec), container(on=host)
    assert (await run(member, "cmd", "/c", "echo hi>\\\\fileserver\\data\\f.txt")).code == 0
    assert (await run(member, "cmd", "/c", "type \\\\fileserver\\data\\f.txt")).out == "hi\r\n"
    assert (await run(member, "cmd", "/c", "dir \\\\fileserver\\secret")).err == "Access is denied.\r\n"
    assert (await run(stranger, "cmd", "/c", "type \\\\fileserver\\data\\f.txt")).err == "Access is denied.\r\n"
    assert "network path" in (await run(member, "cmd", "/c", "type \\\\nowhere\\data\\f.txt")).err


async def test_klist_names_the_account_that_kerberos_knows_the_container_as() -> None:
    host = machine(domain=Domain("corp.test", "CORP", ("web", "other")))
    member = container("busybox", on=host, credential_spec=CredentialSpec("corp.test", "CORP", "web"))
    assert "Cached Tickets: (0)" in (await run(member, "klist")).lines
    got = await run(member, "klist", "get", "krbtgt")
    assert "A ticket to krbtgt has been retrieved successfully." in got.lines
    listed = await run(member, "klist")
    assert listed.lines[1].startswith("Current LogonId is 0:0x")
    assert "Cached Tickets: (1)" in listed.lines
    assert "#0>\tClient: web$ @ CORP.TEST" in listed.lines
    assert "\tServer: krbtgt/CORP.TEST @ CORP.TEST" in listed.lines
    host.defects.account_lost_after = 1.0
    host.clock._start -= 2.0
    lost = await run(member, "klist", "get", "krbtgt")
    assert (lost.code, "no logon servers" in lost.out) == (1, True)
    assert "ERROR_NO_LOGON_SERVERS" in (await run(member, "nltest", "/query")).out
    nobody = await run(container("busybox", on=host), "klist", "get", "krbtgt")
    assert "No credentials are available in the security package" in nobody.out
    assert (await run(member, "klist", "purge")).code == 1


async def test_nltest_tells_the_domain_of_the_credential_spec() -> None:
    dummy = container("busybox", credential_spec=CredentialSpec("dummy.lan", "DUMMY", "acct"))
    answer = await run(dummy, "nltest", "/PARENTDOMAIN")
    assert "dummy.lan" in answer.out
    assert "ERROR_NO_LOGON_SERVERS" in (await run(dummy, "nltest", "/QUERY")).out
    assert (await run(container("busybox"), "nltest", "/PARENTDOMAIN")).code != 0

"""Tools that come with Windows: output, line ends and exit codes."""

from __future__ import annotations

from sandbox.helpers.containers import cmd, container, machine, powershell, run

SYSTEM = "NT AUTHORITY\\SYSTEM"


async def test_who_and_where_am_i() -> None:
    where = container("nanoserver", hostname="web-1")
    assert (await run(where, "whoami")).out == "user manager\\containeruser\r\n"
    assert (await run(where, "hostname")).out == "web-1\r\n"


async def test_brief_w4_the_registry_of_a_node_says_whether_remote_desktop_is_allowed() -> None:
    where = container("busybox", on=machine(), host_process=True, user=SYSTEM)
    key = "HKLM\\SYSTEM\\CurrentControlSet\\Control\\Terminal Server"
    value = await run(where, "reg", "query", key, "/v", "fDenyTSConnections")
    assert "fDenyTSConnections    REG_DWORD    0x0" in value.out
    assert (await run(where, "reg", "query", "HKLM\\NoSuch")).code == 1


async def test_icacls_grants() -> None:
    admin = container("pause", user="ContainerAdministrator")
    await cmd(admin, "echo x>C:\\f.txt")
    assert "BUILTIN\\Administrators:(F)" in (await run(admin, "icacls", "C:\\f.txt")).out
    assert (await run(admin, "icacls", "C:\\f.txt", "/grant", "Users:(F)")).code == 0
    assert "BUILTIN\\Users:(F)" in (await run(admin, "icacls", "C:\\f.txt")).out
    assert (await run(admin, "icacls", "C:\\nope")).code == 2


async def test_local_groups() -> None:
    where = container("nanoserver", user="ContainerAdministrator")
    assert (await run(where, "net", "localgroup", "g", "/add")).code == 0
    assert "already exists" in (await run(where, "net", "localgroup", "g", "/add")).err
    assert "*g" in (await run(where, "net", "localgroup")).lines
    assert (await run(where, "net", "localgroup", "g", "/delete")).code == 0
    assert (await run(where, "net", "localgroup", "g")).code == 2


async def test_containers_of_a_node_show_in_hcsdiag() -> None:
    host = machine()
    other = container("pause", on=host)
    where = container("busybox", on=host, host_process=True, user=SYSTEM)
    answer = await run(where, "hcsdiag", "list")
    assert other.id in answer.out
    assert where.id not in answer.out
    machines = "(Get-ComputeProcess | Where-Object { $_.Type -EQ 'VirtualMachine' }).Id"
    assert (await powershell(where, machines)).out == ""
    host.virtual_machines.add("abc@vm")
    assert (await powershell(where, machines)).out == "abc@vm\r\n"
    assert "abc@vm\r\n    VM," in (await run(where, "hcsdiag", "list")).out

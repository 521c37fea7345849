"""Tools that come with Windows: output, line ends and exit codes."""

from __future__ import annotations

from sandbox.helpers.containers import cmd, container, machine, powershell, run

SYSTEM = "NT AUTHORITY\\SYSTEM"


async def test_findstr_and_find() -> None:
    where = container("nanoserver")
    await cmd(where, "md C:\\t & (echo one& echo Two& echo three)>C:\\t\\f")
    assert (await run(where, "findstr", "/i", "two", "C:\\t\\f")).out == "Two\r\n"
    assert (await run(where, "findstr", "/n", "^t", "C:\\t\\f")).out == "3:three\r\n"
    assert (await run(where, "findstr", "/c:no such", "C:\\t\\f")).code == 1
    assert "Cannot open" in (await run(where, "findstr", "x", "C:\\nope")).err
    assert (await run(where, "cmd", "/s", "/c", 'type C:\\t\\f | find /c "t"')).code == 2, "fact 1.3: quotes break"
    where.files.write("C:\\t\\count.bat", b'@type C:\\t\\f | find /c "t"\r\n')
    assert (await run(where, "C:\\t\\count.bat")).out == "1\r\n"


async def test_who_and_where_am_i() -> None:
    where = container("nanoserver", hostname="web-1")
    assert (await run(where, "whoami")).out == "user manager\\containeruser\r\n"
    assert (await run(where, "hostname")).out == "web-1\r\n"
    assert (await run(where, "where", "cmd")).lines[0].lower() == "c:\\windows\\system32\\cmd.exe"
    assert (await run(where, "where", "nosuch")).code == 1


async def test_processes_can_be_listed_and_killed() -> None:
    where = container("servercore")
    sleeping = where.spawn(["powershell.exe", "-Command", "Start-Sleep 600"])
    assert "powershell.exe" in (await run(where, "tasklist")).out
    assert (await run(where, "taskkill", "/F", "/IM", "powershell.exe")).code == 0
    assert await sleeping.wait() == 1
    assert (await run(where, "taskkill", "/F", "/IM", "powershell.exe")).code == 128


async def test_timeout_refuses_to_run_without_a_console() -> None:
    answer = await run(container("nanoserver"), "timeout", "/t", "1")
    assert (answer.code, answer.err) == (
        1,
        "ERROR: Input redirection is not supported, exiting the process immediately.\r\n",
    )


async def test_services_and_registry_of_a_node() -> None:
    where = container("busybox", on=machine(), host_process=True, user=SYSTEM)
    assert "STATE              : 4  RUNNING" in (await run(where, "sc", "query", "kubelet")).out
    assert (await run(where, "sc", "query", "nosuch")).code == 1060
    key = "HKLM\\SYSTEM\\CurrentControlSet\\Control\\Terminal Server"
    value = await run(where, "reg", "query", key, "/v", "fDenyTSConnections")
    assert "fDenyTSConnections    REG_DWORD    0x0" in value.out
    assert (await run(where, "reg", "query", "HKLM\\NoSuch")).code == 1
    assert "Microsoft Windows Server 2022 Datacenter" in (await run(where, "systeminfo")).out


async def test_a_container_does_not_see_the_nodes_services() -> None:
    assert (await run(container("servercore"), "sc", "query", "kubelet")).code == 1060


async def test_icacls_grants() -> None:
    admin = container("pause", user="ContainerAdministrator")
    await cmd(admin, "echo x>C:\\f.txt")
    assert "BUILTIN\\Administrators:(F)" in (await run(admin, "icacls", "C:\\f.txt")).out
    assert (await run(admin, "icacls", "C:\\f.txt", "/grant", "Users:(F)")).code == 0
    assert "BUILTIN\\Users:(F)" in (await run(admin, "icacls", "C:\\f.txt")).out
    assert (await run(admin, "icacls", "C:\\nope")).code == 2


async def test_a_read_only_file_is_not_overwritten() -> None:
    where = container("servercore")
    await cmd(where, "echo a>C:\\f& attrib +r C:\\f")
    assert (await cmd(where, "echo b>C:\\f")).err == "Access is denied.\r\n"
    await cmd(where, "attrib -r C:\\f")
    assert (await cmd(where, "echo b>C:\\f& type C:\\f")).out == "b\r\n"


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

"""HostProcess containers (fact 1.4): the node's own files, tools and state, through `cmd /c`."""

from __future__ import annotations

import base64

import pytest

from sandbox.helpers.containers import container, machine, powershell, run
from winready_sandbox.machine.container import Container
from winready_sandbox.machine.machine import Machine
from winready_sandbox.machine.tree import Directory, File
from winready_sandbox.machine.users import UnknownUser

SYSTEM = "NT AUTHORITY\\SYSTEM"


@pytest.fixture
def host() -> Machine:
    return machine()


def hpc(host: Machine, user: str = SYSTEM) -> Container:
    return container("agnhost", on=host, host_process=True, user=user)


@pytest.mark.parametrize(
    ("argv", "cwd"),
    [
        (["%CONTAINER_SANDBOX_MOUNT_POINT%\\bin\\uname.exe", "-o"], None),
        (["%CONTAINER_SANDBOX_MOUNT_POINT%/bin/uname.exe", "-o"], None),
        (["bin/uname.exe", "-o"], None),
        (["bin\\uname.exe", "-o"], "%CONTAINER_SANDBOX_MOUNT_POINT%"),
        (["uname.exe", "-o"], "%CONTAINER_SANDBOX_MOUNT_POINT%/bin/"),
        (["powershell", "$env:CONTAINER_SANDBOX_MOUNT_POINT\\bin\\uname.exe", "-o"], None),
        (["powershell", "%CONTAINER_SANDBOX_MOUNT_POINT%/bin/uname.exe", "-o"], None),
        (["powershell", "./uname.exe", "-o"], "$env:CONTAINER_SANDBOX_MOUNT_POINT\\bin\\"),
    ],
)
async def test_upstreams_ways_to_name_a_program(host: Machine, argv: list[str], cwd: str | None) -> None:
    answer = await run(hpc(host), *argv, cwd=cwd)
    assert (answer.code, answer.out) == (0, "MS/Windows\n"), answer.err


async def test_commands_run_under_cmd_so_operators_are_live(host: Machine) -> None:
    where = hpc(host)
    assert (await run(where, "echo", "a&echo", "b")).out == "a\r\nb\r\n"
    missing = await run(where, "foobar.exe")
    assert missing.code == 1
    assert "is not recognized" in missing.err


async def test_agnhost_runs_after_it_was_copied(host: Machine) -> None:
    mount = "%CONTAINER_SANDBOX_MOUNT_POINT%"
    where = hpc(host)
    copied = await run(where, "cmd", "/c", "copy", f"{mount}\\agnhost", f"{mount}\\agnhost.exe", "&&", "echo", "ok")
    assert copied.lines == ["        1 file(s) copied.", "ok"]
    assert (await run(where, f"{mount}\\agnhost.exe", "--help")).code == 0
    assert not host.files.exists("C:\\hpc"), "the image's files are bound into this container only"


async def test_the_nodes_disk_is_shared_and_volumes_appear_at_their_path(host: Machine) -> None:
    where = hpc(host)
    volume = Directory(fold=True)
    volume.put("text.txt", File(b"hi"))
    where.mount_volume("/etc/configmap", volume)
    assert (await run(where, "cmd", "/c", "type", "C:\\etc\\configmap\\text.txt")).out == "hi"
    assert (await run(where, "cmd", "/c", "type", "C:\\hpc\\etc\\configmap\\text.txt")).out == "hi"
    await run(where, "powershell", "-c", "Set-content", "-Path", "/on-the-node.txt", "-V", "test")
    assert host.files.read("C:\\on-the-node.txt") == b"test\r\n"
    assert (await run(hpc(host), "powershell", "-c", "ls", "/on-the-node.txt")).code == 0


async def test_without_the_bind_filter_every_container_has_its_own_directory() -> None:
    host = Machine("win-old", "windows", clock=machine().clock, programs=machine().programs, containerd="1.6.33")
    where = hpc(host)
    volume = Directory(fold=True)
    volume.put("f", File(b"hi"))
    where.mount_volume("C:\\vol", volume)
    assert where.mount_point == f"C:\\C\\{where.id}", "fact 1.4"
    assert host.files.exists(f"{where.mount_point}\\agnhost")
    assert not where.files.exists("C:\\vol\\f")
    assert where.files.read(f"{where.mount_point}\\vol\\f") == b"hi"


async def test_it_is_the_node(host: Machine) -> None:
    script = "& {if ('%s' -ine \"$(hostname)\") { exit -1 }}" % host.name  # noqa: UP031  (braces all over)
    assert (await run(hpc(host), "powershell.exe", "-Command", script)).code == 0
    assert (await run(hpc(host), "cmd", "/C", "whoami")).out == "nt authority\\system\r\n"
    service = hpc(host, "NT AUTHORITY\\NetworkService")
    assert (await run(service, "whoami")).out == "nt authority\\network service\r\n"


async def test_fact_p4_privileged_work(host: Machine) -> None:
    where = hpc(host)
    script = (
        "(Get-CimInstance Win32_OperatingSystem).BuildNumber; (Get-Service kubelet,containerd).Status; "
        "(Get-ItemProperty 'HKLM:\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion').CurrentBuild; "
        "(Get-WinEvent -LogName System -MaxEvents 1).Id -gt 0"
    )
    assert (await powershell(where, script)).lines == ["20348", "Running", "Running", "20348", "True"]
    assert (await run(where, "cmd", "/C", "net", "localgroup", "opr-1", "/add")).code == 0
    assert "opr-1" in host.windows_host.groups
    ordinary = container("servercore", on=host)
    assert (await run(ordinary, "net", "localgroup", "opr-2", "/add")).code == 0
    assert "opr-2" not in host.windows_host.groups, "a container changes its own state only"
    limited = hpc(host, "NT AUTHORITY\\Local service")
    assert "Access is denied." in (await run(limited, "net", "localgroup", "opr-3", "/add")).err


async def test_fact_p2_and_w1_the_nodes_services(host: Machine) -> None:
    where = hpc(host)
    assert (await powershell(where, "(Get-HnsNetwork | ? Name -eq Calico).Type")).lines == ["Overlay"]
    assert "Name : Calico" in (await run(where, "hnsdiag", "list", "networks")).out
    script = "(Get-Process MsMpEng).Count; (Get-MpPreference).ExclusionProcess -match 'containerd.exe'"
    assert (await powershell(where, script)).lines == ["1", "C:\\Program Files\\containerd\\containerd.exe"]
    host.windows_host.defender.running = False
    assert (await powershell(where, "Get-Process MsMpEng")).code == 1


_DECLARE = (
    "Add-Type -Namespace Hcn -Name Native -MemberDefinition '"
    '[DllImport("computenetwork.dll")] public static extern int HcnCreateNamespace('
    "ref Guid id, string settings, out IntPtr handle, out string error); "
    '[DllImport("computenetwork.dll")] public static extern int HcnDeleteNamespace(ref Guid id, out string error);'
    "'; $id=[guid]'0c6e2a3e-8f1d-4c39-9a55-2f5d4d0c1f11'; $h=0; $e=''; "
)


async def test_fact_p2_a_network_namespace_is_made_seen_and_removed_by_native_functions(host: Machine) -> None:
    script = _DECLARE + (
        "[Hcn.Native]::HcnCreateNamespace([ref]$id, '{}', [ref]$h, [ref]$e); @(Get-HnsNamespace -Id $id).Count; "
        "[Hcn.Native]::HcnDeleteNamespace([ref]$id, [ref]$e); @(Get-HnsNamespace -Id $id).Count"
    )
    encoded = base64.b64encode(script.encode("utf-16-le")).decode()
    answer = await run(hpc(host), "powershell.exe", "-NoProfile", "-EncodedCommand", encoded)
    assert answer.lines == ["0", "1", "0", "0"], answer.err
    limited = await run(hpc(host, "NT AUTHORITY\\NetworkService"), "powershell.exe", "-EncodedCommand", encoded)
    assert limited.lines[0] == "-2147024891"


async def test_upstreams_reboot_script_keeps_its_notes_across_the_reboot(host: Machine) -> None:
    asked: list[object] = []
    host.on_power = asked.append
    note = (
        "$os = Get-WmiObject -Class win32_operatingsystem;",
        '[Environment]::SetEnvironmentVariable("TMP_BOOT_DATE", $os.LastBootUpTime, "Machine");',
        "shutdown.exe -r -t 30",
    )
    assert (await run(hpc(host), "powershell.exe", "-Command", *note)).code == 0
    assert asked
    host.restart()
    host.booted_at += 60
    check = (
        "$os = Get-WmiObject -Class win32_operatingsystem;",
        '$lastBootTime = [Environment]::GetEnvironmentVariable("TMP_BOOT_DATE", "Machine");',
        "$timeInterval = $os.ConvertToDateTime($os.LastBootUpTime) -  $os.ConvertToDateTime($lastBootTime);",
        "if ( $timeInterval.TotalSeconds -le 0 ) {exit -1};",
        '[Environment]::SetEnvironmentVariable("TMP_BOOT_DATE", $null, "Machine");',
    )
    assert (await run(hpc(host), "powershell.exe", "-Command", *check)).code == 0
    assert host.windows_host.machine_environment == {}


async def test_a_local_group_is_a_user_name_and_the_runtime_makes_a_member_of_it(host: Machine) -> None:
    with pytest.raises(UnknownUser):
        hpc(host, "opr-group")
    assert (await run(hpc(host), "cmd", "/C", "net", "localgroup", "opr-group", "/add")).code == 0
    member = hpc(host, "OPR-Group")
    assert member.identity.qualified == f"{host.name}\\{member.id[:20]}", "an account of the machine, not NT AUTHORITY"
    assert "opr-group" in member.identity.groups
    assert not member.identity.administrator
    assert hpc(host, "Administrators").identity.administrator

"""Containers: how processes start, stop and fail to start, per OS."""

from __future__ import annotations

import pytest

from sandbox.helpers.containers import cmd, container, machine, run
from winready_sandbox.machine import images
from winready_sandbox.machine.container import Container
from winready_sandbox.machine.errors import ExecError
from winready_sandbox.machine.process import CONTROL_C_EXIT
from winready_sandbox.machine.users import UnknownUser
from winready_sandbox.streams import Pipe


async def test_fact_1_3_a_missing_executable_is_an_error_of_the_exec_and_has_no_exit_code() -> None:
    with pytest.raises(ExecError) as windows:
        container().spawn(["nosuch"])
    assert windows.value.on_exec("c1", "e1") == (
        'failed to exec in container: failed to start exec "e1": '
        "hcs::System::CreateProcess c1: The system cannot find the file specified.: unknown"
    )
    with pytest.raises(ExecError) as linux:
        container(os="linux").spawn(["nosuch"])
    assert 'exec: "nosuch": executable file not found in $PATH' in linux.value.on_start("c1")


async def test_fact_1_2_agnhost_has_no_suffix_and_runs_by_its_path_only() -> None:
    where = container()
    assert (await run(where, "/agnhost", "--help")).code == 0
    assert (await cmd(where, "C:\\agnhost --help")).code == 1
    with pytest.raises(ExecError):
        where.spawn(["agnhost", "--help"])


async def test_fact_1_3_plain_argv_keeps_special_characters_and_cmd_does_not() -> None:
    where = container()
    assert (await run(where, "/bin/echo", "a&b")).out == "a&b\n"
    assert "'b' is not recognized" in (await cmd(where, "echo a&b")).err


@pytest.mark.parametrize(
    ("image", "user", "expected"),
    [
        ("agnhost", "", "ContainerAdministrator"),
        ("pause", "", "ContainerUser"),
        ("agnhost", "ContainerUser", "ContainerUser"),
        ("pause", "containeradministrator", "ContainerAdministrator"),
    ],
)
async def test_fact_1_2_users(image: str, user: str, expected: str) -> None:
    answer = await run(container(image, user=user), "cmd", "/S", "/C", "echo %username%")
    assert answer.out == f"{expected}\r\n"


def test_fact_a4_an_unknown_user_cannot_start_anything() -> None:
    with pytest.raises(UnknownUser):
        container(user="opr-nobody")
    with pytest.raises(UnknownUser):
        container(host_process=True, user="nt authority\\SYSTEM")


async def test_fact_1_2_the_netbios_name_is_cut_at_15() -> None:
    where = container(hostname="a-rather-long-pod-name")
    assert (await cmd(where, "echo %COMPUTERNAME%")).out == "A-RATHER-LONG-P\r\n"
    assert (await run(where, "hostname")).out == "a-rather-long-pod-name\n"


async def stopped(where: Container, *argv: str, grace: float = 1) -> int:
    where.spawn(list(argv))
    return await where.stop(grace)


async def test_windows_ends_what_does_not_handle_the_shutdown_event() -> None:
    assert await stopped(container("pause"), "/pause.exe") == 0
    assert await stopped(container(), "/bin/sleep", "600") == CONTROL_C_EXIT
    assert await stopped(container(), "powershell.exe", "-Command", "Start-Sleep 600") == CONTROL_C_EXIT


async def test_linux_kills_a_first_process_without_handler_only_after_the_grace() -> None:
    assert await stopped(container("busybox", "linux"), "sleep", "600") == 137
    assert await stopped(container("busybox", "linux"), "sh", "-c", "sleep 600") == 137


async def test_sh_traps_the_stop_signal() -> None:
    where = container("busybox", "linux")
    process = where.spawn(["sh", "-c", "trap 'echo bye; exit 3' TERM; echo up; while true; do sleep 0.1; done"])
    assert await process.stdout.readline() == b"up\n"
    assert await where.stop(60) == 3
    assert await process.stdout.read_all() == b"bye\n"


async def test_the_first_process_takes_the_others_with_it() -> None:
    where = container("busybox", "linux")
    feed = Pipe()
    first = where.spawn(["sh", "-c", "cat; exit 4"], stdin=feed)
    other = where.spawn(["sleep", "600"])
    feed.close()
    assert await first.wait() == 4
    assert await other.wait() == 137
    assert where.processes == {}


async def test_exec_runs_with_the_containers_environment_and_directory() -> None:
    where = container(env={"MINE": "42"})
    assert (await cmd(where, "echo %MINE% %CD%")).out == "42 C:\\\r\n"
    linux = container("busybox", "linux", env={"MINE": "42"})
    assert (await run(linux, "printenv", "MINE", "HOSTNAME")).out == "42\npod-1\n"


async def test_a_windows_pod_that_is_linux_answers_like_linux() -> None:
    """What the LCOW fault does: the caller decides what a container is."""
    host = machine()
    disguised = Container(host, images.resolve("registry.k8s.io/e2e-test-images/agnhost:2.63.0", "linux"))
    assert (await run(disguised, "uname", "-s")).out == "Linux\n"
    with pytest.raises(ExecError):
        disguised.spawn(["cmd", "/c", "ver"])

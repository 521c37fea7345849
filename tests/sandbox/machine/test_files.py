"""File systems: the rules of each OS, sharing between containers, volumes."""

from __future__ import annotations

import pytest

from sandbox.helpers.containers import cmd, container, machine, run, sh
from winready_sandbox.machine import errors
from winready_sandbox.machine.files import OPEN_ACL, PROTECTED_ACL, FileSystem
from winready_sandbox.machine.handles import Handle
from winready_sandbox.machine.tree import Directory, File, Symlink
from winready_sandbox.machine.users import CONTAINER_ADMINISTRATOR, CONTAINER_USER


def windows() -> FileSystem:
    root = Directory(fold=True)
    root.put("C:", Directory(fold=True))
    return FileSystem("windows", root)


def test_windows_names_ignore_case_and_keep_it() -> None:
    files = windows()
    files.write("C:\\Data.TXT", b"x")
    assert files.read("c:/data.txt") == b"x"
    files.write("C:\\DATA.txt", b"y")
    assert [name for name, _ in files.list("C:\\")] == ["Data.TXT"]


def test_linux_names_do_not_ignore_case() -> None:
    files = FileSystem("linux", Directory())
    files.write("/a", b"1")
    assert not files.exists("/A")


def test_a_rooted_path_without_drive_means_drive_c() -> None:
    files = windows()
    files.mkdir("\\var\\run", parents=True)
    files.write("/var/run/token", b"t")
    assert files.read("C:\\var\\run\\token") == b"t"


def test_windows_tells_a_missing_file_from_a_missing_directory() -> None:
    files = windows()
    with pytest.raises(errors.NotFound) as missing:
        files.read("C:\\nope")
    assert missing.value.windows == "The system cannot find the file specified."
    with pytest.raises(errors.PathNotFound) as no_way:
        files.read("C:\\no\\way")
    assert no_way.value.windows == "The system cannot find the path specified."


def test_fact_1_7_a_writer_excludes_other_writers_but_not_readers_on_windows() -> None:
    files = windows()
    writing = files.open("C:\\log", access="a", share="r")
    with pytest.raises(errors.SharingViolation) as refused:
        files.open("C:\\log", access="a", share="r")
    assert "being used by another process" in refused.value.windows
    assert files.read("C:\\log") == b""
    with pytest.raises(errors.SharingViolation):
        files.remove("C:\\log")
    assert isinstance(writing, Handle)
    writing.close()
    files.remove("C:\\log")


def test_linux_does_not_lock_files() -> None:
    files = FileSystem("linux", Directory())
    one, two = files.open("/log", access="a"), files.open("/log", access="a")
    assert isinstance(one, Handle)
    assert isinstance(two, Handle)
    one.write(b"1")
    two.write(b"2")
    assert files.read("/log") == b"12"


async def test_containers_share_an_image_and_never_see_each_others_writes() -> None:
    host = machine()
    one, two = container(on=host), container(on=host)
    await cmd(one, "echo mine>C:\\uploads\\f.txt")
    await cmd(one, "del C:\\agnhost-2")
    assert one.files.exists("C:\\uploads\\f.txt")
    assert not one.files.exists("C:\\agnhost-2")
    assert not two.files.exists("C:\\uploads\\f.txt")
    assert two.files.exists("C:\\agnhost-2")
    assert one.image.root is two.image.root


async def test_a_volume_is_one_directory_for_all_who_mount_it() -> None:
    host = machine()
    one, two = container("pause", on=host), container("pause", on=host)
    volume = Directory(fold=True, acl=OPEN_ACL)
    one.mount_volume("C:\\share", volume)
    two.mount_volume("/share", volume, read_only=True)
    assert (await cmd(one, "echo MARK>C:\\share\\f")).code == 0
    assert (await cmd(two, "type C:\\share\\f")).out == "MARK\r\n"
    refused = await cmd(two, "echo no>C:\\share\\f")
    assert (refused.code, refused.err) == (1, "Access is denied.\r\n")
    assert "share" in (await cmd(one, "dir /b C:\\")).lines


async def test_a_read_only_mount_on_linux_says_so() -> None:
    where = container(os="linux")
    where.files.mount("/config", Directory(), read_only=True)
    refused = await sh(where, "echo test > /config/f")
    assert refused.err == "/bin/sh: can't create /config/f: Read-only file system\n"


def test_a_directorys_content_is_replaced_at_once() -> None:
    files = windows()
    volume = Directory(fold=True)
    files.mount("C:\\cm", volume)
    for version in (b"1", b"2"):
        content = Directory(fold=True)
        content.put(f"..{version.decode()}", Directory(fold=True))
        content.make(f"..{version.decode()}/key", File(version))
        content.put("..data", Symlink(f"..{version.decode()}"))
        content.put("key", Symlink("..data\\key"))
        volume.replace(content)
        assert files.read("C:\\cm\\key") == version


def test_fact_1_7_projected_files_are_read_by_all_and_written_by_administrators() -> None:
    files = windows()
    volume = Directory(fold=True, acl=PROTECTED_ACL)
    volume.put("key", File(b"v"))
    files.mount("C:\\secret", volume)
    assert files.read("C:\\secret\\key", who=CONTAINER_USER) == b"v"
    with pytest.raises(errors.AccessDenied):
        files.write("C:\\secret\\key", b"x", who=CONTAINER_USER)
    files.write("C:\\secret\\key", b"x", who=CONTAINER_ADMINISTRATOR)


async def test_fact_1_7_container_user_may_write_below_c_but_not_into_it() -> None:
    where = container("pause")
    assert (await cmd(where, "echo x>C:\\f.txt")).err == "Access is denied.\r\n"
    assert (await cmd(where, "echo x>C:\\Windows\\System32\\f.txt")).err == "Access is denied.\r\n"
    assert (await cmd(where, "mkdir C:\\own&&echo x>C:\\own\\f.txt")).code == 0


async def test_linux_modes_decide_for_everybody_but_root() -> None:
    where = container("busybox", "linux", user="1000")
    assert (await sh(where, "echo x > /etc/f")).err == "/bin/sh: can't create /etc/f: Permission denied\n"
    assert (await sh(where, "echo x > /tmp/f && cat /tmp/f")).out == "x\n"
    root = container("busybox", "linux")
    assert (await sh(root, "touch /s && chmod 600 /s && stat -c %a /s")).out == "600\n"


async def test_links_are_followed_and_circles_noticed() -> None:
    where = container("busybox", "linux")
    assert (await sh(where, "mkdir /d; echo v > /d/f; ln -s d /l; cat /l/f; cat /l/../d/f")).out == "v\nv\n"
    assert "Too many levels" in (await sh(where, "ln -s /x /y; ln -s /y /x; cat /x")).err


async def test_a_program_copied_under_another_name_still_runs() -> None:
    where = container()
    copied = await cmd(where, "copy C:\\bin\\uname.exe C:\\other.exe")
    assert copied.out == "        1 file(s) copied.\r\n"
    assert "applet not found" in (await run(where, "C:\\other.exe")).err


def test_an_empty_directory_stays_the_same_one() -> None:
    files = FileSystem("windows", Directory(fold=True))
    files.mkdir("C:\\a\\b", parents=True)
    assert files.change("C:\\a\\b") is files.change("C:\\a\\b") is files.node("C:\\a\\b")

"""sh and the tools of busybox, on both systems."""

from __future__ import annotations

import pytest

from sandbox.helpers.containers import container, run, sh
from winready_sandbox.machine.errors import OS


@pytest.mark.parametrize("os", ["linux", "windows"])
@pytest.mark.parametrize(
    ("script", "code", "out"),
    [
        ("echo hi", 0, "hi\n"),
        ("exit 42", 42, ""),
        ('printf $(echo web-0); if [ "$(echo a)" = "a" ]; then exit 0; else exit 1; fi', 0, "web-0"),
        ("for i in `seq 1 3`; do echo $i; done", 0, "1\n2\n3\n"),
        ('check="$(echo yes)" && test -n "$check" && echo OK > /tmp/f; cat /tmp/f', 0, "OK\n"),
        ("if test -f /nope; then echo y; elif test 1 -lt 2; then echo e; else echo n; fi", 0, "e\n"),
        ("i=0; while test $i -lt 3; do i=$((i+1)); done; echo $i", 0, "3\n"),
        ("case abc in x) echo X;; a*|b*) echo A;; *) echo other;; esac", 0, "A\n"),
        ("f() { echo f:$1; }; f 5", 0, "f:5\n"),
        ("(exit 3); echo $?; ! true; echo $?", 0, "3\n1\n"),
        ("cat <<EOF\nhi ${X:-there}\nEOF", 0, "hi there\n"),
        ("x='1 2'; for v in $x \"$x\"; do echo [$v]; done", 0, "[1]\n[2]\n[1 2]\n"),
        ("trap 'echo bye' EXIT; echo x", 0, "x\nbye\n"),
        ("x=a.b.c; echo ${x%.*} ${x%%.*} ${x#*.} ${x##*.} ${#x}", 0, "a.b a b.c c 5\n"),
        ("echo a b | cat", 0, "a b\n"),
        ("mkdir /a && mkdir /a/b && touch /a/b/c && find /a", 0, "/a\n/a/b\n/a/b/c\n"),
        ("mv -v /localhost.crt /tmp/ && ls /tmp", 0, "'/localhost.crt' -> '/tmp/localhost.crt'\nlocalhost.crt\n"),
        ("dd if=/dev/zero of=/tmp/1 bs=1 count=1 conv=fsync 2>/dev/null; ls -d /tmp/1", 0, "/tmp/1\n"),
        ("/bin/echo -n DONE; /bin/false", 1, "DONE"),
        ("A=1 env | grep '^A='", 0, "A=1\n"),
        ("printf 'a\\nb\\n\\nc\\n' > /t; wc -l /t | awk {'print $1'}; grep -v '^\\s*$' /t | head -n 2", 0, "4\na\nb\n"),
        ("seq 1 12 > /t; tail /t | head -n 1; echo x | grep y", 1, "3\n"),
        ("A=2 sh -c 'echo $A $((0x10 + 2)) $((7 / 2 % 2))'", 0, "2 18 1\n"),
    ],
)
async def test_scripts(os: OS, script: str, code: int, out: str) -> None:
    answer = await sh(container(os=os), script)
    assert (answer.code, answer.out) == (code, out), answer.err


async def test_failures_have_busyboxs_words_and_codes() -> None:
    where = container("busybox", "linux")
    assert (await sh(where, "nosuch")).err == "/bin/sh: nosuch: not found\n"
    assert (await sh(where, "nosuch")).code == 127
    assert (await sh(where, "echo 'echo hi' > /s; /s")).code == 126
    assert (await sh(where, "echo x > /no/file")).err == "/bin/sh: can't create /no/file: nonexistent directory\n"
    assert (await sh(where, "cat /nope")).err == "cat: can't open '/nope': No such file or directory\n"
    assert (await sh(where, "ls /nope")).err == "ls: /nope: No such file or directory\n"
    assert (await sh(where, "if true; then echo x")).code == 2


async def test_what_a_linux_container_may_and_what_its_kernel_says() -> None:
    where = container("busybox", "linux", cpu_limit=0.5, memory_limit=2**26)
    refused = await sh(where, "ip link add dummy0 type dummy")
    assert (refused.code, refused.err) == (2, "ip: RTNETLINK answers: Operation not permitted\n")
    where.privileged = True
    assert (await sh(where, "ip link add dummy0 type dummy")).code == 0
    assert (await sh(where, "sysctl kernel.shm_rmid_forced")).out == "kernel.shm_rmid_forced = 0\n"
    assert "cgroup on /sys/fs/cgroup type cgroup2" in (await sh(where, "mount -t cgroup2")).out
    where.resize(0.25, 1.5, 2**27)
    shown = await sh(where, "cd /sys/fs/cgroup; cat cpu.weight cpu.max memory.max")
    assert shown.out == f"10\n150000 100000\n{2**27}\n"


async def test_a_program_with_the_set_user_id_bit_runs_as_its_owner_where_it_may() -> None:
    where = container("registry.k8s.io/e2e-test-images/nonewprivs:1.4", "linux", user="1000")
    assert (await run(where, "nnp")).out == "Effective uid: 0\n"
    where.no_new_privileges = True
    assert (await run(where, "nnp")).out == "Effective uid: 1000\n"


async def test_upstream_runs_its_scripts_with_a_trace() -> None:
    answer = await run(container("busybox", "linux"), "/bin/sh", "-x", "-c", "echo a")
    assert (answer.out, answer.err) == ("a\n", "+ echo a\n")


async def test_a_script_file_with_an_interpreter_line() -> None:
    where = container("busybox", "linux")
    where.files.write("/t", b"#!/bin/sh\necho from $1\n")
    assert (await sh(where, "chmod 755 /t; /t here")).out == "from here\n"


async def test_the_system_tells_what_it_is() -> None:
    assert (await run(container("busybox", "linux"), "uname", "-s")).out == "Linux\n"
    assert (await run(container(), "/bin/uname.exe", "-o")).out == "MS/Windows\n"
    assert (await run(container("busybox", "linux", user="1000:2000"), "id")).out == "uid=1000 gid=2000\n"
    assert (await sh(container(), "id -un")).out == "ContainerAdministrator\n"


async def test_fact_1_2_whoami_of_agnhost_is_busyboxs_and_not_that_of_windows() -> None:
    assert (await run(container(), "whoami")).out == "ContainerAdministrator\n"


async def test_what_one_writes_to_the_first_process_shows_in_its_log() -> None:
    where = container("busybox", "linux")
    main = where.spawn(["sleep", "600"])
    assert (await sh(where, "echo to the log > /proc/1/fd/1")).code == 0
    assert await main.stdout.readline() == b"to the log\n"
    await main.kill()

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
        ("for i in `seq 1 3`; do echo $i; done", 0, "1\n2\n3\n"),
        ('check="$(echo yes)" && test -n "$check" && echo OK > /tmp/f; cat /tmp/f', 0, "OK\n"),
        ("if [ -f /nope ]; then echo y; elif [ 1 -lt 2 ]; then echo e; else echo n; fi", 0, "e\n"),
        ("i=0; while true; do i=$((i+1)); [ $i -ge 3 ] && break; done; echo $i", 0, "3\n"),
        ("case abc in x) echo X;; a*|b*) echo A;; *) echo other;; esac", 0, "A\n"),
        ("f() { local x=$1; echo f:$x; return 3; }; f 5; echo $?", 0, "f:5\n3\n"),
        ("echo a b c | tr a-z A-Z | cut -d' ' -f2", 0, "B\n"),
        ("(exit 3); echo $?; ! true; echo $?", 0, "3\n1\n"),
        ("cat <<EOF\nhi ${X:-there}\nEOF", 0, "hi there\n"),
        ("x='1 2'; for v in $x \"$x\"; do echo [$v]; done", 0, "[1]\n[2]\n[1 2]\n"),
        ("sleep 0.1 & wait $!; echo done", 0, "done\n"),
        ('[[ "ab" == a* ]] && echo OK || echo no', 0, "OK\n"),
        ("trap 'echo bye' EXIT; echo x", 0, "x\nbye\n"),
        ("set -e; false; echo never", 1, ""),
        ("x=a.b.c; echo ${x%.*} ${x%%.*} ${x#*.} ${x##*.} ${#x}", 0, "a.b a b.c c 5\n"),
        ("printf '%s-%03d\\n' a 1 b 22", 0, "a-001\nb-022\n"),
        ("printf 'b\\na\\nb\\n' | sort | uniq -c | sed 's/^ *//'", 0, "1 a\n2 b\n"),
        ("yes | head -2", 0, "y\ny\n"),
        ("echo test | base64 | base64 -d", 0, "test\n"),
        ("mkdir -p /a/b && touch /a/b/c && find /a -type f", 0, "/a/b/c\n"),
        ("mkdir -p /a/b && touch /a/b/c && find /a", 0, "/a\n/a/b\n/a/b/c\n"),
        ("mv -v /localhost.crt /tmp/ && ls /tmp", 0, "'/localhost.crt' -> '/tmp/localhost.crt'\nlocalhost.crt\n"),
        ("echo one two | xargs -n1 echo got", 0, "got one\ngot two\n"),
        ("printf 'x=1\\ny=2\\n' | grep -c =; echo abc | grep -q z", 1, "2\n"),
        ("echo a > /tmp/1; echo b >> /tmp/1; wc -l < /tmp/1", 0, "2\n"),
        ('set -- p q; echo $# "$@"; shift; echo $1', 0, "2 p q\nq\n"),
        ("export A=1; sh -c 'echo $A'; A=2 sh -c 'echo $A'", 0, "1\n2\n"),
        ("eval 'echo $((0x10 + 2)) $((7 / 2 % 2))'", 0, "18 1\n"),
        ("echo 1.2.3 | awk -F. '{print $1\"-\"$2\".x\"}'; echo 'a b' | awk {'print $2, NF'}", 0, "1-2.x\nb 2\n"),
        ("timeout 1 sleep 60; echo $?", 0, "143\n"),
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
    assert "parameter not set" in (await sh(where, "set -u; echo $NOPE")).err


async def test_a_script_file_with_an_interpreter_line() -> None:
    where = container("busybox", "linux")
    made = await sh(where, "printf '#!/bin/sh\\necho from $1\\n' > /t; chmod +x /t; /t here")
    assert made.out == "from here\n"


async def test_the_system_tells_what_it_is() -> None:
    assert (await run(container("busybox", "linux"), "uname", "-s")).out == "Linux\n"
    assert (await run(container(), "/bin/uname.exe", "-o")).out == "MS/Windows\n"
    assert (await run(container("busybox", "linux", user="1000:2000"), "id")).out == "uid=1000 gid=2000\n"
    assert (await sh(container(), "id -un")).out == "ContainerAdministrator\n"


async def test_what_one_writes_to_the_first_process_shows_in_its_log() -> None:
    where = container("busybox", "linux")
    main = where.spawn(["sleep", "600"])
    assert (await sh(where, "echo to the log > /proc/1/fd/1")).code == 0
    assert await main.stdout.readline() == b"to the log\n"
    await main.kill()


async def test_tail_follows_a_file() -> None:
    where = container("busybox", "linux")
    await sh(where, "echo old > /log")
    following = where.spawn(["tail", "-f", "/log"])
    assert await following.stdout.readline() == b"old\n"
    await sh(where, "echo new >> /log")
    assert await following.stdout.readline() == b"new\n"
    await following.kill()

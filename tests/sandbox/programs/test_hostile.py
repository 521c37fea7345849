"""Programs that want everything get what a machine has, and everybody else goes on meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from sandbox.helpers.containers import container, run
from winready_sandbox.machine.container import Container
from winready_sandbox.machine.process import KILLED, SEGMENTATION_FAULT, STACK_OVERFLOW, Process
from winready_sandbox.programs.holding import MOST

pytestmark = pytest.mark.virtual_time
SECONDS = 30
"""Virtual seconds that each of them gets."""
NO_MEMORY = "OutOfMemoryException"
Ends = dict[str, tuple[int | str, str]]
"""Exit code, or that it goes on; and something that it says."""
COMPUTING = "it goes on"
DEEP = 3000

POWERSHELL: Ends = {
    "$s = 'x'; while ($true) { $s += $s }": (1, NO_MEMORY),
    '$s = "x"; while ($true) { $s = "$s$s" }': (1, NO_MEMORY),
    "@(1) * 1e9": (1, NO_MEMORY),
    "'x' * 1000000000": (1, NO_MEMORY),
    "'x' * 1e12": (1, "too large or too small for an Int32"),
    "[bigint]::Pow(10, 1000000000)": (1, "Unable to find type"),
    "$x = 3; foreach ($i in 1..64) { $x = $x * $x }; $x": (0, "Infinity"),
    "$a = 0..2147483646; $a[0..99999999]": (1, NO_MEMORY),
    "0..2147483646 | ForEach-Object { $_ }": (COMPUTING, ""),
    "$b = New-Object byte[] 1000000000; foreach ($x in $b) { 1 }": (1, NO_MEMORY),
    '$a = @(1); foreach ($i in 1..40) { $a = @($a, $a) }; "$a"': (1, NO_MEMORY),
    "$a = @(1); foreach ($i in 1..40) { $a = @($a, $a) }; $a": (1, NO_MEMORY),
    "$h = @{}; foreach ($i in 1..20) { $h[$i] = 'x' * 4mb }": (1, NO_MEMORY),
    "& { while ($true) { 'x' * 4mb } } | Out-Null": (1, NO_MEMORY),
    "& { while ($true) { 'x' * 4mb } } > c:\\out.txt": (1, "not enough space on the disk"),
    f"$x = @({','.join(['(' + chr(39) + 'x' + chr(39) + '*8000000)'] * 30)})": (1, NO_MEMORY),
    "$env:A = 'x' * 1mb": (1, "Environment variable name or value is too long"),
    "function f { f }; f": (1, "CallDepthOverflow"),
    "try { 'x' * 1e9 } catch { 'caught' }": (0, "caught"),
    f"{'(' * DEEP}1{')' * DEEP}": (1, "ParserError"),
    "echo a$(" * 60 + ")" * 60: (1, "ParserError"),
    "${": (1, "ParserError"),
    "9" * 5000: (0, "Infinity"),
    "while ($true) {}": (COMPUTING, ""),
    "while ($true) { $x = 1 }": (COMPUTING, ""),
    "1..100000000": (COMPUTING, "\r\n9\r\n"),
    "('a' * 60 + '!') -match '^(a|aa)+$'": (0, "False"),
    "('a' * 60) -match '(x+x+)+y'": (0, "False"),
    "switch -regex ('a' * 60) { '(a+)+b' { 'yes' } default { 'no' } }": (0, "no"),
    "('a' * 60) -match '(a*)*\\1b'": (COMPUTING, ""),
    "'a' -match '((a{1000}){1000}){1000}'": (1, "parsing"),
    "'a' -match '('": (1, "Not enough )'s."),
    "'node-17' -match '(?<os>\\w+)-(\\d+)'; $Matches.os; $Matches[1]": (0, "node\r\n17"),
}
SH: Ends = {
    "a=x; while true; do a=$a$a; done": (KILLED, ""),
    "seq 100000000": (COMPUTING, "\n9\n"),
    "seq 100000000 > /tmp/x": (COMPUTING, ""),
    "a=$(seq 100000000)": (0, ""),
    "for i in $(seq 100000); do true; done; echo over": (COMPUTING, ""),
    "printf %999999999d": (1, "printf"),
    "dd if=/dev/zero of=/tmp/x bs=1M count=100000": (1, "No space left on device"),
    "dd if=/dev/zero bs=100G count=1": (1, "out of memory"),
    "dd if=/dev/zero bs=1M count=9999999 | cat > /tmp/x": (1, "No space left on device"),
    "cat /dev/zero > /dev/null": (0, ""),
    "while true; do true; done": (COMPUTING, ""),
    "f() { f; }; f": (SEGMENTATION_FAULT, ""),
    "f() { f | f; }; f": (COMPUTING, "can't fork"),
    "f() { f & f; }; f": (2, "can't fork"),
    "while true; do sleep 1000 & done": (2, "can't fork"),
    f"{'(' * DEEP}true{')' * DEEP}": (SEGMENTATION_FAULT, ""),
    "echo $((9223372036854775807 + 1))": (0, "-9223372036854775808"),
    f"echo $(({'(' * DEEP}1{')' * DEEP}))": (SEGMENTATION_FAULT, ""),
    "a=$(seq 40000); echo ${a%%*y*}": (COMPUTING, ""),
    "seq 1 0 5": (1, "increment is zero"),
    "cat <&7": (1, "Bad file descriptor"),
    "yes": (127, "not found"),
    "tail -f /etc/passwd": (COMPUTING, "root"),
    "head -c 1000000000 /dev/zero": (1, "unrecognized option: c"),
    "grep -E '(a+)+b' /etc/passwd": (1, "unrecognized option: E"),
    f"echo {'a' * 400} | grep '{'a*' * 40}b'": (1, ""),
    "seq 100000000 | grep x": (COMPUTING, ""),
    "seq 100000000 | awk '{print $99999999999999999999}'": (COMPUTING, ""),
    "head -n 99999999999999999999 /etc/passwd": (0, "root"),
}
CMD: Ends = {
    "for /L %i in (1,0,2) do @echo x": (COMPUTING, "x\r\n"),
    "for /L %i in (1,1,40) do @(type C:\\x >> C:\\y & type C:\\y >> C:\\x)": (1, "not enough space on the disk"),
    "for /L %i in (x,y,z) do @echo x": (COMPUTING, "x\r\n"),
    "(" * DEEP: (STACK_OVERFLOW, ""),
    "exit 99999999999999999999": (2**31 - 1, ""),
    "cmd /c " * 5000 + "echo x": (1, "The command line is too long."),
    "fsutil file createnew C:\\a 9999999999": (1, "not recognized"),
}


async def ended(process: Process, where: Container) -> tuple[int | str, str]:
    """How a process is after its time, with the beginning of what it said; and others work beside it."""
    said = [asyncio.create_task(pipe.read_head(2000)) for pipe in (process.stdout, process.stderr)]
    code: int | str = COMPUTING
    for _ in range(SECONDS):
        neighbour = await run(where, *(("cmd", "/c", "echo here") if where.os == "windows" else ("echo", "here")))
        assert neighbour.out.split() == ["here"]
        assert where.machine.values.used <= MOST
        await asyncio.sleep(1)
        if not process.running:
            code = process.exit_code or 0
            break
    await process.kill()
    return code, b"".join([await each for each in said]).decode()


async def expect(where: Container, argv: list[str], wanted: tuple[int | str, str]) -> None:
    """It ends as it should, and nothing is left of it."""
    process = where.spawn(argv)
    where.main = None
    code, said = await ended(process, where)
    assert (code, wanted[1] in said) == (wanted[0], True), said[-500:]
    assert where.machine.values.used == 0


@pytest.mark.parametrize("script", POWERSHELL, ids=lambda script: script[:40])
async def test_powershell(script: str) -> None:
    await expect(container("servercore"), ["powershell", "-Command", script], POWERSHELL[script])


@pytest.mark.parametrize("script", SH, ids=lambda script: script[:40])
async def test_sh(script: str) -> None:
    await expect(container("busybox", "linux"), ["/bin/sh", "-c", script], SH[script])


@pytest.mark.parametrize("line", CMD, ids=lambda line: line[:40])
async def test_cmd(line: str) -> None:
    where = container("servercore")
    where.files.write("C:\\x", b"x" * 1000)
    await expect(where, ["cmd", "/c", line], CMD[line])


async def test_a_large_value_counts_as_memory_of_its_container() -> None:
    where = container("servercore", memory_limit=160 * 2**20)
    small = await run(where, "powershell", "-Command", "$a = @(1..4 | ForEach-Object { 'x' * 4mb }); $a.Count")
    assert small.out == "4\r\n"
    large = await run(where, "powershell", "-Command", "$a = @(1..11 | ForEach-Object { 'x' * 4mb }); $a.Count")
    assert NO_MEMORY in large.err


async def test_what_was_deleted_can_be_written_again() -> None:
    where = container("busybox", "linux")
    for _ in range(5):
        assert (await run(where, "dd", "if=/dev/zero", "of=/tmp/x", "bs=1M", "count=40")).code == 0
    assert (await run(where, "dd", "if=/dev/zero", "of=/tmp/y", "bs=1M", "count=40")).code == 1
    where.files.remove("/tmp/x")
    assert (await run(where, "dd", "if=/dev/zero", "of=/tmp/y", "bs=1M", "count=40")).code == 0


@pytest.mark.virtual_time
async def test_a_writer_waits_for_its_reader() -> None:
    where = container("busybox", "linux")
    process = where.spawn(["seq", "100000000"])
    await asyncio.sleep(100)
    waiting = len(await process.stdout.read(10**9))
    assert waiting < 3 * 2**20
    assert await process.stdout.readline() != b""
    await process.kill()


async def test_scripts_that_name_each_other_are_not_followed_for_ever() -> None:
    where = container("busybox", "linux")
    where.files.write("/a", b"#!/a\n")
    where.files.change("/a").mode = 0o755
    assert "not found" in (await run(where, "/bin/sh", "-c", "/a")).err

"""cmd.exe: quoting, operators, variables, control flow, built-ins, exit codes."""

from __future__ import annotations

import pytest

from sandbox.helpers.containers import cmd, container, run


@pytest.mark.parametrize(
    ("line", "code", "out"),
    [
        ("ver", 0, "\r\nMicrosoft Windows [Version 10.0.20348.2700]\r\n"),
        ("echo hi", 0, "hi\r\n"),
        ("echo.", 0, "\r\n"),
        ("echo", 0, "ECHO is on.\r\n"),
        ("echo a & echo b", 0, "a \r\nb\r\n"),
        ("echo a && echo b || echo c", 0, "a \r\nb \r\n"),
        ("type nope 2>nul || echo failed", 0, "failed\r\n"),
        ("type nope 2>nul && echo never", 1, ""),
        ("echo one^&two", 0, "one&two\r\n"),
        ("(echo x& echo y)>C:\\f & type C:\\f", 0, "x\r\ny\r\n"),
        ("echo a>C:\\f& echo b>>C:\\f& type C:\\f", 0, "a\r\nb\r\n"),
        ("type nope 2>&1", 1, "The system cannot find the file specified.\r\n"),
        ("echo %OS%-%NOPE%", 0, "Windows_NT-%NOPE%\r\n"),
        ("echo %OS:~0,3% %OS:NT=XX%", 0, "Win Windows_XX\r\n"),
        ("if exist C:\\Windows (echo yes) else (echo no)", 0, "yes\r\n"),
        ("if not exist C:\\nope echo none", 0, "none\r\n"),
        ("if /i ABC==abc echo same", 0, "same\r\n"),
        ("if 10 GTR 9 echo more", 0, "more\r\n"),
        ("if defined OS echo known", 0, "known\r\n"),
        ("for %i in (a b) do @echo [%i]", 0, "[a]\r\n[b]\r\n"),
        ("for /l %i in (1,2,5) do @echo %i", 0, "1\r\n3\r\n5\r\n"),
        ("mkdir C:\\a\\b & dir /b C:\\a", 0, "b\r\n"),
        ("echo hello| C:\\bin\\cat.exe", 0, "hello\r\n"),
        ("exit 5", 5, ""),
        ("exit /b -1", 4294967295, ""),
        ("cmd /c exit 3", 3, ""),
        ("cmd /c exit 3 & if errorlevel 3 echo three", 0, "three\r\n"),
    ],
)
async def test_lines(line: str, code: int, out: str) -> None:
    answer = await cmd(container(), line)
    assert (answer.code, answer.out) == (code, out), answer.err


async def test_an_unknown_command_fails_like_one() -> None:
    answer = await cmd(container(), "nosuch arg")
    assert answer.code == 1
    assert answer.err == (
        "'nosuch' is not recognized as an internal or external command,\r\noperable program or batch file.\r\n"
    )


async def test_a_line_that_makes_no_sense() -> None:
    assert (await cmd(container(), "& echo")).err == "& was unexpected at this time.\r\n"
    assert (await cmd(container(), "echo x >")).err == "The syntax of the command is incorrect.\r\n"


async def test_fact_1_3_the_upstream_way_to_write_a_file_leaves_a_blank_at_the_end() -> None:
    where = container("pause", user="ContainerAdministrator")
    written = await run(where, "cmd", "/c", "echo windows-volume-test", ">", "C:\\f")
    assert (written.code, written.out, written.err) == (0, "", "")
    assert where.files.read("C:\\f") == b"windows-volume-test \r\n"


async def test_fact_1_3_echo_before_a_redirection() -> None:
    where = container()
    await cmd(where, "echo MARK>C:\\no-blank")
    await cmd(where, "echo 1>C:\\handle-one")
    assert where.files.read("C:\\no-blank") == b"MARK\r\n"
    assert where.files.read("C:\\handle-one") == b"ECHO is on.\r\n"


async def test_fact_1_3_cmd_does_not_understand_escaped_quotes() -> None:
    assert (await cmd(container(), 'echo "quoted"')).out == '\\"quoted\\"\r\n'


async def test_quotes_around_the_whole_command_are_stripped_unless_they_name_a_program() -> None:
    where = container()
    assert (await run(where, "cmd", "/S", "/C", "echo a b")).out == "a b\r\n"
    where.files.mkdir("C:\\my dir")
    where.files.write("C:\\my dir\\uname.exe", where.files.read("C:\\bin\\uname.exe"))
    assert (await run(where, "cmd", "/c", "C:\\my dir\\uname.exe")).out == "Windows_NT\n"


async def test_without_a_command_it_reads_standard_input() -> None:
    answer = await run(container(), "cmd", stdin=b"echo hi\r\nexit 3\r\n")
    assert answer.code == 3
    assert answer.lines[0] == "Microsoft Windows [Version 10.0.20348.2700]"
    assert "hi" in answer.lines


async def test_file_commands_and_their_messages() -> None:
    where = container()
    assert (await cmd(where, "mkdir C:\\d & mkdir C:\\d")).err == "A subdirectory or file C:\\d already exists.\r\n"
    assert (await cmd(where, "echo x>C:\\d\\f & rmdir C:\\d")).err == "The directory is not empty.\r\n"
    assert (await cmd(where, "copy C:\\d\\f C:\\g & del C:\\d\\f & type C:\\g")).lines[-1] == "x "
    assert (await cmd(where, "rmdir /s /q C:\\d & if not exist C:\\d echo gone")).out == "gone\r\n"
    assert (await cmd(where, "del C:\\nope")).err == "Could Not Find C:\\nope\r\n"
    listing = await cmd(where, "dir C:\\g")
    assert " Directory of C:\\" in listing.lines
    assert "1 File(s)" in listing.out
    assert (await cmd(where, "dir C:\\nope")).err == "File Not Found\r\n"

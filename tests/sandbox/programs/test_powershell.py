"""PowerShell in containers: the language, cmdlets, honest errors, exit codes."""

from __future__ import annotations

import base64

import pytest

from sandbox.helpers.containers import container, powershell, run
from winready_sandbox.machine.errors import ExecError


@pytest.mark.parametrize(
    ("script", "code", "out"),
    [
        ("Write-Output hi; Write-Host 'Hello'", 0, ["hi", "Hello"]),
        ("1+2*3; 7/2; 10%4; 8MB", 0, ["7", "3.5", "2", "8388608"]),
        ('$x=5; "v=$x $($x+1) `$x"', 0, ["v=5 6 $x"]),
        ("exit 3", 3, []),
        ("exit -1", 4294967295, []),
        ("if (1 -eq 2) {'a'} elseif ('B' -eq 'b') {'b'} else {'c'}", 0, ["b"]),
        ('foreach($i in 1..3){$i}; for($i=0;$i -lt 2;$i++){"i$i"}', 0, ["1", "2", "3", "i0", "i1"]),
        ("$i=0; while($true){$i++; if($i -gt 3){break}}; do {$i--} until ($i -le 0); $i", 0, ["0"]),
        ("1..4 | Where-Object {$_ -gt 2} | ForEach-Object {$_*2}; 'x' * 3", 0, ["6", "8", "xxx"]),
        ("$h=@{a=1;b='two'}; $h.b; $h['A']", 0, ["two", "1"]),
        ("try { throw 'x' } catch { \"caught $_\" } finally {'f'}", 0, ["caught x", "f"]),
        ('function f($a, $b=2){ return "$a-$b" }; f 1; f -b 3 -a 4', 0, ["1-2", "4-3"]),
        ("'a=1' -match '(\\w)=(\\d)'; $Matches[2]; 'a','B' -contains 'b'", 0, ["True", "1", "True"]),
        ("switch ('p') { 'q' {'no'} 'p' {'is p'} default {'d'} }", 0, ["is p"]),
        ("-not $true; !$false; 'Ab' -like 'a*' -and $false", 0, ["False", "True", "False"]),
        ("@(1,2,3).Count; (,@(1,2)).Count; @().Length", 0, ["3", "1", "0"]),
        ("cmd /c exit 7; $LASTEXITCODE", 0, ["7"]),
        ("$null -eq $nope; $nope.Length -le 0", 0, ["True", "True"]),
        ("@{n=1}|ConvertTo-Json -Compress; Get-Service nosuch -ErrorAction SilentlyContinue", 1, ['{"n":1}']),
        ("$env:FOO='1'; cmd /c echo %FOO%", 0, ["1"]),
        ("(Get-CimInstance Win32_OperatingSystem).BuildNumber", 0, ["20348"]),
        ("$PSVersionTable.PSVersion.ToString()", 0, ["6.2.7"]),
        ("$all=@(); $all += ,(New-Object byte[] 8MB); $all.Count; $all[0].Length", 0, ["1", "8388608"]),
        ("Get-Process | Where-Object Name -eq powershell | Select-Object -ExpandProperty Name", 0, ["powershell"]),
        ("Start-Job { 1+1 } | Out-Null; (Get-Job | Wait-Job).State", 0, ["Completed"]),
        ("(Get-CimInstance Win32_OperatingSystem).LastBootUpTime.ToString('yyyy') -gt 2000", 0, ["True"]),
    ],
)
async def test_scripts(script: str, code: int, out: list[str]) -> None:
    answer = await powershell(container(), script)
    assert (answer.code, answer.lines) == (code, out), answer.err


async def test_files() -> None:
    where = container()
    await powershell(where, "Set-Content -Path C:\\a.txt -V 'test','more'")
    assert where.files.read("C:\\a.txt") == b"test\r\nmore\r\n"
    assert (await powershell(where, "(Get-Content C:\\a.txt)[1]; Test-Path C:\\nope; ls C:\\a.txt | % Name")).lines == [
        "more",
        "False",
        "a.txt",
    ]
    await powershell(where, "echo 'This is a test file.' > C:\\b.txt")
    assert where.files.read("C:\\b.txt") == b"This is a test file.\r\n"


async def test_fact_1_3_windows_powershell_redirects_in_utf_16_and_core_in_utf_8() -> None:
    where = container("servercore")
    await powershell(where, "'x' > C:\\f.txt")
    assert where.files.read("C:\\f.txt") == b"\xff\xfex\0\r\0\n\0"
    assert (await powershell(where, "Get-Content C:\\f.txt")).lines == ["x"]


async def test_what_it_does_not_know_it_says() -> None:
    answer = await powershell(container(), "Frobnicate-Thing -X 1")
    assert answer.code == 1
    assert "The term 'Frobnicate-Thing' is not recognized as the name of a cmdlet, function, script file" in answer.err


@pytest.mark.parametrize(
    "script",
    [
        "throw 'bad'",
        "Get-Content C:\\nope",
        "$ErrorActionPreference='Stop'; Get-Content C:\\nope; exit 0",
        "if (",
        "Get-Service -Frobnicate",
        "[No.Such]::Thing",
        "1/0",
        "cmd /c exit 9",
    ],
)
async def test_failures_end_with_one(script: str) -> None:
    assert (await powershell(container(), script)).code == 1


async def test_fact_1_2_core_has_no_modules_of_windows() -> None:
    for name in ("Get-WmiObject Win32_OperatingSystem", "Get-HnsNetwork", "Get-NetIPAddress", "Get-WinEvent"):
        assert "is not recognized" in (await powershell(container(), name)).err


async def test_encoded_commands() -> None:
    script = base64.b64encode("Write-Output 'a & b'; exit 4".encode("utf-16-le")).decode()
    answer = await run(container(), "powershell.exe", "-NoProfile", "-NonInteractive", "-EncodedCommand", script)
    assert (answer.code, answer.out) == (4, "a & b\r\n")
    broken = await run(container(), "powershell.exe", "-enc", "!!")
    assert broken.code == 1


async def test_fact_1_2_pause_and_nonroot_have_no_powershell() -> None:
    for image in ("pause", "nonroot"):
        with pytest.raises(ExecError):
            container(image).spawn(["powershell.exe", "-Command", "1"])


async def test_a_script_file_gets_its_parameters_by_name_and_by_place() -> None:
    where = container()
    where.files.write("C:\\s.ps1", b"Param([string]$Name = 'none', $Times = 1)\r\n$Name * $Times\r\nexit 6\r\n")
    by_name = await run(where, "powershell.exe", "-NoProfile", "-File", "C:\\s.ps1", "-Times", "2", "-Name", "ab")
    assert (by_name.code, by_name.out) == (6, "abab\r\n")
    assert (await run(where, "powershell.exe", "C:\\s.ps1", "x")).out == "x\r\n", "Core takes a bare word for a file"
    assert (await run(where, "powershell.exe", "Write-Output", "x")).code == 64


async def test_json_is_indented_as_each_edition_does() -> None:
    script = "@{A=1;B='x: y'} | ConvertTo-Json"
    assert (await powershell(container(), script)).lines == ["{", '  "A": 1,', '  "B": "x: y"', "}"]
    assert (await powershell(container("servercore"), script)).lines == ["{", '    "A":  1,', '    "B":  "x: y"', "}"]

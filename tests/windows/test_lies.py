"""What wine says it did and did not do, and what it does not do at all.

No result of these tests may rest on any of it. When one of them fails, wine has learned something: then a shim can go,
or a line of the table in docs/windows-workers.md may move.
"""

from __future__ import annotations

import pytest

from windows.ground import Ground

LIES = {
    "icacls sets rights": ["icacls", r"C:\lies", "/grant", "*S-1-5-32-545:F"],
    "icacls shows rights": ["icacls", r"C:\lies"],
    "netsh adds a firewall rule": [
        "netsh",
        "advfirewall",
        "firewall",
        "add",
        "rule",
        "name=x",
        "dir=in",
        "action=allow",
    ],
    "netsh shows a rule that is not there": ["netsh", "advfirewall", "firewall", "show", "rule", "name=never"],
    "certutil hashes a file": ["certutil", "-hashfile", r"C:\lies\file.txt"],
    "certutil hashes a file that is not there": ["certutil", "-hashfile", r"C:\lies\never.txt"],
    "schtasks shows a task that is not there": ["schtasks", "/query", "/tn", "never"],
    "dism lists features": ["dism", "/online", "/get-features"],
    "setx sets a variable": ["setx", "WINREADY_LIE", "1"],
    "powershell of Windows runs a command": ["powershell", "-Command", "exit 5"],
    "whoami lists groups": ["whoami", "/groups"],
    "sc sets what happens on failure": ["sc", "failure", "eventlog", "reset=", "1", "actions=", "restart/1"],
}
"""Each ends with 0 and says nothing at all."""
FAILURES = {
    "sc qc": ["sc", "qc", "eventlog"],
    "sc sdshow": ["sc", "sdshow", "eventlog"],
    "sc config": ["sc", "config", "eventlog", "start=", "auto"],
    "robocopy": ["robocopy", r"C:\lies", r"C:\copies"],
    "curl": ["curl", "--version"],
    "tar": ["tar", "--version"],
    "takeown": ["takeown", "/f", r"C:\lies"],
    "wmic": ["wmic", "os"],
    "a junction": ["cmd", "/c", "mklink", "/j", r"C:\lies\junction", r"C:\lies"],
}
"""Wine admits that it cannot."""
ABSENT = (
    "Get-NetFirewallRule",
    "Get-HnsNetwork",
    "Get-MpPreference",
    "Get-ScheduledTask",
    "Get-WindowsOptionalFeature",
    "Get-NetAdapter",
)
FAILURE_ACTIONS = r"HKLM\SYSTEM\CurrentControlSet\Services\eventlog"


@pytest.fixture(scope="module", autouse=True)
def folder(machine: Ground) -> None:
    machine.put(r"C:\lies\file.txt", "x")


@pytest.mark.parametrize("lie", LIES)
def test_wine_says_nothing_and_ends_with_0(machine: Ground, lie: str) -> None:
    result = machine.run(LIES[lie])
    assert (result.code, result.out, result.err) == (0, "", "")


@pytest.mark.parametrize("what", FAILURES)
def test_wine_admits_that_it_cannot(machine: Ground, what: str) -> None:
    assert machine.run(FAILURES[what]).code != 0


def test_what_the_lies_left(machine: Ground) -> None:
    for command in LIES.values():
        machine.run(command)
    assert "WINREADY_LIE" not in machine.run(["reg", "query", r"HKCU\Environment"]).out
    service = machine.run(["reg", "query", FAILURE_ACTIONS]).out
    assert "ImagePath" in service
    assert "FailureActions" not in service


def test_a_symbolic_link_is_made_and_is_not_there(machine: Ground) -> None:
    result = machine.run(["cmd", "/c", "mklink", r"C:\lies\link", r"C:\lies\file.txt"])
    assert (result.code, result.out, result.err) == (0, "", "")
    (made,) = machine.powershell(r"[void](New-Item -ItemType SymbolicLink -Path C:\lies\l -Target C:\lies\file.txt)")
    assert made.code == 0
    assert [path.name for path in machine.path(r"C:\lies").iterdir()] == ["file.txt"]


def test_rights_are_set_and_everyone_still_reads(machine: Ground) -> None:
    closed = "O:BAG:SYD:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"
    (result,) = machine.powershell(
        "$s = New-Object System.Security.AccessControl.DirectorySecurity\n"
        f"$s.SetSecurityDescriptorSddlForm('{closed}')\n"
        r"Set-Acl -LiteralPath C:\lies -AclObject $s; (Get-Acl -LiteralPath C:\lies).Sddl"
    )
    assert result.code == 0
    assert ";;;WD)" in result.out
    assert "D:P" not in result.out


def test_powershell_has_no_modules_of_windows_and_no_cim(machine: Ground) -> None:
    names = ", ".join(f"'{name}'" for name in ABSENT)
    cim, found = machine.powershell(
        "Get-CimInstance Win32_OperatingSystem", f"Get-Command -Name {names} -ErrorAction SilentlyContinue"
    )
    assert cim.code == 1
    assert "Microsoft.Management.Infrastructure" in cim.out
    assert found.out.strip() == ""


def test_powershell_without_a_terminal_runs_nothing_and_ends_with_0(machine: Ground) -> None:
    result = machine.run([r"C:\pwsh\pwsh.exe", "-NoProfile", "-Command", r"Set-Content C:\lies\pipe.txt x; exit 3"])
    assert result.code == 0
    assert not machine.path(r"C:\lies\pipe.txt").exists()


def test_exit_codes_have_eight_bits(machine: Ground) -> None:
    assert machine.run(["cmd", "/c", "exit", "3010"]).code == 3010 % 256
    assert [result.code for result in machine.powershell("cmd /c exit 3010; exit $LASTEXITCODE")] == [3010]

"""``node.ps1 join`` and ``status``, run by the real PowerShell: each step once, and never again."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from windows.cluster import CA_HASH, ENDPOINT, RELEASE, TOKEN
from windows.ground import Result
from windows.worker import JOIN, NEW_MACHINE, Worker, worker

Picture = tuple[dict[str, str], str, dict[str, Any]]
SECRET = "O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"
PROGRAMS = "O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)"
PARENT = "O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;;0x1200a9;;;BU)"
TASK = "winready-containerd-log"
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ")


@dataclass
class Story:
    """A join tried, done, and done twice more; what each one said, changed, called and started."""

    machine: Worker
    pictures: list[Picture]
    results: list[Result]
    calls: list[list[dict[str, Any]]]
    programs: list[list[dict[str, Any]]]


@pytest.fixture(scope="module")
def story(bundles: dict[str, Path]) -> Iterator[Story]:
    with worker(bundles[RELEASE]) as machine:
        found = Story(machine, [machine.picture()], [], [], [])
        for command in (f"{JOIN} -WhatIf", JOIN, JOIN, JOIN):
            found.results += machine.node(command)
            found.pictures.append(machine.picture())
            found.calls.append(machine.calls())
            found.programs.append(machine.programs())
        yield found


def steps(result: Result) -> list[tuple[str, str]]:
    """What was said of each step."""
    return re.findall(r"^(ok|doing|done|would) +(.+)$", result.out, re.MULTILINE)


def test_what_if_names_every_step_and_changes_nothing(story: Story) -> None:
    result = story.results[0]
    assert result.code == 0
    assert result.out.endswith("nothing was changed (-WhatIf)\n")
    wanted = [name for _, name in steps(story.results[2])]
    said = {name: word for word, name in steps(result)}
    assert list(said) == list(dict.fromkeys(wanted))
    # What is in the bundle, and the one thing of this machine that is as it should be.
    good = {name for name, word in said.items() if word != "would" and not name.endswith("the digest of node.json")}
    assert good == {"Windows feature Containers"}
    assert story.pictures[0] == story.pictures[1]
    assert story.calls[0] == story.programs[0] == []


def test_a_join_does_each_step_once(story: Story) -> None:
    result = story.results[1]
    assert result.code == 0, result.out
    done = Counter(name for word, name in steps(result) if word == "done")
    # Once to have a service that kubeadm can start, and once with the flags that kubeadm wrote.
    assert done.pop("kubelet service") == 2
    assert set(done.values()) == {1}
    assert "node windows-1: 41 steps were done" in result.out
    assert "next: winready node verify windows-1" in result.out


@pytest.mark.parametrize("run", [2, 3])
def test_another_join_says_ok_to_each_step_and_changes_nothing(story: Story, run: int) -> None:
    result = story.results[run]
    assert result.code == 0, result.out
    assert {word for word, _ in steps(result)} == {"ok"}
    assert "node windows-1: nothing had to be changed" in result.out
    assert story.pictures[run + 1] == story.pictures[2]
    assert story.calls[run] == story.programs[run] == []


def test_what_is_only_windows_was_asked_for_once(story: Story) -> None:
    calls = [call for call in story.calls[1] if call["call"] != "Set-Acl"]
    rules = [call["given"] for call in calls if call["call"] == "New-NetFirewallRule"]
    assert [(rule["Name"], rule["Protocol"], rule["LocalPort"]) for rule in rules] == [
        ("winready-kubelet", "TCP", "10250"),
        ("winready-vxlan", "UDP", "4789"),
    ]
    assert {(rule["Direction"], rule["Action"]) for rule in rules} == {("Inbound", "Allow")}
    antivirus = [call["given"]["ExclusionProcess"] for call in calls if call["call"] == "Add-MpPreference"]
    assert antivirus == [
        r"C:\k\kubelet.exe",
        r"C:\k\kube-proxy.exe",
        r"C:\Program Files\containerd\containerd.exe",
        r"C:\Program Files\containerd\ctr.exe",
    ]
    assert [call["given"]["TaskName"] for call in calls if call["call"] == "Register-ScheduledTask"] == [TASK]
    assert len(calls) == len(rules) + len(antivirus) + 1


def test_folders_are_closed_before_anything_secret_is_in_them(story: Story) -> None:
    rights = {call["given"]["LiteralPath"]: call["given"] for call in story.calls[1] if call["call"] == "Set-Acl"}
    assert len(rights) == sum(call["call"] == "Set-Acl" for call in story.calls[1])
    for path in (r"C:\ProgramData\winready", r"C:\etc\kubernetes", r"C:\var\lib\kubelet", r"C:\var\log\kubelet"):
        assert rights[path]["Sddl"] == SECRET, path
    ours = (
        r"C:\var\log\pods",
        r"C:\var\log\containers",
        r"C:\run\flannel",
        r"C:\var\lib\cni",
        r"C:\ProgramData\containerd",
    )
    for path in ours:
        assert rights[path]["Sddl"] == SECRET, path
    # Those on the way to them: users may look, and what is made there later is closed to them.
    for path in (
        r"C:\etc",
        r"C:\var",
        r"C:\var\lib",
        r"C:\var\log",
        r"C:\opt",
        r"C:\opt\cni",
        r"C:\etc\cni",
        r"C:\run",
    ):
        assert rights[path]["Sddl"] == PARENT, path
    for path in (r"C:\k", r"C:\opt\cni\bin", r"C:\Program Files\containerd"):
        assert rights[path]["Sddl"] == PROGRAMS, path
    # The file with the token was closed while it was empty.
    token = rights[r"C:\ProgramData\winready\join.yaml"]
    assert (token["Size"], token["Sddl"]) == ("0", "O:BAD:P(A;;FA;;;SY)(A;;FA;;;BA)")
    order = [call["given"]["LiteralPath"] for call in story.calls[1] if call["call"] == "Set-Acl"]
    assert order.index(r"C:\ProgramData\winready") == 0
    for parent, folder in (
        (r"C:\var", r"C:\var\lib"),
        (r"C:\var\lib", r"C:\var\lib\kubelet"),
        (r"C:\etc", r"C:\etc\cni"),
    ):
        assert order.index(parent) < order.index(folder)


def test_kubeadm_got_the_token_in_a_file_that_is_gone(story: Story) -> None:
    kubeadm = [start["arguments"] for start in story.programs[1] if start["program"] == "kubeadm"]
    assert kubeadm == [["join", "--config", r"C:\ProgramData\winready\join.yaml"]]
    assert "ProgramData/winready/join.yaml" not in story.pictures[2][0]
    given = json.loads(story.machine.ground.path(r"C:\shim\join.yaml").read_text())
    discovery = {"token": TOKEN, "apiServerEndpoint": ENDPOINT, "caCertHashes": [CA_HASH]}
    assert given["discovery"] == {"bootstrapToken": discovery}
    assert given["nodeRegistration"]["name"] == "windows-1"
    assert given["nodeRegistration"]["criSocket"] == "npipe:////./pipe/containerd-containerd"


def test_the_token_is_nowhere(story: Story) -> None:
    for result in story.results:
        assert TOKEN not in result.out
    assert "joined the cluster with [token removed]" in story.results[1].out
    for path in story.machine.ground.c_drive.rglob("*"):
        name = path.relative_to(story.machine.ground.c_drive).parts[0].lower()
        # Not what the test itself wrote, nor what the stand-in kept for it.
        if name not in ("windows", "pwsh", "ground", "shim") and path.is_file():
            assert TOKEN.encode() not in path.read_bytes(), path


def test_the_log_tells_all_of_it_with_times(story: Story) -> None:
    lines = story.machine.log().splitlines()
    assert all(STAMP.match(line) for line in lines)
    said = [STAMP.sub("", line) for line in lines]
    assert said == "".join(result.out for result in story.results[1:]).splitlines()


def test_services_start_at_boot_in_order_and_again_when_they_fail(story: Story) -> None:
    registry = story.pictures[2][1]
    containerd, kubelet = re.split(r"(?=HKEY\S+\\kubelet\n)", registry.partition("Session Manager")[0])
    for service in (containerd, kubelet):
        assert re.search(r"Start +REG_DWORD +0x2\n", service)
        assert re.search(r"FailureActions +REG_BINARY +80510100", service)
        assert re.search(r"FailureActionsOnNonCrashFailures +REG_DWORD +0x1\n", service)
    assert re.search(r"DependOnService +REG_MULTI_SZ +containerd\n", kubelet)
    assert r'ImagePath    REG_SZ    "C:\Program Files\containerd\containerd.exe" --run-service' in containerd
    kubelet_line = next(line for line in kubelet.splitlines() if "ImagePath" in line)
    assert r"C:\k\kube-log-runner.exe -log-file=C:\var\log\kubelet\kubelet.log" in kubelet_line
    # What kubeadm wrote is taken over, without the flag that this kubelet no longer knows.
    assert kubelet_line.endswith(" --node-ip=10.0.0.5")
    assert "pod-infra-container-image" not in kubelet_line
    started = [start["arguments"] for start in story.programs[1] if start["program"] == "kubelet"]
    assert "--hostname-override=windows-1" in started[-1]
    assert "--node-ip=10.0.0.5" in started[-1]


def test_the_search_path_has_our_folder_once_and_keeps_its_variables(story: Story) -> None:
    (line,) = re.findall(r"^ +PATH +REG_EXPAND_SZ +(.*)$", story.pictures[-1][1], re.MULTILINE | re.IGNORECASE)
    folders = line.split(";")
    assert folders.count(r"C:\k") == 1
    assert folders[0] == r"%SystemRoot%\system32"


def test_containerd_got_its_settings(story: Story, bundles: dict[str, Path]) -> None:
    written = story.machine.ground.path(r"C:\Program Files\containerd\config.toml").read_bytes()
    assert written == (bundles[RELEASE] / "config/containerd.toml").read_bytes()


def test_the_log_of_containerd_is_cut_every_hour(story: Story) -> None:
    machine = story.machine
    task = machine.state["tasks"][TASK]
    assert (task["Minutes"], task["UserId"], task["RunLevel"]) == (60, "S-1-5-18", "Highest")
    script, _, words = task["Argument"].partition(" -File ")[2].rpartition(" ")
    assert (script, words) == (r"C:\ProgramData\winready\bundle\node.ps1", "rotate")
    log = machine.ground.path(r"C:\ProgramData\containerd\containerd.log")
    with log.open("ab") as file:
        file.write(b"a line of the log\n" * 1_200_000)
    old = log.with_name("containerd-20200101T000000000.log")
    old.write_bytes(b"old")
    os.utime(old, (0, 0))
    # A containerd that runs has it open, and goes on writing.
    tried, first, second = machine.powershell(
        *(f"& '{script}' rotate {flag}; Start-Sleep -Milliseconds 300" for flag in ("-WhatIf", "", ""))
    )
    assert tried.code == first.code == second.code == 0, first.out + second.out
    assert tried.out == second.out == ""
    assert "removed, it is older than a week" in first.out
    (piece,) = log.parent.glob("containerd-*.log")
    before, after = numbers(piece), numbers(log)
    assert before[0] == 0
    # In order, and without holes filled with zeros; what was said between copying and cutting may be lost.
    assert after == list(range(after[0], after[0] + len(after)))
    assert before[-1] < after[0]


def numbers(log: Path) -> list[int]:
    """Which lines the stand-in of containerd wrote there, whole ones only."""
    text = log.read_bytes()
    assert b"\0" not in text
    return [int(found) for found in re.findall(rb"^line (\d+)\n", text, re.MULTILINE)]


def test_status_after_a_reboot_and_with_a_kubelet_that_is_stopped(story: Story) -> None:
    machine = story.machine
    machine.ground.reboot()
    machine.set_state(
        hns={**NEW_MACHINE["hns"], "HnsNetwork": [{"ID": "1", "Name": "flannel.4096", "Type": "Overlay"}]}
    )
    good, shown, stopped, bad = machine.powershell(
        r"Set-Location C:\ground; & C:\bundle\node.ps1 status -Report here.json",
        r"& C:\bundle\node.ps1 show -Report C:\ground\shown.json",
        "Stop-Service kubelet",
        r"& C:\bundle\node.ps1 status",
    )
    assert good.code == 0, good.out
    assert stopped.code == 0
    assert {word for word, _ in steps(good)} == {"ok"}
    report = json.loads(machine.ground.path(r"C:\ground\here.json").read_text())
    assert report["schema"] == "winready-node-report/1"
    assert (report["windows"], report["kubernetes"]) == (20348, RELEASE)
    assert all(step["ok"] for step in report["steps"])
    assert {right["path"]: right["sddl"] for right in report["rights"]}[r"C:\k"] == PROGRAMS
    assert TOKEN not in json.dumps(report)
    assert shown.code == 1
    report = json.loads(machine.ground.path(r"C:\ground\shown.json").read_text())
    # Wine is no Windows, and the report says so: another PowerShell, nobody to be, and no real runtime.
    assert {claim["claim"]: claim["shown"] for claim in report["claims"]} == {
        "the scripts run in Windows PowerShell 5.1": "no",
        "every step of a join holds": "yes",
        "a user who is no administrator cannot read our record": "unknown",
        "a join went on by itself after a reboot": "unknown",
        "the kubelet runs as a service under kube-log-runner, and writes its log": "yes",
        "the real containerd answers": "no",
        "the network of the cluster is known to the host networking service": "yes",
        "the service manager starts a kubelet again that was killed": "unknown",
        "somebody who is no administrator can use a volume, and nothing beside it": "unknown",
        "an upgrade was done on this machine": "unknown",
        "a reset was done on this machine, and what was to go was gone": "unknown",
    }
    assert any("node windows-1: 41 steps were done" in line for line in report["log"])
    assert any("containerd.log cut; its lines are in " in line for line in report["log"])
    assert TOKEN not in json.dumps(report)
    assert bad.code == 1
    assert re.findall(r"^wrong +(.*)$", bad.out, re.MULTILINE) == ["kubelet runs and is healthy"]
    # Status looks and leaves alone; a join puts it right.
    assert machine.calls() == []
    (again,) = machine.node(JOIN)
    assert again.code == 0
    assert [name for word, name in steps(again) if word == "done"] == ["kubelet runs and is healthy"]


def test_a_folder_that_somebody_opened_is_closed_again_with_those_above_it(story: Story) -> None:
    machine = story.machine
    rights = machine.state["rights"]
    opened = {r"c:\var": PROGRAMS, r"c:\var\log\pods": PROGRAMS}
    machine.set_state(rights={**rights, **opened})
    wrong, closed, good = machine.node("status", JOIN, "status")
    below = re.findall(r"^wrong +folder (.*)$", wrong.out, re.MULTILINE)
    assert r"C:\var\log\pods" in below
    assert all(name.startswith("C:\\var\\") for name in below)
    assert closed.code == good.code == 0, closed.out
    assert machine.state["rights"] == rights

"""``node.ps1 reset``, run by the real PowerShell: the machine is as it was found, and what stays is said."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from windows.cluster import RELEASE
from windows.ground import Result
from windows.worker import ENVIRONMENT, JOIN, Worker, worker

Picture = tuple[dict[str, str], str, dict[str, Any]]
PATH = r"%SystemRoot%\system32;%SystemRoot%;C:\Their Tools\;"
NETWORKS = {
    "HnsNetwork": [
        {"ID": "aa11", "Name": "External", "Type": "L2Bridge"},
        {"ID": "bb22", "Name": "nat", "Type": "NAT"},
    ],
    "HnsEndpoint": [{"ID": "cc33", "Name": "theirs"}],
    "HnsPolicyList": [],
}
"""Of a machine that others use, too."""
OF_THE_CLUSTER = {
    "HnsNetwork": [*NETWORKS["HnsNetwork"], {"ID": "dd44", "Name": "flannel.4096", "Type": "Overlay"}],
    "HnsEndpoint": [*NETWORKS["HnsEndpoint"], {"ID": "ee55", "Name": "pod"}],
    "HnsPolicyList": [{"ID": "ff66"}],
}
THEIR_RIGHTS = "O:BAG:SYD:AI(A;OICIID;FA;;;SY)(A;OICIID;FA;;;BA)(A;OICIID;0x1200a9;;;BU)(A;CIID;LC;;;BU)"


@dataclass
class Story:
    """A used machine that joins, works, is reset twice, joins again, and is reset while something is in use."""

    machine: Worker
    before: Picture
    joined: Picture
    tried: Picture
    after: Picture
    results: list[Result]
    calls: list[dict[str, Any]]
    programs: list[dict[str, Any]]
    again: list[Result]


@pytest.fixture(scope="module")
def story(bundles: dict[str, Path]) -> Iterator[Story]:
    firewall = {"theirs": {"Direction": "Inbound", "Action": "Allow", "Protocol": "TCP", "LocalPort": "10250"}}
    features = {"Containers": "Disabled"}
    with worker(
        bundles[RELEASE], features=features, firewall=firewall, defender=[r"C:\x.exe"], hns=NETWORKS
    ) as machine:
        ground = machine.ground
        ground.put(r"C:\k\kubeadm.exe", "their own")
        ground.put(r"C:\k\notes.txt", "their own")
        ground.put(r"C:\opt\theirs\file", "their own")
        add = ["reg", "add", ENVIRONMENT, "/v", "Path", "/t", "REG_EXPAND_SZ", "/d", PATH, "/f"]
        assert ground.run(add).code == 0
        before = machine.picture()
        (result,) = machine.node(JOIN)
        assert result.code == 0, result.out
        joined = machine.picture()
        machine.set_state(hns=OF_THE_CLUSTER)
        for path in (r"C:\run\flannel\subnet.env", r"C:\var\lib\cni\x", r"C:\k\sourceVip.json", r"C:\k\kube-proxy\x"):
            ground.put(path, "x")
        for path in (r"C:\var\log\pods\a_b_c\d\0.log", r"C:\var\log\containers\x.log", r"C:\var\theirs\file"):
            ground.put(path, "x")
        worked = machine.picture()
        results = machine.node("reset -WhatIf")
        assert worked == machine.picture()
        machine.calls()
        machine.programs()
        results += machine.node("reset")
        calls, programs, after = machine.calls(), machine.programs(), machine.picture()
        results += machine.node("reset")
        # A program that holds a file open, as a container that still runs would.
        again = machine.powershell(
            rf"& C:\bundle\node.ps1 {JOIN}; $global:Held = [IO.File]::Open('C:\k\crictl.exe', 'Open', 'Read', 'None')",
            r"& C:\bundle\node.ps1 reset",
        )
        again += machine.node("reset")
        yield Story(machine, before, joined, worked, after, results, calls, programs, again)


def test_what_if_changes_nothing_and_says_what_would_go(story: Story) -> None:
    tried, done, _ = story.results
    assert tried.code == 0
    assert tried.out.endswith("nothing was changed (-WhatIf)\n")
    would = re.findall(r"^would +(.*)$", tried.out, re.MULTILINE)
    did = re.findall(r"^done +(.*)$", done.out, re.MULTILINE)
    # What becomes empty, and our own papers, are known only while it is done.
    assert set(did) - set(would) <= {name for name in did if name.startswith(("empty folder ", "read back: "))}
    assert {"kubeadm reset", "service kubelet", "service containerd", r"search path without C:\k"} <= set(would)


def test_files_are_as_they_were_found(story: Story) -> None:
    left = {"ProgramData/winready": "folder", "ProgramData/winready/logs": "folder"}
    # Somebody has put something of his own where we made the way, and where others were before us.
    left |= {"var": "folder", "var/theirs": "folder", "var/theirs/file": story.after[0]["var/theirs/file"]}
    assert story.after[0] == {**story.before[0], **left}
    assert story.joined[0]["k/kubeadm.exe"] != story.before[0]["k/kubeadm.exe"]


def test_services_and_search_path_are_as_they_were_found(story: Story) -> None:
    assert story.after[1] == story.before[1]
    assert story.joined[1] != story.before[1]
    (path,) = re.findall(r"^ +PATH +REG_EXPAND_SZ +(.*)$", story.after[1], re.MULTILINE | re.IGNORECASE)
    assert path == PATH


def test_firewall_antivirus_and_networks_of_others_stay(story: Story) -> None:
    assert list(story.joined[2]["tasks"]) == ["winready-containerd-log"]
    for name in ("firewall", "defender", "hns", "tasks"):
        assert story.after[2][name] == story.before[2][name], name
    removed = [call["given"]["ID"] for call in story.calls if call["call"].startswith("Remove-Hns")]
    # What uses a network goes before the network.
    assert removed == ["ff66", "ee55", "dd44"]


def test_a_folder_that_was_there_gets_its_rights_back(story: Story) -> None:
    assert story.joined[2]["rights"]["c:\\k"] != THEIR_RIGHTS
    assert story.after[2]["rights"]["c:\\k"] == THEIR_RIGHTS


def test_kubeadm_reset_came_first(story: Story) -> None:
    starts = [(start["program"], start["arguments"][0]) for start in story.programs]
    assert starts[0] == ("kubeadm", "reset")
    # While containerd runs it takes its images away; nobody else can.
    (images,) = [start["arguments"] for start in story.programs if start["program"] == "crictl"]
    assert images[-2:] == ["rmi", "--all"]
    assert starts[1][0] == "crictl"
    assert sorted(starts[2:]) == [("sc", "delete"), ("sc", "delete")]


def test_what_stays_is_said_with_the_reason(story: Story) -> None:
    done = story.results[1]
    assert done.code == 0, done.out
    left = re.findall(r"^left +(.*)$", done.out, re.MULTILINE)
    assert [line.partition(" (")[0] for line in left] == [
        "Windows feature Containers",
        r"folder C:\var",
        r"folder C:\k",
        r"C:\ProgramData\winready\logs",
    ]
    assert "this script made it on the way to its own; now others have in it: theirs" in left[1]
    assert "it was there before; what is in it stays: kubeadm.exe, notes.txt" in left[2]
    assert "done    read back: services, rules, exceptions, search path, tasks, files, folders and rights" in done.out
    assert all(line.endswith(")") for line in left)
    assert "next: winready node remove windows-1" in done.out
    assert story.after[2]["features"] == {"Containers": "Enabled"}


def test_a_second_reset_finds_nothing(story: Story) -> None:
    assert story.results[2].code == 0
    assert story.results[2].out.startswith("nothing to reset: ")


def test_something_in_use_is_said_and_another_reset_goes_on(story: Story) -> None:
    joined, first, second = story.again
    assert joined.code == 0, joined.out
    assert first.code == 1, first.out
    left = re.findall(r"^left +(.*)$", first.out, re.MULTILINE)
    assert any(line.startswith(r"file C:\k\crictl.exe (") for line in left)
    assert "run node.ps1 reset again" in first.out
    assert second.code == 0, second.out
    assert story.machine.files() == story.after[0]


def test_what_says_that_it_was_done_and_was_not_is_noticed(bundles: dict[str, Path]) -> None:
    """Every command that takes something back succeeds and does nothing; the machine is asked, and told by."""
    stubborn = ["Remove-NetFirewallRule", "Remove-MpPreference", "Unregister-ScheduledTask", r"Set-Acl C:\k"]
    with worker(bundles[RELEASE]) as machine:
        machine.ground.put(r"C:\k\notes.txt", "their own")
        (joined,) = machine.node(JOIN)
        assert joined.code == 0, joined.out
        machine.order("crictl-fails", "the runtime does not answer")
        machine.set_state(stubborn=stubborn)
        (first,) = machine.node("reset")
        machine.set_state(stubborn=[])
        assert first.code == 1
        left = re.findall(r"^left +(.*) \(seen when it was looked for after the reset\)$", first.out, re.MULTILINE)
        assert sorted(left) == [
            "firewall rule winready-kubelet is still there",
            "firewall rule winready-vxlan is still there",
            "scheduled task winready-containerd-log is still there",
            r"the antivirus still has an exception for C:\Program Files\containerd\containerd.exe",
            r"the antivirus still has an exception for C:\Program Files\containerd\ctr.exe",
            r"the antivirus still has an exception for C:\k\kube-proxy.exe",
            r"the antivirus still has an exception for C:\k\kubelet.exe",
            r"the rights of C:\k are not what they were",
        ]
        assert "containerd did not remove its images: crictl.exe" in first.out
        assert "done    read back" not in first.out
        second, third = machine.node("reset", "reset")
        assert second.code == 0, second.out
        assert "done    read back" in second.out
        assert machine.state["firewall"] == machine.state["tasks"] == {}
        assert machine.state["defender"] == []
        assert third.out.startswith("nothing to reset: ")
        report = machine.powershell(r"& C:\bundle\node.ps1 show -Report C:\ground\shown.json")[0]
        (reset,) = [line for line in report.out.splitlines() if "a reset was done on this machine" in line]
        assert reset.startswith("yes ")

"""``node.ps1 upgrade`` and joins that fail, run by the real PowerShell: there is always a way back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from node.mirror import running
from windows.cluster import NEXT, RELEASE, TOKEN, Api
from windows.ground import Result
from windows.worker import JOIN, Worker, make_bundle, worker

Picture = tuple[dict[str, str], str, dict[str, Any]]
OURS = "ProgramData/winready/"


def of_the_machine(picture: Picture) -> Picture:
    """Without our own folder, in which copies of older programs stay."""
    files, registry, state = picture
    return {name: digest for name, digest in files.items() if not name.startswith(OURS)}, registry, state


@dataclass
class Story:
    """A worker on which upgrades fail in two ways, and then succeed."""

    machine: Worker
    joined: Picture
    tried: Picture
    undone: list[Picture]
    after: Picture
    whatif: Result
    failures: list[Result]
    status: Result
    upgraded: list[Result]
    started: list[list[str]]


@pytest.fixture(scope="module")
def story(bundles: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with worker(bundles[RELEASE], api=Api(release="1.38.1")) as machine:
        (result,) = machine.node(JOIN)
        assert result.code == 0, result.out
        joined = machine.picture()
        machine.change_bundle(bundles[NEXT])
        (whatif,) = machine.node(f"{machine.upgrade} -WhatIf")
        tried = machine.picture()
        undone, failures = [], []
        for order, words in (("upgrade-fails", "the configuration is too old"), ("kubelet-breaks", NEXT)):
            machine.order(order, words)
            failures += machine.node(machine.upgrade)
            undone.append(machine.picture())
            machine.order(order, None)
        # The old bundle judges what the failures left.
        machine.change_bundle(bundles[RELEASE])
        (status,) = machine.node("status")
        machine.change_bundle(bundles[NEXT])
        machine.programs()
        upgraded = machine.node(machine.upgrade)
        started = [[start["program"], start["version"], *start["arguments"]] for start in machine.programs()]
        after = machine.picture()
        upgraded += machine.node(machine.upgrade, machine.upgrade, JOIN, "status")
        assert machine.picture()[:2] == after[:2]
        yield Story(machine, joined, tried, undone, after, whatif, failures, status, upgraded, started)


def test_what_if_names_the_programs_and_changes_nothing(story: Story) -> None:
    assert story.whatif.code == 0
    would = re.findall(r"^would +(.*)$", story.whatif.out, re.MULTILINE)
    programs = ["containerd", "crictl", "kube-log-runner", "kube-proxy", "kubeadm", "kubelet"]
    assert sorted(name for name in would if name.startswith("program ")) == [f"program {name}" for name in programs]
    assert would[:4] == ["program kubeadm", "kubeadm upgrade node", "kubelet stopped", "containerd stopped"]
    assert story.whatif.out.endswith("nothing was changed (-WhatIf)\n")
    assert story.tried == story.joined


def test_an_upgrade_that_kubeadm_refuses_is_undone(story: Story) -> None:
    result = story.failures[0]
    assert result.code == 1
    assert "undoing the upgrade" in result.out
    assert "the configuration is too old" in result.out
    assert re.search(rf"^error: the upgrade to {NEXT} failed and was undone: ", result.out, re.MULTILINE)
    assert of_the_machine(story.undone[0]) == of_the_machine(story.joined)


def test_a_kubelet_that_does_not_start_gives_way_to_the_old_one(story: Story) -> None:
    result = story.failures[1]
    assert result.code == 1, result.out
    assert re.search(rf"^error: the upgrade to {NEXT} failed and was undone: ", result.out, re.MULTILINE)
    assert of_the_machine(story.undone[1]) == of_the_machine(story.joined)
    assert story.status.code == 0, story.status.out
    assert f"Kubernetes {RELEASE}" in story.status.out


def test_an_upgrade_swaps_the_programs_and_asks_kubeadm_first(story: Story) -> None:
    result = story.upgraded[0]
    assert result.code == 0, result.out
    assert f"node windows-1 has Kubernetes {NEXT}" in result.out
    assert story.started[0] == ["kubeadm", NEXT, "upgrade", "node"]
    kubelets = [start for start in story.started if start[0] == "kubelet"]
    assert {start[1] for start in kubelets} == {NEXT}
    assert "--node-ip=10.0.0.5" in kubelets[-1]
    text = story.machine.ground.path(r"C:\var\lib\kubelet\config.yaml").read_text()
    assert NEXT in text
    for name in ("k/kubelet.exe", "k/kubeadm.exe"):
        assert story.after[0][name] != story.joined[0][name]
        # The way back stays.
        assert story.after[0][f"{OURS}previous/{Path(name).name}"] == story.joined[0][name]


def test_another_upgrade_and_a_join_change_nothing(story: Story) -> None:
    _, again, third, join, status = story.upgraded
    assert again.code == third.code == join.code == status.code == 0
    assert "nothing had to be changed" in again.out
    assert again.out == third.out
    assert "nothing had to be changed" in join.out


def test_versions_that_do_not_go_are_refused(story: Story, bundles: dict[str, Path], tmp_path: Path) -> None:
    machine = story.machine
    before = machine.picture()
    with running() as mirror:
        for version in ("1.39.0", "1.38.0"):
            mirror.release(version)
            make_bundle(mirror, version, tmp_path / version)
    sentences = []
    for bundle, command in (
        (bundles[RELEASE], ""),
        (bundles[RELEASE], JOIN),
        (tmp_path / "1.39.0", ""),
        (tmp_path / "1.38.0", JOIN),
    ):
        machine.change_bundle(bundle)
        (result,) = machine.node(command or machine.upgrade)
        assert result.code == 2, result.out
        (line,) = result.out.splitlines()
        sentences.append(line)
    assert machine.picture()[:2] == before[:2]
    assert sentences == [
        f"error: Kubernetes {NEXT} is installed; kubeadm does not go back to {RELEASE}",
        f"error: this machine has joined with Kubernetes {NEXT}, this bundle has {RELEASE}; run node.ps1 upgrade",
        f"error: from Kubernetes {NEXT} to 1.39.0 would skip a minor version, which kubeadm does not do; "
        "take 1.38 first",
        f"error: this machine has joined with Kubernetes {NEXT}, this bundle has 1.38.0; run node.ps1 upgrade",
    ]


def test_a_join_that_kubeadm_refuses_leaves_nothing_in_the_way_of_the_next(bundles: dict[str, Path]) -> None:
    with worker(bundles[RELEASE]) as machine:
        machine.order("join-fails", "the API server said no")
        refused, status = machine.node(JOIN, "status")
        assert refused.code == 1
        assert (
            "error: kubeadm could not join this machine: kubeadm.exe join ended with 1: the API server" in refused.out
        )
        assert "(token [token removed])" in refused.out
        assert TOKEN not in refused.out + machine.log()
        assert "etc/kubernetes/bootstrap-kubelet.conf" not in machine.files()
        assert "etc/kubernetes/pki/ca.crt" not in machine.files()
        assert not machine.ground.path(r"C:\ProgramData\winready\join.yaml").exists()
        assert status.code == 1
        machine.order("join-fails", None)
        (joined,) = machine.node(JOIN)
        assert joined.code == 0, joined.out

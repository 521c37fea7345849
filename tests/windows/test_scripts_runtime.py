"""containerd on a worker, run by the real PowerShell: mirrors of registries, another release, the way back."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from node.mirror import running
from windows.cluster import RELEASE
from windows.ground import Result
from windows.worker import JOIN, Worker, make_bundle, publish, worker

Picture = tuple[dict[str, str], str, dict[str, Any]]
OLD, NEW = "2.1.5", "2.2.0"
OURS = "ProgramData/winready/"
CERTS = "Program Files/containerd/certs.d"
FIRST = (
    "docker.io=https://mirror.example.com",
    "docker.io=http://10.0.0.7:5000/v2/hub",
    "registry.example.com:5000=https://m.example",
)
SECOND = ("docker.io=https://other.example.com",)


def of_the_machine(picture: Picture) -> Picture:
    """Without our own folder, in which copies of older programs stay."""
    files, registry, state = picture
    return {name: digest for name, digest in files.items() if not name.startswith(OURS)}, registry, state


@dataclass
class Story:
    """A worker that gets another containerd: one that does not start, one that is cut off, and one that works."""

    machine: Worker
    joined: Picture
    mirrors: dict[str, str]
    settings: str
    again: Result
    broken: Result
    after_broken: Picture
    cut: Picture
    undone: Result
    after_undone: Picture
    upgraded: list[Result]
    after: Picture


def hosts(machine: Worker) -> dict[str, str]:
    """The files in which containerd looks for mirrors, by folder."""
    folder = machine.ground.c_drive / CERTS
    return {path.parent.name: path.read_text() for path in sorted(folder.rglob("hosts.toml"))}


@pytest.fixture(scope="module")
def two(ground: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Bundles of one Kubernetes with two releases of containerd, each with mirrors of its own."""
    folder = tmp_path_factory.mktemp("bundles")
    with running() as mirror:
        for version, mirrors in ((OLD, FIRST), (NEW, SECOND)):
            publish(mirror, RELEASE, version)
            flags = [word for one in mirrors for word in ("--registry-mirror", one)]
            make_bundle(mirror, RELEASE, folder / version, "--offline", "--containerd", version, *flags)
    return {version: folder / version for version in (OLD, NEW)}


@pytest.fixture(scope="module")
def story(two: dict[str, Path]) -> Iterator[Story]:
    with worker(two[OLD]) as machine:
        (first,) = machine.node(JOIN)
        assert first.code == 0, first.out
        joined, mirrors = machine.picture(), hosts(machine)
        settings = machine.ground.path(r"C:\Program Files\containerd\config.toml").read_text()
        (again,) = machine.node(JOIN)
        assert machine.picture() == joined
        machine.change_bundle(two[NEW])
        machine.order("containerd-breaks", NEW)
        (broken,) = machine.node(machine.upgrade)
        after_broken = machine.picture()
        machine.order("containerd-breaks", None)
        # As when the power fails: the programs are swapped, and the moment the first service is to start all is over.
        with pytest.raises(AssertionError, match="did not run its script"):
            machine.powershell(
                rf"function global:Start-Service {{ [Environment]::Exit(9) }}; & C:\bundle\node.ps1 {machine.upgrade}"
            )
        cut = machine.picture()
        machine.order("containerd-breaks", NEW)
        (undone,) = machine.node(machine.upgrade)
        after_undone = machine.picture()
        machine.order("containerd-breaks", None)
        upgraded = machine.node(machine.upgrade, machine.upgrade, machine.upgrade, "status")
        after = machine.picture()
        yield Story(
            machine, joined, mirrors, settings, again, broken, after_broken, cut, undone, after_undone, upgraded, after
        )


def test_mirrors_are_where_containerd_looks_for_them(story: Story) -> None:
    assert story.mirrors == {
        "docker.io": '[host."https://mirror.example.com"]\ncapabilities = ["pull", "resolve"]\n'
        '[host."http://10.0.0.7:5000/v2/hub"]\ncapabilities = ["pull", "resolve"]\noverride_path = true\n',
        # A colon cannot be in a name.
        "registry.example.com_5000_": '[host."https://m.example"]\ncapabilities = ["pull", "resolve"]\n',
    }
    assert r"config_path = 'C:\Program Files\containerd\certs.d'" in story.settings
    assert "nothing had to be changed" in story.again.out


def test_a_containerd_that_does_not_start_gives_way_to_the_old_one(story: Story) -> None:
    assert story.broken.code == 1
    assert f"error: the upgrade to {RELEASE} failed and was undone: " in story.broken.out
    assert of_the_machine(story.after_broken) == of_the_machine(story.joined)


def test_an_upgrade_that_was_cut_off_still_has_its_way_back(story: Story) -> None:
    # Half of it was there: the new program, and the new mirrors or the old ones.
    assert of_the_machine(story.cut) != of_the_machine(story.joined)
    program = "Program Files/containerd/containerd.exe"
    assert story.cut[0][program] != story.joined[0][program]
    assert story.undone.code == 1
    assert of_the_machine(story.after_undone) == of_the_machine(story.joined)


def test_another_release_takes_its_place_with_its_settings(story: Story) -> None:
    done, again, third, status = story.upgraded
    assert done.code == 0, done.out
    for step in ("containerd stopped", "program containerd", "mirrors of docker.io", "containerd runs and answers"):
        assert f"done    {step}\n" in done.out
    program = "Program Files/containerd/containerd.exe"
    assert story.after[0][program] != story.joined[0][program]
    assert story.after[0][f"{OURS}previous/containerd.exe"] == story.joined[0][program]
    assert hosts(story.machine) == {
        "docker.io": '[host."https://other.example.com"]\ncapabilities = ["pull", "resolve"]\n'
    }
    assert again.out == third.out
    assert "nothing had to be changed" in again.out
    assert status.code == 0, status.out


def kubelet_comes_back(machine: Worker, until: threading.Event) -> None:
    """What the service manager of Windows does, and wine's does not."""
    while not until.wait(1):
        if "STOPPED" in machine.ground.run(["sc", "query", "kubelet"]).out:
            machine.ground.run(["net", "start", "kubelet"])


def claims(machine: Worker) -> dict[str, tuple[str, str]]:
    report = json.loads(machine.ground.path(r"C:\ground\shown.json").read_text())
    return {claim["claim"]: (claim["shown"], claim["words"]) for claim in report["claims"]}


def test_show_tries_what_it_is_told_to_try_and_says_what_it_did(story: Story) -> None:
    machine, recovery = story.machine, "the service manager starts a kubelet again that was killed"
    before = machine.picture()
    show = r"show -Report C:\ground\shown.json -Try"
    (alone,) = machine.node(show)
    shown, words = claims(machine)[recovery]
    assert shown == "no", words
    assert "this script started it again, and it is healthy" in words
    shown, words = claims(machine)["somebody who is no administrator can use a volume, and nothing beside it"]
    assert shown == "unknown", words
    assert words.endswith("; removed again")
    shown, words = claims(machine)["an upgrade was done on this machine"]
    assert shown == "yes"
    assert f"has Kubernetes {RELEASE}; the old programs are in " in words
    assert alone.code == 1
    over = threading.Event()
    manager = threading.Thread(target=kubelet_comes_back, args=(machine, over))
    manager.start()
    try:
        machine.node(show)
    finally:
        over.set()
        manager.join()
    shown, words = claims(machine)[recovery]
    assert shown == "yes", words
    machine.node(f"{show} -WhatIf")
    shown, words = claims(machine)[recovery]
    assert (shown, words) == ("unknown", "not tried: show -Try does it (it ends the kubelet once)")
    assert machine.picture() == before
    (status,) = machine.node("status")
    assert status.code == 0, status.out


def test_reset_takes_mirrors_and_both_releases_with_it(story: Story) -> None:
    (result,) = story.machine.node("reset")
    assert result.code == 0, result.out
    files = story.machine.files()
    assert not [name for name in files if "containerd" in name]
    assert {name for name in files if name.startswith(OURS)} == {f"{OURS}logs"}

"""Features that need a reboot: exit code 3010, and the join goes on by itself."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from node.mirror import running
from windows.cluster import RELEASE, TOKEN, api_server
from windows.ground import Ground, Result
from windows.worker import JOIN, Worker, make_bundle, publish, worker

RESUME = r"C:\ProgramData\winready\resume.json"
TASK = r"-NoProfile -NonInteractive -ExecutionPolicy Bypass -File C:\ProgramData\winready\bundle\node.ps1 join -Resume"


def go_on(machine: Worker, features: dict[str, str]) -> Result:
    """What the task of the machine does after a reboot, at which Windows finishes its features."""
    (task,) = machine.state["tasks"].values()
    machine.set_state(features=features)
    machine.ground.reboot()
    script, _, arguments = task["Argument"].partition(" -File ")[2].partition(" ")
    (result,) = machine.powershell(f"& '{script}' {arguments}")
    return result


@dataclass
class Story:
    machine: Worker
    first: Result
    impatient: Result
    calls: list[dict[str, Any]]
    state: dict[str, Any]
    kept: dict[str, Any]
    status: Result
    gone_on: Result
    after: list[dict[str, Any]]


@pytest.fixture(scope="module")
def story(bundles: dict[str, Path]) -> Iterator[Story]:
    with worker(bundles[RELEASE], features={"Containers": "Disabled"}, features_need_reboot=True) as machine:
        first, impatient, status = machine.node(JOIN, f"{JOIN} -Restart", "status")
        calls, state = machine.calls(), machine.state
        kept = json.loads(machine.ground.path(RESUME).read_text())
        # The bundle that it was started from need not be there any more.
        machine.ground.path(r"C:\bundle").rename(machine.ground.path(r"C:\ground\moved"))
        gone_on = go_on(machine, {"Containers": "Enabled"})
        yield Story(machine, first, impatient, calls, state, kept, status, gone_on, machine.calls())


def test_a_feature_that_needs_a_reboot_is_exit_code_3010(story: Story) -> None:
    assert story.first.code == 3010
    assert "a reboot is needed; after it the join goes on by itself" in story.first.out
    enabled = [call["given"] for call in story.calls if call["call"] == "Enable-WindowsOptionalFeature"]
    assert enabled[0] == {"Online": "True", "FeatureName": "Containers", "All": "True", "NoRestart": "True"}
    assert story.status.code == 1
    assert "the join goes on after a reboot" in story.status.out


def test_a_task_waits_for_the_reboot(story: Story) -> None:
    (task,) = story.state["tasks"].values()
    assert task["Argument"] == TASK
    assert task["AtStartup"] is True
    assert (task["UserId"], task["RunLevel"]) == ("S-1-5-18", "Highest")
    assert task["Execute"].lower() == r"c:\windows\system32\windowspowershell\v1.0\powershell.exe"


def test_the_token_waits_in_a_closed_file(story: Story) -> None:
    assert story.kept["token"] == TOKEN
    rights = [call["given"] for call in story.calls if call["given"].get("LiteralPath") == RESUME]
    assert {(right["Size"], right["Sddl"]) for right in rights} == {("0", "O:BAD:P(A;;FA;;;SY)(A;;FA;;;BA)")}
    for text in (story.first.out, story.gone_on.out, story.machine.log(), json.dumps(story.state["tasks"])):
        assert TOKEN not in text


def test_it_reboots_by_itself_only_when_it_is_told_to(story: Story) -> None:
    assert story.impatient.code == 3010
    assert [call["given"] for call in story.calls if call["call"] == "Restart-Computer"] == [{"Force": "True"}]
    assert "rebooting now" in story.impatient.out
    assert "rebooting now" not in story.first.out


def test_the_join_goes_on_and_leaves_no_task_and_no_token(story: Story) -> None:
    assert story.gone_on.code == 0, story.gone_on.out
    assert "next: winready node verify windows-1" in story.gone_on.out
    assert list(story.machine.state["tasks"]) == ["winready-containerd-log"]
    assert not story.machine.ground.path(RESUME).exists()
    assert "Unregister-ScheduledTask" in {call["call"] for call in story.after}
    (again,) = story.machine.powershell(r"& C:\ProgramData\winready\bundle\node.ps1 join -Resume")
    assert again.code == 2
    assert "there is nothing to go on with" in again.out


def test_several_features_need_one_reboot_and_a_network_that_comes_up_late_is_waited_for(tmp_path: Path) -> None:
    with running() as mirror:
        publish(mirror, RELEASE)
        make_bundle(mirror, RELEASE, tmp_path / "bundle", "--offline", "--hyperv")
    both = {"Containers": "Disabled", "Microsoft-Hyper-V": "Disabled"}
    with Ground() as ground:
        machine = Worker(ground)
        machine.prepare(tmp_path / "bundle", features=both, features_need_reboot=True)
        with api_server(ground):
            (first,) = machine.node(JOIN)
        assert first.code == 3010
        assert set(machine.state["features"].values()) == {"EnablePending"}
        # Up after the script has looked for the first time, as networks are after a boot.
        up = threading.Event()
        servers = [api_server(ground)]

        def come_up() -> None:
            up.wait(20)
            servers[0].__enter__()

        late = threading.Timer(8, up.set)
        server = threading.Thread(target=come_up)
        late.start()
        server.start()
        gone_on = go_on(machine, dict.fromkeys(both, "Enabled"))
        server.join()
        servers[0].__exit__(None, None, None)
        assert gone_on.code == 0, gone_on.out


def test_what_fails_after_the_reboot_is_in_the_log(bundles: dict[str, Path]) -> None:
    with worker(bundles[RELEASE], features={"Containers": "Disabled"}, features_need_reboot=True) as machine:
        assert [result.code for result in machine.node(JOIN)] == [3010]
        machine.set_build(17763)
        result = go_on(machine, {"Containers": "Enabled"})
        assert result.code == 2
        assert re.search(r"^\S+Z error: this Windows \(build 17763\) is too old", machine.log(), re.MULTILINE)


def test_a_machine_that_waits_for_its_reboot_can_be_taken_back(bundles: dict[str, Path]) -> None:
    with worker(bundles[RELEASE], features={"Containers": "Disabled"}, features_need_reboot=True) as machine:
        before = machine.files()
        first, reset, again = machine.node(JOIN, "reset", "reset")
        assert (first.code, reset.code, again.code) == (3010, 0, 0), reset.out
        assert machine.state["tasks"] == {}
        assert not machine.ground.path(RESUME).exists()
        assert set(machine.files()) - set(before) == {"ProgramData/winready", "ProgramData/winready/logs"}
        assert "left    Windows feature Containers (" in reset.out
        assert again.out.startswith("nothing to reset: ")

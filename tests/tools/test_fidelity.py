"""The program behind docs/sandbox-fidelity.md: outcomes are measured, and nothing is explained away."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fidelity_page
import fidelity_specs
from fidelity import arguments, shard
from fidelity_page import Judgement, Row, junit, page, row
from fidelity_specs import REASONS, chosen, in_shard
from fidelity_state import About, Measured, State
from winready.engine.rules.conformance import read_conformance
from winready.upstream.binary import Binary
from winready.upstream.listing import Listing

BINARY = Binary(Path("e2e.test"), "v1.36.3")
HYBRID = "[sig-windows] Hybrid cluster network for all supported CNIs should have stable networking"
HYPERV = "[sig-windows] [Feature:WindowsHyperVContainers] HyperV containers should start a hyperv isolated container"
GMSA = "[sig-windows] [Feature:Windows] GMSA Full [Serial] [Slow] GMSA support works end to end"
DEVICE = (
    "[sig-windows] [Feature:GPUDevicePlugin] Device Plugin should be able to create a functioning device plugin for "
    "Windows"
)
REBOOT = "[sig-windows] [Feature:Windows] X [Serial] [Disruptive] [Slow] should reboot"
COMMANDS = (
    "[sig-windows] [Feature:WindowsHostProcessContainers] HostProcess containers container command path validation"
)
GENERIC = "[sig-network] Services should work after the service has been recreated"
UNUSED = "[sig-network] Services should do something that we have no use for"
BOTH = "[sig-node] Pods should be updated [NodeConformance] [Conformance]"
LINUX = "[sig-node] Sysctls [LinuxOnly] [NodeConformance] should support sysctls [Conformance]"
TIMED = "[sig-node] Probing container with readiness probe should not be ready before initial delay [Conformance]"


def measured(text: str, status: str = "passed", on: str = "steered", **more: object) -> Measured:
    return Measured(round=on, text=text, status=status, **more)  # type: ignore[arg-type]


def test_every_spec_is_run_on_the_cluster_that_it_needs() -> None:
    texts = (HYBRID, HYPERV, GMSA, DEVICE, REBOOT, COMMANDS, GENERIC, UNUSED, BOTH, LINUX, TIMED)
    rounds = chosen(Listing("a list", texts), BINARY)
    assert {name: [spec.text for spec in specs] for name, specs in rounds.items()} == {
        "pinned": [HYBRID],
        "steered": [GMSA, GENERIC, BOTH],
        "steered-timed": [TIMED],
        "dual-stack": [],
        "containerd-1.6": [COMMANDS],
        "hyper-v": [HYPERV],
        "shutdown": [REBOOT],
        "linux": [BOTH, LINUX],
        "linux-timed": [TIMED],
    }, "a GPU is waited for in vain: that one is only named; what is for Linux only does not go to Windows"


def test_shards_are_apart_and_together_everything() -> None:
    texts = [f"[sig-x] spec {number}" for number in range(200)]
    parts = [[text for text in texts if in_shard(text, (part, 3))] for part in (1, 2, 3)]
    assert sorted(text for part in parts for text in part) == sorted(texts)
    assert min(map(len, parts)) > 40
    assert shard("2/3") == (2, 3)


@pytest.mark.parametrize("words", [["--shard", "4/3"], ["--shard", "x"], ["--again", "twice"], ["--round", "mars"]])
def test_wrong_words_are_refused(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["fidelity.py", *words])
    with pytest.raises(SystemExit) as ended:
        arguments()
    assert ended.value.code == 2


@pytest.mark.parametrize("status", ["failed", "unfinished", "crashed"])
def test_what_does_not_pass_needs_a_reason(status: str) -> None:
    told = row(measured(HYBRID, status, message="\n  expected this\nand that"), REASONS)
    assert (told.outcome, told.why, told.unexplained) == (status, "unexplained: expected this", True)
    known = row(measured(GMSA, status, message="no such node"), REASONS)
    assert "k8sgmsa.lan" in known.why
    assert not known.unexplained


def test_a_reason_that_is_no_longer_needed_is_noticed() -> None:
    told = row(measured(GMSA), REASONS)
    assert told.unexplained
    assert "take its reason out" in told.why


def test_a_steered_spec_that_passed_on_linux_says_nothing_about_windows() -> None:
    told = row(measured(GENERIC, systems={"linux": 2}), REASONS)
    assert (told.outcome, told.where, told.unexplained) == ("passed on Linux only", "2 on linux", True)
    mixed = row(measured(GENERIC, systems={"linux": 1, "windows": 1}), REASONS)
    assert (mixed.outcome, mixed.where, mixed.unexplained) == ("passed", "1 on windows, 1 on linux", False)
    assert row(measured(BOTH), {}).api


def test_what_upstream_itself_skips_on_windows_windows_cannot_run() -> None:
    told = row(measured(BOTH, "skipped", message="Only supported for node OS distro [debian]"), {})
    assert (told.outcome, told.unexplained) == (fidelity_page.ITSELF, False)
    assert row(measured(BOTH, "skipped", "linux", message="no storage class"), {}).unexplained


def test_results_outlive_a_kill_and_the_newest_counts(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "state.jsonl"
    state = State(path)
    state.add(About("linux", "v1.36.3", ["a node"]))
    state.add(measured(BOTH, "failed", "linux"))
    path.write_bytes(path.read_bytes() + b'{"round":"linux","te')
    again = State(path)
    assert again.wanted("linux", BOTH, "failed")
    assert not again.wanted("linux", BOTH, "")
    again.add(measured(BOTH, "passed", "linux", seconds=3.5))
    last = State(path)
    assert last.results["linux", BOTH].passed
    assert last.seconds("linux", BOTH, 40.0) == 3.5
    assert not last.wanted("linux", BOTH, "failed")
    assert last.wanted("linux", BOTH, "all")
    assert last.wanted("steered", BOTH, "")
    assert State(tmp_path / "other.jsonl", [path]).results == last.results
    assert last.about["linux"].nodes == ["a node"]


def judged(**rows: list[Row]) -> Judgement:
    return Judgement(**{"linux": [], "steered": [], "windows": [], "generic": [], **rows})


def test_the_page_counts_and_escapes(tmp_path: Path) -> None:
    state = State(tmp_path / "none")
    state.add(About("pinned", "v1.36.3", ["Windows Server 2022"]))
    state.add(measured(GENERIC, systems={"windows": 1}, at="2026-11-18 04:00", uses={"applet ls": ["d"]}))
    state.add(measured(HYBRID, on="pinned", systems={"windows": 1}, at="2026-11-17 04:00", uses={"applet ls": ["l"]}))
    text = page(
        state,
        judged(
            linux=[Row(BOTH, "passed", api=True), Row(LINUX, "failed", why="needs | more")],
            steered=[Row(BOTH, fidelity_page.ITSELF, why="not here"), Row(TIMED, "passed")],
            windows=[Row(HYBRID, "passed", "1 on windows"), Row(HYPERV, "skipped", "", "needs | Hyper-V")],
            generic=[Row(GENERIC, "passed", "3 on windows")],
        ),
    )
    assert "**1 of 2** conformance specs pass on Linux nodes" in text
    assert "**1 of 1** conformance specs that Windows can run pass there" in text
    assert "**1 of 2** specs of `[sig-windows]` pass" in text
    assert "**1 of 1** generic specs pass" in text
    assert "| sig-node | 1 | 2 | 1 | 1 | 1 | 0 |" in text
    assert f"| {LINUX} | failed | needs \\| more |" in text
    assert "| **skipped** |  | needs \\| Hyper-V |" in text
    assert f"| `applet ls` | `d` `l` | {GENERIC}, and 1 more |" in text
    assert "Measured 2026-11-17 to 2026-11-18 by" in text
    assert "{" not in text


def test_what_was_not_measured_is_said_and_is_not_in_the_record(tmp_path: Path) -> None:
    state = State(tmp_path / "state.jsonl")
    state.add(measured(BOTH, on="linux"))
    state.add(measured(LINUX, "failed", "linux", message="a < b"))
    result = fidelity_page.judgement(state, [BOTH, LINUX, TIMED, DEVICE], set())
    assert {each.text: each.outcome for each in result.linux} == {
        BOTH: "passed",
        LINUX: "failed",
        TIMED: "not measured",
    }
    assert [each.outcome for each in result.windows] == ["not run"]
    file = tmp_path / "junit.xml"
    file.write_text(junit(result.linux))
    read = read_conformance(file)
    assert (read.passed, read.failed) == (1, [LINUX])


def test_the_page_in_the_documentation_is_this_programs_and_explains_everything() -> None:
    text = (Path(fidelity_specs.__file__).parents[1] / "docs" / "sandbox-fidelity.md").read_text()
    fixed = [line for line in fidelity_page.PAGE.splitlines() if line and "{" not in line]
    assert [line for line in fixed if line not in text] == []
    assert "unexplained" not in text
    least = {
        "conformance specs pass on Linux nodes": 430,
        "conformance specs that Windows can run pass there": 375,
        "specs of `[sig-windows]` pass": 34,
    }
    for what, number in least.items():
        total = re.search(rf"\*\*(\d+) of (\d+)\*\* {re.escape(what)}", text)
        assert total is not None
        assert int(total[1]) >= number

"""The program behind docs/sandbox-fidelity.md: outcomes are measured, and nothing is explained away."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fidelity
from winready.cluster.evidence import PodFact
from winready.upstream.binary import Binary
from winready.upstream.listing import Listing
from winready.upstream.suite import Result, Status
from winready.upstream.watcher import Witnessed

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


def result(text: str, status: Status, message: str = "", systems: tuple[str, ...] = ()) -> Result:
    pods = tuple(
        Witnessed(PodFact(namespace="n", name=f"p{number}", uid=str(number), node=os, os=os), False, "", {})
        for number, os in enumerate(systems)
    )
    return Result("name", text, status, message, pods=pods)


def test_every_spec_of_sig_windows_and_every_used_generic_one_is_run_on_the_cluster_it_needs() -> None:
    listing = Listing("a list", (HYBRID, HYPERV, GMSA, DEVICE, REBOOT, COMMANDS, GENERIC, UNUSED))
    rounds = fidelity.chosen(listing, BINARY, "")
    texts = {name: [spec.text for spec in specs] for name, specs in rounds.items()}
    assert texts == {
        "pinned": [HYBRID],
        "steered": [GMSA, GENERIC],
        "dual-stack": [],
        "containerd-1.6": [COMMANDS],
        "hyper-v": [HYPERV],
        "shutdown": [REBOOT],
    }, "a GPU is waited for in vain: that one is only named"


@pytest.mark.parametrize("status", ["failed", "skipped", "unfinished", "crashed"])
def test_what_does_not_pass_needs_a_reason(status: Status) -> None:
    row = fidelity.row(result(HYBRID, status, "\n  expected this\nand that"), steered=False)
    assert (row.outcome, row.why, row.unexplained) == (status, "unexplained: expected this", True)
    known = fidelity.row(result(GMSA, status, "no such node"), steered=True)
    assert "k8sgmsa.lan" in known.why
    assert not known.unexplained


def test_a_reason_that_is_no_longer_needed_is_noticed() -> None:
    row = fidelity.row(result(GMSA, "passed"), steered=False)
    assert row.unexplained
    assert "take its reason out" in row.why


def test_a_steered_spec_that_passed_on_linux_says_nothing_about_windows() -> None:
    row = fidelity.row(result(GENERIC, "passed", systems=("linux", "linux")), steered=True)
    assert (row.outcome, row.where, row.unexplained) == ("passed on Linux only", "2 on linux", True)
    mixed = fidelity.row(result(GENERIC, "passed", systems=("linux", "windows")), steered=True)
    assert (mixed.outcome, mixed.where, mixed.unexplained) == ("passed", "1 on windows, 1 on linux", False)


def test_the_page_counts_and_escapes() -> None:
    rows = [
        fidelity.Row("windows", HYBRID, "passed", "1 on windows"),
        fidelity.Row("windows", HYPERV, "skipped", "", "needs | Hyper-V"),
        fidelity.Row("generic", GENERIC, "passed", "3 on windows"),
    ]
    uses = {"cmdlet Get-Content": fidelity.Use({"path"}, {GENERIC, HYBRID})}
    page = fidelity.page(rows, BINARY, {}, uses)
    assert "**1 of 2** specs of `[sig-windows]` pass" in page
    assert "**1 of 1** generic specs pass" in page
    assert "e2e.test v1.36.3" in page
    assert "| **skipped** |  | needs \\| Hyper-V |" in page
    assert f"| `cmdlet Get-Content` | `path` | {GENERIC}, and 1 more |" in page
    assert "{" not in page


def test_what_a_sandbox_recorded_is_told_by_spec_and_the_clusters_own_pods_are_left_out() -> None:
    lines = [
        '{"namespace": "n", "kind": "applet", "name": "ls", "options": ["d"]}',
        '{"namespace": "n", "kind": "applet", "name": "ls", "options": ["l"]}',
        '{"namespace": "kube-system", "kind": "program", "name": "coredns", "options": []}',
    ]
    uses: dict[str, fidelity.Use] = {}
    fidelity.note_uses(uses, lines, [result(HYBRID, "passed", systems=("windows",))])
    assert uses == {"applet ls": fidelity.Use({"d", "l"}, {HYBRID})}


def test_the_page_in_the_documentation_is_this_programs_and_explains_everything() -> None:
    page = (Path(fidelity.__file__).parents[1] / "docs" / "sandbox-fidelity.md").read_text()
    fixed = [line for line in fidelity.PAGE.splitlines() if line and "{" not in line]
    assert [line for line in fixed if line not in page] == []
    assert "unexplained" not in page
    total = re.search(r"\*\*(\d+) of (\d+)\*\* specs of `\[sig-windows\]` pass", page)
    assert total is not None
    assert int(total[1]) >= 24

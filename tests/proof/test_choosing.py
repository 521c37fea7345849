"""Which trials are held, and what runs in each."""

from __future__ import annotations

import pytest

from winready.checks.registry import load_checks
from winready.engine.selection import select
from winready.proof.choosing import Trial, choose, choose_sound
from winready.proof.expected.model import Expectation, ids
from winready.proof.expected.table import EXPECTATIONS, HEALTHY, expected
from winready.proof.furnishing import furnished, on_request
from winready.spec.loader import load_standard
from winready_sandbox.faults.table import UnknownFault

READ_ONLY = "volumes.windows.read-only-ignored"
STANDARD = load_standard()
CHECKED = {item.id for item in STANDARD.requirements} & load_checks().keys()
EXTENSIONS = {item.id for item in STANDARD.requirements if STANDARD.level(item) != "core"} & CHECKED


def running(trial: Trial) -> set[str]:
    return {item.id for item in select(STANDARD, trial.selection)} & CHECKED


def with_fault(name: str, *, thorough: bool = False) -> Trial:
    (trial,) = choose([], [name], thorough)
    return trial


def skipped(fault: str, thorough: bool = False) -> list[str]:
    (trial,) = choose([], [fault], thorough)
    return trial.selection.skip


def test_long_observations_run_where_they_are_at_stake() -> None:
    (reboot,) = ids("S6")
    assert reboot in skipped(READ_ONLY)
    assert reboot not in skipped(READ_ONLY, thorough=True)
    assert reboot not in skipped("node.windows.never-returns")
    sound = {trial.name: trial.selection.skip for trial in choose_sound([], [], False)}
    assert not {*ids("S5 S6 C1 P7")} & {*sound[HEALTHY]}
    assert reboot in sound["nodes.dual-stack"]
    assert reboot not in sound["nodes.graceful-shutdown"]


def test_a_fault_that_waits_for_a_reboot_is_tried_with_those_who_reboot() -> None:
    (trial,) = choose([], ["reboot.windows.dns-dead"], False)
    assert trial.selection.requirements == ids("S6")
    assert running(with_fault("reboot.windows.dns-dead", thorough=True)) == CHECKED


def test_all_that_is_checked_is_tried_with_a_fault_that_it_must_notice_and_on_a_sound_cluster() -> None:
    noticed: set[str] = set()
    for trial in choose([], [], False):
        declared = {*expected(trial.name).requirements} & CHECKED
        assert declared <= running(trial), trial.name
        noticed |= declared
    assert noticed == CHECKED
    sound = {trial.name: trial for trial in choose_sound([], [], False)}
    assert running(sound["nodes.dual-stack"]) == CHECKED - {*ids("S5 S6 C1 P7")}
    assert running(sound[HEALTHY]) == CHECKED - {*on_request(STANDARD)}
    # What has no check could not pass, and with it no cluster would.
    assert {item.id for item in select(STANDARD, sound[HEALTHY].selection)} <= CHECKED


def test_extensions_run_with_those_faults_of_the_core_that_concern_them() -> None:
    assert running(with_fault("service-proxy.windows.nodeport-dead")) & EXTENSIONS == {*ids("W3 X2 X4")}
    assert not running(with_fault(READ_ONLY)) & EXTENSIONS
    assert running(with_fault("api.slow")) >= EXTENSIONS - {*ids("P7")}


def test_a_fault_of_extensions_runs_without_the_core_except_what_it_blocks() -> None:
    pings = running(with_fault("machine.windows.pings-dropped"))
    assert pings == {*ids("W1 W2 W3 W4")}
    assert {*ids("X1 X2 X3 X4 X5")} == running(with_fault("link.windows.pods-without-ipv6"))
    assert running(with_fault("machine.windows.pings-dropped", thorough=True)) == CHECKED


def test_a_fault_that_only_blocks_extensions_runs_without_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXPECTATIONS, "machine.windows.pings-dropped", Expectation(blocks="W2"))
    assert running(with_fault("machine.windows.pings-dropped")) == {*ids("W1 W2 W3 W4")}


def test_a_sandbox_is_furnished_for_what_runs_in_it() -> None:
    asked = {name: furnished(STANDARD, with_fault(name).selection) for name in ("link.windows.ipv6-dead", READ_ONLY)}
    assert asked == {"link.windows.ipv6-dead": {"dual_stack": True}, READ_ONLY: {}}
    sound = {trial.name: furnished(STANDARD, trial.selection) for trial in choose_sound([], [], False)}
    assert sound[HEALTHY] == {}


def test_clusters_that_refuse_something_are_judged_by_the_core() -> None:
    (trial,) = choose_sound([], ["refusing.webhook"], True)
    assert not running(trial) & EXTENSIONS


def test_a_category_is_tried_with_its_own_faults_and_the_harmless_ones() -> None:
    chosen = {trial.name for trial in choose(["core.storage"], [], False)}
    assert {READ_ONLY, "api.slow", "node.windows.never-returns"} <= chosen
    assert not {"dns.windows.dead", "runtime.windows.wrong-image", "policy.windows.blocks-all"} & chosen


def test_named_faults_are_tried_alone_and_may_concern_rules_only() -> None:
    names = ["runtime.windows.wrong-image", READ_ONLY]
    assert [trial.name for trial in choose([], names, False)] == names
    with pytest.raises(UnknownFault):
        choose([], ["dns.windows.ded"], False)


def test_named_sound_clusters_are_tried_alone() -> None:
    (trial,) = choose_sound(["core.network"], ["nodes.small"], False)
    assert (trial.name, trial.sound, trial.selection.categories) == ("nodes.small", True, ["core.network"])
    with pytest.raises(ValueError, match=r"'nodes\.smal'.*prove --healthy"):
        choose_sound([], ["nodes.smal"], False)


def test_a_fault_that_no_selected_check_concerns_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no check .* verifies what volumes\.windows\.read-only-ignored concerns"):
        choose(["core.network"], [READ_ONLY], False)

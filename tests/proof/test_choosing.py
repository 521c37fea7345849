"""Which trials are held, and what runs in each."""

from __future__ import annotations

import pytest

from winready.proof.choosing import choose, selection
from winready.proof.expected.model import ids
from winready.proof.expected.table import HEALTHY
from winready_sandbox.faults.table import UnknownFault

READ_ONLY = "volumes.windows.read-only"


def test_long_observations_run_where_they_are_at_stake() -> None:
    (reboot,) = ids("S6")
    assert reboot in selection(READ_ONLY, [], False).skip
    assert reboot not in selection(READ_ONLY, [], True).skip
    assert reboot not in selection(HEALTHY, [], False).skip
    assert reboot not in selection("node.windows.never-returns", [], False).skip


def test_a_category_is_tried_with_its_own_faults_the_harmless_ones_and_none() -> None:
    chosen = [trial.fault for trial in choose(["core.storage"], [], False)]
    assert chosen[0] == HEALTHY
    assert {READ_ONLY, "api.slow", "node.windows.never-returns"} <= set(chosen)
    assert not {"dns.windows.dead", "runtime.windows.wrong-image", "policy.windows.blocks-all"} & set(chosen)


def test_named_faults_are_tried_without_a_healthy_cluster_and_may_concern_rules_only() -> None:
    names = ["runtime.windows.wrong-image", READ_ONLY]
    assert [trial.fault for trial in choose([], names, False)] == names
    with pytest.raises(UnknownFault):
        choose([], ["dns.windows.ded"], False)


def test_a_fault_that_no_selected_check_concerns_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no check .* verifies what volumes\.windows\.read-only concerns"):
        choose(["core.network"], [READ_ONLY], False)

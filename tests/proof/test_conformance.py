"""Linux conformance of the sandbox: what Kubernetes' own tests said of its nodes, sound and broken."""

from __future__ import annotations

import pytest

from winready.engine.rules.conformance import judge_conformance
from winready.proof.conformance import MINOR, conformance_result, measured
from winready.proof.expected.table import EXPECTATIONS
from winready.spec.conformance_tests import conformance_tests, digest
from winready_sandbox.plan import Plan

BROKEN = [name for name, expectation in EXPECTATIONS.items() if expectation.conformance]


def test_all_tests_of_the_sandboxs_version_were_run_and_passed() -> None:
    assert Plan(name="proof").minor == MINOR
    sound = conformance_result()
    assert frozenset(sound.tests or ()) == conformance_tests()[MINOR]
    assert judge_conformance(sound, f"v1.{MINOR}.0")[0] == "passed"
    foreign, reason = judge_conformance(sound, f"v1.{MINOR - 1}.0")
    assert foreign == "blocked"
    assert f"is no result of Kubernetes 1.{MINOR - 1}" in reason


@pytest.mark.parametrize("fault", BROKEN)
def test_what_a_fault_must_fail_was_seen_to_fail_with_it(fault: str) -> None:
    wanted = EXPECTATIONS[fault].conformance
    assert set(measured(fault).failed) == set(wanted)
    result = conformance_result(fault)
    outcome, reason = judge_conformance(result, f"v1.{MINOR}.0")
    assert outcome == "failed"
    assert any(name in reason for name in wanted)
    assert {digest(name) for name in wanted} <= set(result.tests or ())


def test_there_are_such_faults() -> None:
    assert len(BROKEN) >= 2

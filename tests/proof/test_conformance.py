"""The result of Linux conformance that a broken cluster would have left."""

from __future__ import annotations

from winready.engine.rules.conformance import judge_conformance
from winready.proof.conformance import conformance_result
from winready.proof.expected.table import EXPECTATIONS
from winready.spec.conformance_tests import digest
from winready_sandbox.plan import Plan

MINOR = Plan(name="proof").minor


def test_it_is_what_a_cluster_of_that_version_leaves_and_shows_the_fault() -> None:
    assert judge_conformance(conformance_result((), MINOR), f"v1.{MINOR}.0")[0] == "passed"
    for name, expectation in EXPECTATIONS.items():
        if expectation.conformance:
            result = conformance_result(expectation.conformance, MINOR)
            outcome, reason = judge_conformance(result, f"v1.{MINOR}.0")
            assert outcome == "failed", name
            assert expectation.conformance[0] in reason
            assert {digest(test) for test in expectation.conformance} <= set(result.tests or ()), name

"""What a run over features comes to, as an exit code."""

from __future__ import annotations

import pytest

from winready.engine.outcomes import FeatureResult, Outcome
from winready.features.judging import exit_code
from winready.report.record import Record


def _feature(outcome: Outcome) -> FeatureResult:
    return FeatureResult(
        id="probes", name="Probes", area="pods", outcome=outcome, reason="", way="check", support="yes", documented=""
    )


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        (["passed"], 0),
        (["passed", "not-applicable"], 0),
        (["passed", "failed", "blocked"], 1),
        (["passed", "blocked"], 3),
        (["passed", "error"], 3),
        (["not-applicable"], 3),
        ([], 3),
    ],
)
def test_the_exit_code_is_about_features_alone(outcomes: list[Outcome], code: int) -> None:
    record = Record(features=[_feature(outcome) for outcome in outcomes], exit_code=3 if code == 0 else 0)
    assert exit_code(record) == code


def test_an_interruption_and_leftovers_are_told_first() -> None:
    assert exit_code(Record(features=[_feature("passed")], exit_code=130)) == 130
    assert exit_code(Record(features=[_feature("passed")], exit_code=0, leftovers=["namespace x"])) == 3

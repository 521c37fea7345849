"""What outcomes say about workloads: pure, and never more than was shown."""

from __future__ import annotations

from typing import Any

import pytest

from winready.engine.outcomes import NO_CHECK, NO_TESTS, FeatureResult, Outcome, RequirementResult
from winready.engine.plan import UNNAMED
from winready.engine.verdict import EXIT_BLOCKED, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_PASS, Verdict
from winready.engine.workloads import (
    Answer,
    FieldFinding,
    Need,
    Step,
    Workload,
    answers,
    exit_with,
    judge_workload,
)

NODES = ["windows-1", "windows-10", "linux-1"]


def workload(*needs: str, **more: Any) -> Workload:
    listed = [Need(id=need, path="web.yaml", line=number, field="f") for number, need in enumerate(needs, 1)]
    return Workload(kind="Deployment", namespace="shop", name="web", path="web.yaml", line=1, needs=listed, **more)


def requirement(id: str, outcome: Outcome, reason: str = "because") -> RequirementResult:
    return RequirementResult(id=id, category="c", level="core", outcome=outcome, reason=reason, next_step="look")


def feature(id: str, outcome: Outcome, **more: Any) -> FeatureResult:
    given = {"name": id, "area": "a", "reason": "because", "way": "check", "support": "yes", **more}
    return FeatureResult(id=id, outcome=outcome, documented="supported", **given)


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (["passed", "passed"], "passed"),
        (["passed", "failed"], "failed"),
        (["blocked", "failed"], "failed"),
        (["passed", "blocked"], "blocked"),
        (["passed", "error"], "blocked"),
        # A cluster without what a workload relies on is not ready for it.
        (["passed", "not-applicable"], "failed"),
    ],
)
def test_the_worst_decides(outcomes: list[Outcome], expected: Outcome) -> None:
    shown = answers([requirement(f"r.{number}", outcome) for number, outcome in enumerate(outcomes)], [])
    result = judge_workload(workload(*shown), shown, NODES)
    assert (result.outcome, result.ready) == (expected, expected == "passed")
    assert [(use.outcome, use.line) for use in result.features] == [(each, n) for n, each in enumerate(outcomes, 1)]


def test_what_was_not_verified_is_not_shown() -> None:
    result = judge_workload(workload("a.b"), {}, NODES)
    assert (result.outcome, result.ready, result.shown) == ("blocked", False, 0)


def test_a_domain_that_nobody_named_leaves_the_question_open() -> None:
    shown = answers([requirement("r.1", "not-applicable", UNNAMED["gmsa"])], [])
    assert judge_workload(workload("r.1"), shown, NODES).outcome == "blocked"
    shown = answers([], [feature("gmsa", "not-applicable", reason=f"x not-applicable: {UNNAMED['gmsa']}")])
    assert judge_workload(workload("gmsa"), shown, NODES).outcome == "blocked"


def test_a_feature_must_work_whatever_the_data_says() -> None:
    # The cluster does what the data says, namely nothing.
    shown = answers([], [feature("swap", "passed", works=False, support="never")])
    assert judge_workload(workload("swap"), shown, NODES).outcome == "failed"
    # The cluster can do more than the data knows.
    shown = answers([], [feature("swap", "failed", works=True, support="never")])
    assert judge_workload(workload("swap"), shown, NODES).outcome == "passed"


def test_what_only_data_tells_is_no_obstacle_and_not_shown() -> None:
    shown = answers([], [feature("hpa", "not-applicable", way="data", works=None)])
    result = judge_workload(workload("hpa"), shown, NODES)
    assert (result.ready, result.shown, result.features[0].by_data) == (True, 0, True)
    shown = answers([], [feature("hpa", "not-applicable", way="data", works=None, support="no")])
    assert judge_workload(workload("hpa"), shown, NODES).outcome == "failed"


def test_what_took_no_part_in_the_run_says_nothing_against_the_cluster() -> None:
    tests = feature("preemption", "not-applicable", way="upstream", works=None, reason=NO_TESTS)
    (use,) = judge_workload(workload("preemption"), answers([], [tests]), NODES).features
    assert use.by_data
    assert use.reason == f"documented as supported; {NO_TESTS}"
    unsupported = feature("preemption", "not-applicable", way="upstream", works=None, reason=NO_TESTS, support="no")
    assert judge_workload(workload("preemption"), answers([], [unsupported]), NODES).outcome == "failed"
    # The tests took part, and found nothing of the kind.
    none = feature("device-plugins", "not-applicable", way="upstream", works=None, reason="no node has a device")
    assert judge_workload(workload("device-plugins"), answers([], [none]), NODES).outcome == "failed"
    check = feature("probes", "not-applicable", way="check", works=None, reason=NO_CHECK)
    assert judge_workload(workload("probes"), answers([], [check]), NODES).outcome == "blocked"


def test_the_nodes_that_a_reason_names() -> None:
    shown = {"a": Answer(outcome="failed", reason="pod x on node windows-10 is silent", next_step="")}
    assert judge_workload(workload("a"), shown, NODES).features[0].nodes == ["windows-10"]


def test_a_field_that_windows_refuses_keeps_a_workload_from_being_ready() -> None:
    refused = FieldFinding(rule="r", severity="error", effect="rejected", path="web.yaml", line=3, reason="no")
    assert judge_workload(workload(findings=[refused]), {}, NODES).outcome == "failed"
    ignored = FieldFinding(rule="r", severity="warning", effect="ignored", path="web.yaml", line=3, reason="no")
    result = judge_workload(workload(findings=[ignored]), {}, NODES)
    assert result.ready
    assert result.findings == [ignored]


def test_how_far_its_own_pod_came_counts() -> None:
    steps = [Step(node=node, reached="x", outcome="passed", reason="") for node in ("windows-2", "windows-1")]
    result = judge_workload(workload(), {}, NODES, steps)
    assert result.ready
    assert [step.node for step in result.tried] == ["windows-1", "windows-2"]
    failed = Step(node="windows-3", reached="pulled", outcome="failed", reason="")
    assert judge_workload(workload(), {}, NODES, [*steps, failed]).outcome == "failed"


@pytest.mark.parametrize(
    ("code", "outcomes", "expected"),
    [
        (EXIT_PASS, [], EXIT_PASS),
        (EXIT_PASS, ["passed"], EXIT_PASS),
        (EXIT_PASS, ["passed", "failed"], EXIT_FAILED),
        (EXIT_PASS, ["blocked"], EXIT_BLOCKED),
        (EXIT_BLOCKED, ["failed"], EXIT_FAILED),
        (EXIT_BLOCKED, ["passed"], EXIT_BLOCKED),
        (EXIT_FAILED, ["blocked"], EXIT_FAILED),
        (EXIT_INTERRUPTED, ["failed"], EXIT_INTERRUPTED),
    ],
)
def test_the_exit_code_tells_of_workloads_and_the_verdict_does_not(
    code: int, outcomes: list[Outcome], expected: int
) -> None:
    verdict = Verdict(verdict="Pass", scope="partial", exit_code=code, core_selected=1, core_total=24, reasons=[])
    shown: dict[str, Answer] = {each: Answer(outcome=each, reason="") for each in outcomes}
    found = exit_with(verdict, [judge_workload(workload(each), shown, NODES) for each in outcomes])
    assert (found.verdict, found.exit_code) == ("Pass", expected)

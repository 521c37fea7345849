"""The rules of the verdict, one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winready.engine.outcomes import Outcome, RequirementResult, RuleResult
from winready.engine.verdict import judge, refused
from winready.spec.loader import load_standard

STANDARD = load_standard()
CORE = [item for item in STANDARD.requirements if STANDARD.level(item) == "core"]
OUTCOMES: list[Outcome] = ["passed", "failed", "blocked", "not-applicable", "error"]


def result(requirement_id: str, outcome: Outcome = "passed") -> RequirementResult:
    item = STANDARD.requirement(requirement_id)
    return RequirementResult(
        id=item.id, category=item.category, level=STANDARD.level(item), outcome=outcome, reason="because"
    )


def rule(outcome: Outcome = "passed", waived_by: str | None = None, gates: str = "run") -> RuleResult:
    return RuleResult(id="rule.cluster-size", outcome=outcome, reason="because", gates=gates, waived_by=waived_by)


def core(**changed: Outcome) -> list[RequirementResult]:
    by_key = {item.key: item for item in CORE}
    return [result(item.id, changed.get(key, "passed")) for key, item in by_key.items()]


def test_all_core_requirements_and_rules_passed_is_a_complete_pass() -> None:
    verdict = judge(STANDARD, core(), [rule()])
    assert (verdict.verdict, verdict.scope, verdict.exit_code, str(verdict)) == ("Pass", "complete", 0, "Pass")


def test_a_selection_passes_only_as_partial() -> None:
    verdict = judge(STANDARD, [result("core.network.dns-internal")], [rule()])
    assert str(verdict) == "Pass (partial: 1 of 24 core requirements)"
    assert verdict.exit_code == 0


def test_nodes_that_were_not_judged_stand_in_the_verdict() -> None:
    words = "10 of 12 Windows nodes judged"
    assert str(judge(STANDARD, core(), [rule()], coverage=words)) == f"Pass ({words})"
    assert str(judge(STANDARD, core(N1="failed"), [rule()], coverage=words)) == f"Fail ({words})"
    partial = judge(STANDARD, [result("core.network.dns-internal")], [rule()], coverage=words)
    assert str(partial) == f"Pass (partial: 1 of 24 core requirements; {words})"
    assert partial.exit_code == 0


@pytest.mark.parametrize(("outcome", "exit_code"), [("failed", 1), ("blocked", 3), ("error", 3), ("not-applicable", 3)])
def test_one_core_requirement_that_did_not_pass_is_a_fail(outcome: Outcome, exit_code: int) -> None:
    verdict = judge(STANDARD, core(N1=outcome), [rule()])
    assert (verdict.verdict, verdict.exit_code) == ("Fail", exit_code)
    assert "core.network.windows-to-linux-service-ip" in verdict.reasons[0]


def test_outside_names_may_be_missing_only_when_the_operator_says_air_gapped() -> None:
    results = core(N11="not-applicable")
    assert judge(STANDARD, results, [rule()]).verdict == "Fail"
    assert judge(STANDARD, results, [rule()], air_gapped=True).verdict == "Pass"
    assert judge(STANDARD, core(N11="failed"), [rule()], air_gapped=True).exit_code == 1
    assert judge(STANDARD, core(N10="not-applicable"), [rule()], air_gapped=True).verdict == "Fail"


def test_an_extension_may_be_not_applicable_but_not_failed() -> None:
    extra = "extend.hostprocess.node-ip"
    assert judge(STANDARD, [*core(), result(extra, "not-applicable")], [rule()]).verdict == "Pass"
    assert judge(STANDARD, [*core(), result(extra, "failed")], [rule()]).exit_code == 1
    assert judge(STANDARD, [*core(), result(extra, "blocked")], [rule()]).exit_code == 3


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_advisory_requirements_never_gate(outcome: Outcome) -> None:
    assert judge(STANDARD, [*core(), result("extend.worker.node-ping", outcome)], [rule()]).verdict == "Pass"


def test_a_failed_rule_fails_the_run_unless_its_own_flag_waives_it() -> None:
    assert judge(STANDARD, core(), [rule("failed")]).exit_code == 1
    assert judge(STANDARD, core(), [rule("blocked")]).exit_code == 3
    assert judge(STANDARD, core(), [rule("failed", waived_by="--allow-small-cluster")]).verdict == "Pass"
    assert judge(STANDARD, core(), [rule("failed", gates="certificate")]).verdict == "Pass"


def test_nothing_verified_is_never_a_pass() -> None:
    assert judge(STANDARD, [], []).exit_code == 3
    assert judge(STANDARD, [result("extend.network.dual-stack", "not-applicable")], [rule()]).exit_code == 3


def test_an_interrupted_run_has_no_verdict_even_if_everything_so_far_passed() -> None:
    verdict = judge(STANDARD, core(), [rule()], interrupted=True)
    assert (verdict.verdict, verdict.exit_code, str(verdict)) == (None, 130, "Interrupted, no verdict")
    assert refused(verdict, "the disk is full").verdict is None


def test_what_failed_before_an_interruption_is_still_told() -> None:
    verdict = judge(STANDARD, core(N1="failed", N2="blocked"), [rule("blocked")], interrupted=True)
    assert verdict.verdict is None
    assert verdict.reasons[0] == "the run was interrupted"
    assert [reason.split()[0] for reason in verdict.reasons[1:]] == [next(item.id for item in CORE if item.key == "N1")]


@given(
    st.lists(st.sampled_from(OUTCOMES), min_size=len(CORE), max_size=len(CORE)),
    st.sampled_from(OUTCOMES),
    st.booleans(),
)
def test_pass_means_that_every_core_requirement_and_rule_passed(
    outcomes: list[Outcome], rule_outcome: Outcome, air_gapped: bool
) -> None:
    results = [result(item.id, outcome) for item, outcome in zip(CORE, outcomes, strict=True)]
    verdict = judge(STANDARD, results, [rule(rule_outcome)], air_gapped=air_gapped)
    allowed = [
        item.outcome == "passed"
        or (item.outcome == "not-applicable" and air_gapped and item.id.endswith("dns-external"))
        for item in results
    ]
    rule_fine = rule_outcome in ("passed", "not-applicable")
    assert (verdict.verdict == "Pass") == (all(allowed) and rule_fine)
    assert (verdict.exit_code == 0) == (verdict.verdict == "Pass")
    assert (verdict.exit_code == 1) == ("failed" in outcomes or rule_outcome == "failed")

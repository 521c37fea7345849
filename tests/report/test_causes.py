"""One cause groups what it concerns."""

from __future__ import annotations

import msgspec

from report import samples
from winready.engine.outcomes import Outcome, RequirementResult, RuleResult
from winready.report.causes import by_cause

GONE = "the API server at https://cluster.example:6443 cannot be reached"


def rule(name: str, outcome: Outcome, reason: str, *, gates: str = "run", waived_by: str | None = None) -> RuleResult:
    return RuleResult(id=f"rule.{name}", outcome=outcome, reason=reason, gates=gates, waived_by=waived_by)


def unjudged(name: str, outcome: Outcome, reason: str) -> RequirementResult:
    return samples.result(name, outcome, reason=reason, next_step="look at the API server")


def test_one_cause_of_everything_is_told_once_with_the_rules_that_follow() -> None:
    results = [unjudged(name, "error", GONE) for name in samples.CORE]
    rules = [
        rule("windows-builds", "error", "the cluster could not be looked at"),
        rule("images", "blocked", "no Windows pod was started"),
        rule("linux-conformance", "blocked", "absent", gates="certificate"),
    ]
    (cause,) = by_cause(results, rules)
    assert (cause.outcome, cause.reason, cause.next_step) == ("error", GONE, "look at the API server")
    assert cause.concerns == "24 requirements and 2 rules"
    assert cause.ids == [*samples.CORE, "rule.windows-builds", "rule.images"]


def test_a_rule_that_failed_is_a_cause_of_its_own_even_then() -> None:
    results = [unjudged(name, "blocked", "no Windows node can be used") for name in samples.CORE]
    rules = [
        rule("cluster-size", "failed", "1 of 2 Windows nodes"),
        rule("windows-builds", "blocked", "no Windows node can be used"),
    ]
    size, nodes = by_cause(results, rules)
    assert (size.ids, size.concerns) == (["rule.cluster-size"], "1 rule")
    assert nodes.concerns == "24 requirements and 1 rule"
    assert nodes.rules


def test_a_rule_that_could_not_be_judged_stands_alone_when_something_else_could() -> None:
    results = [samples.result(samples.CORE[0]), unjudged(samples.CORE[1], "blocked", "no domain")]
    causes = by_cause(results, [rule("images", "blocked", "shown by others")])
    assert [cause.ids for cause in causes] == [[samples.CORE[1]], ["rule.images"]]


def test_what_decides_comes_first_then_the_worst_then_the_widest() -> None:
    advisory = next(item.id for item in samples.STANDARD.requirements if samples.STANDARD.level(item) == "advisory")
    one, two, three, four = samples.CORE[:4]
    results = [
        samples.result(advisory, "failed", reason="beside the point"),
        unjudged(one, "blocked", "no room"),
        unjudged(two, "failed", "no route"),
        unjudged(three, "failed", "no answer from ws-5d9f7c6b88-x2x4z after 61.2 s"),
        unjudged(four, "failed", "no answer from ws-5d9f7c6b88-k9q2p after 60.9 s"),
    ]
    causes = by_cause(results, [])
    assert [cause.ids for cause in causes] == [[three, four], [two], [one], [advisory]]
    assert [cause.decides for cause in causes] == [True, True, True, False]
    assert "61.2 s" in causes[0].reason


def test_waived_rules_and_what_need_not_apply_are_no_causes() -> None:
    dns = samples.result("core.network.dns-external", "not-applicable", reason="no way to the internet")
    waived = rule("cluster-size", "failed", "too small", waived_by="--allow-small-cluster")
    assert by_cause([samples.result(samples.CORE[0]), dns], [waived], air_gapped=True) == []
    (cause,) = by_cause([samples.result(samples.CORE[0]), dns], [waived])
    assert (cause.outcome, cause.ids) == ("not-applicable", [dns.id])


def test_the_same_words_for_another_outcome_are_another_cause() -> None:
    failed = unjudged(samples.CORE[0], "failed", "no answer")
    blocked = msgspec.structs.replace(failed, id=samples.CORE[1], outcome="blocked")
    assert [cause.outcome for cause in by_cause([blocked, failed], [])] == ["failed", "blocked"]

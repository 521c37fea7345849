"""What counts as noticed, missed and a false alarm."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from winready.engine.outcomes import Outcome, RequirementResult, RuleResult
from winready.proof.expected.model import HARMLESS, Expectation, ids
from winready.proof.healthy.model import Variant
from winready.proof.healthy.table import VARIANTS
from winready.proof.judgement import Proof, Soundness, judge, judge_sound
from winready.report.record import Record

READ_ONLY = Expectation("S1 S2 S4", blocks="S3")
WRONG_IMAGE = Expectation("images")


def proof(expectation: Expectation, node: str, **outcomes: Outcome) -> Proof:
    """The judgement of a run with these outcomes; everything that is not named passed."""
    record = Record()
    for key in ("S1", "S2", "S3", "S4", "N1"):
        outcome = outcomes.get(key, "passed")
        record.requirements.append(
            RequirementResult(
                id=ids(key)[0], category="c", level="core", outcome=outcome, reason="pod x on node windows-1"
            )
        )
    images = outcomes.get("images", "passed")
    record.rules.append(RuleResult(id="rule.images", outcome=images, reason="", gates="run"))
    return judge("broken", expectation, node, record)


def test_what_must_fail_has_failed_and_names_the_node() -> None:
    good = proof(READ_ONLY, "windows-1", S1="failed", S2="failed", S4="failed", S3="blocked")
    assert (good.missed, good.false_alarms) == ([], [])
    assert "noticed by  3" in good.line()
    elsewhere = proof(READ_ONLY, "windows-2", S1="failed", S2="failed", S4="failed")
    assert elsewhere.missed == ids("S1 S2 S4")


def test_a_rule_speaks_of_the_whole_cluster_and_need_not_name_the_node() -> None:
    assert proof(WRONG_IMAGE, "windows-1", images="failed").missed == []
    assert proof(WRONG_IMAGE, "windows-1").missed == ids("images")


def test_blocked_or_in_error_counts_as_missed() -> None:
    found = proof(READ_ONLY, "windows-1", S1="blocked", S2="error", S4="failed")
    assert found.missed == ids("S1 S2")
    assert "MISSED core.storage.host-volumes: blocked: pod x" in found.line()


def test_whatever_else_does_not_pass_is_a_false_alarm() -> None:
    found = proof(READ_ONLY, "windows-1", S1="failed", S2="failed", S4="failed", N1="blocked", images="failed")
    assert found.false_alarms == ids("N1 images")
    assert proof(HARMLESS, "", S3="failed").false_alarms == ids("S3")


PLAIN = Variant("plain", "Nothing special.", "everywhere")
REFUSING = Variant("refusing", "A quota.", "everywhere", blocked="S1", says="quota small")


def run(
    s1: Outcome = "passed",
    reason: str = "",
    next_step: str = "",
    size: Outcome = "passed",
    waived_by: str | None = None,
) -> Record:
    """A run in which everything else passed."""
    result = RequirementResult(
        id=ids("S1")[0], category="c", level="core", outcome=s1, reason=reason, next_step=next_step
    )
    rule = RuleResult(id="rule.cluster-size", outcome=size, reason="", gates="run", waived_by=waived_by)
    verdict: Any = "Pass" if s1 == "passed" else "Fail"
    return Record(requirements=[result], rules=[rule], verdict=verdict)


def judged(variant: Variant, *records: Record) -> Soundness:
    return judge_sound(variant, records)


def test_whatever_does_not_pass_on_a_sound_cluster_is_a_false_alarm() -> None:
    assert judged(PLAIN, run()).false_alarms == []
    assert judged(PLAIN, run("blocked", "no image")).false_alarms == ids("S1")
    assert judged(PLAIN, run(size="failed")).false_alarms == ["rule.cluster-size"]
    left = run()
    left.leftovers = ["Namespace winready-x"]
    assert judged(PLAIN, left).false_alarms == ["cleanup"]


def test_more_windows_pods_than_a_run_may_start_are_a_false_alarm() -> None:
    counted = replace(PLAIN, most_windows_pods=262)
    many = run()
    many.windows_pods_started = 262
    assert judged(counted, many).false_alarms == []
    many.windows_pods_started = 263
    assert judged(counted, many).false_alarms == ["windows-pods"]
    assert judged(PLAIN, many).false_alarms == []
    assert any(variant.most_windows_pods for variant in VARIANTS.values())


def test_of_several_runs_at_once_the_worst_counts() -> None:
    found = judged(PLAIN, run(), run("failed", "lost"), run())
    assert (found.verdict, found.false_alarms, found.outcomes[ids("S1")[0]]) == ("Fail", ids("S1"), "failed")
    assert "FALSE ALARM core.storage.host-volumes: failed: lost" in found.line()


def test_a_rule_may_be_waived_only_by_a_flag_that_the_variant_gives() -> None:
    small = replace(PLAIN, waived=("--allow-small-cluster",))
    assert judged(small, run(size="failed", waived_by="--allow-small-cluster")).false_alarms == []
    assert judged(PLAIN, run(size="failed", waived_by="--allow-small-cluster")).false_alarms == ["rule.cluster-size"]
    assert judged(small, run(size="failed")).false_alarms == ["rule.cluster-size"]


def test_what_needs_more_than_a_sound_cluster_has_is_not_called_failed() -> None:
    small = replace(PLAIN, unjudged="S1")
    assert judged(small, run("not-applicable", "one family")).false_alarms == []
    assert judged(small, run("blocked", "one node")).false_alarms == []
    assert judged(small, run("failed", "lost")).false_alarms == ids("S1")
    assert judged(small, run()).false_alarms == ids("S1"), "and what passes there needs nothing more"


def test_a_refusal_is_blocked_and_names_who_refused() -> None:
    good = judged(REFUSING, run("blocked", "quota small of the namespace has no room", "raise it"))
    assert (good.missed, good.false_alarms) == ([], [])
    assert judged(REFUSING, run()).missed == ids("S1")
    assert judged(REFUSING, run("failed", "quota small")).missed == ids("S1")
    assert judged(REFUSING, run("blocked", "something is forbidden")).missed == ids("S1")
    assert judged(REFUSING, run("blocked", "quota small", "'winready rbac' prints rights")).missed == ids("S1")

"""What counts as noticed, missed and a false alarm."""

from __future__ import annotations

from winready.engine.outcomes import Outcome, RequirementResult, RuleResult
from winready.proof.expected.model import HARMLESS, Expectation, ids
from winready.proof.judgement import Proof, judge
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

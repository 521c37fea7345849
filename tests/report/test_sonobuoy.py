"""A run as Sonobuoy's tree of results: what Sonobuoy makes of it is passed for a Pass, and failed for the rest."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from report import samples
from winready.engine.outcomes import Outcome, RuleResult
from winready.engine.verdict import judge
from winready.report import sonobuoy
from winready.report.record import Record

OUTCOMES: list[Outcome] = ["passed", "failed", "blocked", "not-applicable", "error"]
WORDS = {"passed", "failed", "skipped"}


def leaves(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [leaf for item in items for leaf in (leaves(item["items"]) if "items" in item else [item])]


def as_sonobuoy_counts(item: dict[str, Any]) -> str:
    """Sonobuoy's own way, written down apart from ours: parents are computed, an unknown word switches to counting."""
    if not item.get("items"):
        return str(item.get("status") or "unknown")
    words = [as_sonobuoy_counts(child) for child in item["items"]]
    if any(word not in (*WORDS, "unknown", "timeout") for word in words):
        return "counts"
    for bad in ("timeout", "failed"):
        if bad in words:
            return "failed"
    return "unknown" if "unknown" in words else "passed"


def made_up(outcomes: list[Outcome], rule: RuleResult, *, air_gapped: bool) -> Record:
    names = [*samples.CORE[:3], "core.network.dns-external", *samples.ALL[-6:]]
    results = [samples.result(name, outcome) for name, outcome in zip(names, outcomes, strict=False)]
    verdict = judge(samples.STANDARD, results, [rule], air_gapped=air_gapped)
    return Record(
        run_id="r",
        requirements=results,
        rules=[rule],
        selected=[item.id for item in results],
        settings={"air_gapped": air_gapped},
        verdict=verdict.verdict,
        verdict_text=str(verdict),
        exit_code=verdict.exit_code,
        verdict_reasons=verdict.reasons,
    )


@given(
    st.lists(st.sampled_from(OUTCOMES), max_size=10),
    st.sampled_from(OUTCOMES),
    st.sampled_from(["run", "certification"]),
    st.sampled_from([None, "--allow-small-cluster"]),
    st.booleans(),
)
def test_the_tree_is_passed_if_and_only_if_the_verdict_is_pass(
    outcomes: list[Outcome], ruled: Outcome, gates: str, waived: str | None, air_gapped: bool
) -> None:
    rule = RuleResult(id="rule.x", outcome=ruled, reason="because", gates=gates, waived_by=waived)
    run = made_up(outcomes, rule, air_gapped=air_gapped)
    document = yaml.safe_load(sonobuoy.render(run))
    wanted = "passed" if run.verdict == "Pass" else "failed"
    assert as_sonobuoy_counts(document) == wanted
    assert document["status"] == wanted
    assert {leaf["status"] for leaf in leaves(document["items"])} <= WORDS
    # A Pass has no failed leaf for anybody to ask about.
    assert (run.verdict == "Pass") == (not any(leaf["status"] == "failed" for leaf in leaves(document["items"])))


@pytest.mark.parametrize("outcome", ["blocked", "error", "failed"])
def test_what_could_not_be_judged_has_failed_and_says_why(outcome: Outcome) -> None:
    rule = RuleResult(id="rule.x", outcome="passed", reason="", gates="run")
    run = made_up(["passed", outcome], rule, air_gapped=False)
    found = {leaf["name"]: leaf for leaf in leaves(yaml.safe_load(sonobuoy.render(run))["items"])}
    leaf = found[samples.CORE[1]]
    assert leaf["status"] == "failed"
    assert leaf["details"]["outcome"] == outcome
    assert leaf["details"]["next step"] == "look at node windows-1"
    assert found["Verdict"]["details"]["exit code"] == (1 if outcome == "failed" else 3)
    assert leaf["meta"] == {"id": samples.CORE[1]}


def test_a_run_that_was_cut_off_names_what_it_did_not_judge() -> None:
    run = Record(run_id="r", selected=samples.CORE[:2], requirements=[samples.result(samples.CORE[0])])
    document = yaml.safe_load(sonobuoy.render(run))
    lost = [leaf["name"] for leaf in leaves(document["items"]) if leaf["status"] == "failed"]
    assert lost == ["Verdict", samples.CORE[1]]


def test_hostile_text_stays_text_in_the_tree() -> None:
    nasty = "!!python/object/apply:os.system ['x']\n\x1b[31m\x07- {a: *b} \u202e"
    rule = RuleResult(id="rule.x", outcome="failed", reason=nasty, gates="run")
    text = sonobuoy.render(made_up([], rule, air_gapped=False))
    found = {leaf["name"]: leaf for leaf in leaves(yaml.safe_load(text)["items"])}
    assert found["rule.x"]["details"]["reason"].startswith("!!python/object/apply")
    assert "\x1b" not in text
    assert "\x07" not in text

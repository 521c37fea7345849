"""Features beside a run: shown by its requirements and by checks of their own, held against the data, never judged."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

from engine.stage import BY_ADDRESS, BY_SERVICE, STANDARD, Stage
from winready.checks.context import Context
from winready.checks.registry import FeatureCheck, Sight
from winready.cluster.commands import system_version
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.probes import Try
from winready.engine import events
from winready.engine.checking import Ending
from winready.engine.features import Statement, Wanted, compare
from winready.engine.options import Carried
from winready.engine.outcomes import Outcome, Support
from winready.engine.sights import Sights
from winready.report.bundle.recomputing import recompute

OFFERED = (Statement(14, "no", "not in this version"), Statement(22, "yes", "supported since 1.22"))
BY_REQUIREMENT = Wanted("pods", "Pods", "networking", OFFERED, 40, requirements=(BY_ADDRESS, BY_SERVICE))
BY_DATA = Wanted("data", "Data", "nodes", OFFERED, 40, data_only="nobody can.")
OWN = Wanted("own", "Own", "nodes", OFFERED, 40, check=True)
NEVER = dataclasses.replace(OWN, id="never", statements=(Statement(14, "never", "never"),))
UPSTREAM = Wanted("tested", "Tested", "nodes", OFFERED, 40, tests=("some-test",))


async def _works(ctx: Context) -> Sight:
    for pod in await ctx.clients("windows"):
        ctx.probe.record(f"{pod.name} answers", Try(True, pod.build), pod, system_version("windows"), "a build")
    return Sight(True, "it does")


async def _refused(ctx: Context) -> Sight:
    return Sight(False, (await _works(ctx)).words)


async def _broken(ctx: Context) -> Sight:
    raise CheckFailed("it is broken on node windows-1", expected="whole", observed="broken", next_step="mend it")


async def _stuck(ctx: Context) -> Sight:
    raise CheckBlocked("nobody can tell", next_step="ask again")


async def _says_so(ctx: Context) -> Sight:
    return Sight(True, "without a witness")


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> dict[str, FeatureCheck]:
    """The table of checks of features, for tests to fill."""
    table: dict[str, FeatureCheck] = {}
    monkeypatch.setattr("winready.checks.registry._FEATURE_CHECKS", table)
    for name, run in {"own": _works, "never": _refused, "broken": _broken, "stuck": _stuck, "says": _says_so}.items():
        table[name] = FeatureCheck(name, run, frozenset({"clients"}), 1.0, 0)
    return table


def test_requirements_show_a_feature_and_the_verdict_is_about_them_alone(stage: Stage) -> None:
    played = stage.play(BY_ADDRESS, BY_SERVICE, features=[BY_REQUIREMENT, BY_DATA])
    shown = played.features["pods"]
    assert (shown.outcome, shown.way, shown.works, shown.contradiction) == ("passed", "requirement", True, "")
    assert (shown.documented, shown.requirements) == ("supported since 1.22", [BY_ADDRESS, BY_SERVICE])
    assert {pod.node for pod in shown.evidence.pods if pod.build} >= {"windows-1", "windows-2"}
    data = played.features["data"]
    assert (data.outcome, data.way, data.reason) == ("not-applicable", "data", "by data only: nobody can.")
    assert played.verdict.verdict == "Pass"
    assert [each.id for each in played.record.features] == ["pods", "data"]
    assert played.record.plan is not None
    assert played.record.plan.features[0].requirements == [BY_ADDRESS, BY_SERVICE]


def test_checks_of_features_alone_are_no_verdict(stage: Stage, checks: dict[str, FeatureCheck]) -> None:
    every = [OWN, NEVER, *(dataclasses.replace(OWN, id=name) for name in ("broken", "stuck", "says"))]
    played = stage.play(features=every)
    found = {name: (each.outcome, each.works, bool(each.contradiction)) for name, each in played.features.items()}
    assert found == {
        "own": ("passed", True, False),
        "never": ("passed", False, False),
        "broken": ("failed", False, True),
        "stuck": ("blocked", None, False),
        "says": ("error", None, False),
    }
    assert played.features["own"].reason == "shown on windows-1, windows-2: it does"
    assert "documented as supported since 1.22, not shown here: it is broken" in played.features["broken"].reason
    assert "no answer of the cluster is recorded" in played.features["says"].reason
    assert (played.verdict.verdict, played.verdict.exit_code) == ("Fail", 3)
    assert played.verdict.reasons[-1] == "no requirement was selected"
    assert [each.name for each in played.every(events.FixtureReady)] == ["clients"]
    assert recompute(STANDARD, played.told).verdict == played.verdict


def test_a_failed_requirement_and_one_that_was_left_out_show_nothing(stage: Stage) -> None:
    stage.do(lambda _: stage.sandbox.break_fault("service-proxy.windows.not-programmed"))
    try:
        played = stage.play(BY_ADDRESS, BY_SERVICE, features=[BY_REQUIREMENT])
    finally:
        stage.do(lambda _: stage.sandbox.heal_fault())
    shown = played.features["pods"]
    assert (shown.outcome, shown.works) == ("failed", False)
    assert shown.contradiction == "documented as supported since 1.22, not shown here"
    assert f"{BY_SERVICE} failed: " in shown.reason
    left = stage.play(BY_ADDRESS, features=[BY_REQUIREMENT]).features["pods"]
    assert (left.outcome, left.reason) == ("blocked", f"{BY_SERVICE} shows it, and was left out")


def test_an_interrupted_run_says_so_of_every_feature(stage: Stage, checks: dict[str, FeatureCheck]) -> None:
    def stop(event: events.AnyEvent, run: object) -> None:
        if isinstance(event, events.PlanMade):
            run.stop()  # type: ignore[attr-defined]

    played = stage.play(BY_ADDRESS, BY_SERVICE, features=[BY_REQUIREMENT, OWN, BY_DATA], on=stop)
    assert {name: each.outcome for name, each in played.features.items()} == {
        "pods": "blocked",
        "own": "blocked",
        "data": "not-applicable",
    }
    assert "interrupted" in played.features["own"].reason


def test_features_are_taken_over_with_their_run(stage: Stage, checks: dict[str, FeatureCheck]) -> None:
    first = stage.play(features=[OWN, dataclasses.replace(OWN, id="stuck")])
    assert first.record.cluster is not None
    uids = tuple(node.uid for node in first.record.cluster.nodes)
    judged = frozenset({"windows-1", "windows-2"})
    carried = Carried((), uids, judged, Sights(), tuple(first.record.features))
    again = stage.play(features=[OWN, dataclasses.replace(OWN, id="stuck")], carried=carried)
    assert again.features["own"] == first.features["own"]
    assert again.features["stuck"].outcome == "blocked"


def test_without_e2e_what_only_upstream_shows_is_beside_the_point(stage: Stage) -> None:
    played = stage.play(features=[UPSTREAM])
    assert (played.features["tested"].outcome, played.features["tested"].next_step) == (
        "not-applicable",
        "--engine both",
    )


@pytest.mark.parametrize(
    ("support", "outcome", "works", "expected", "contradiction"),
    [
        ("yes", "passed", True, "passed", ""),
        ("limited", "passed", True, "passed", ""),
        ("off", "passed", True, "passed", ""),
        ("unknown", "passed", True, "passed", ""),
        ("no", "passed", True, "failed", "documented as T, yet it works here"),
        ("never", "passed", True, "failed", "documented as T, yet it works here"),
        ("yes", "passed", False, "failed", "documented as T, not shown here"),
        ("off", "passed", False, "not-applicable", ""),
        ("never", "passed", False, "passed", ""),
        ("no", "passed", False, "passed", ""),
        ("limited", "failed", False, "failed", "documented as T, not shown here"),
        ("no", "failed", False, "not-applicable", ""),
        ("off", "failed", False, "not-applicable", ""),
        ("never", "failed", False, "failed", ""),
        ("yes", "blocked", None, "blocked", ""),
        ("never", "error", None, "error", ""),
    ],
)
def test_what_is_seen_is_held_against_what_is_documented(
    support: Support, outcome: Outcome, works: bool | None, expected: str, contradiction: str
) -> None:
    ending, found = compare(Ending(outcome, "so it was"), works, Statement(14, support, "T"))
    assert (ending.outcome, found) == (expected, contradiction)
    assert "so it was" in ending.reason


def test_data_that_ends_before_the_version_says_nothing(stage: Stage) -> None:
    old = dataclasses.replace(BY_REQUIREMENT, until=30)
    shown = stage.play(BY_ADDRESS, BY_SERVICE, features=[old]).features["pods"]
    assert (shown.outcome, shown.support) == ("passed", "unknown")


def test_events_of_features_survive_the_journal(stage: Stage) -> None:
    event = stage.play(features=[BY_DATA]).only(events.FeatureFinished)
    assert msgspec.json.decode(msgspec.json.encode(event), type=events.AnyEvent) == event

"""A run from start to verdict, and every way out of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest

from engine.stage import BY_ADDRESS, BY_SERVICE, STANDARD, Played, Stage, a_check, left, raises
from winready.checks.context import Context
from winready.checks.fixtures import Fixtures
from winready.checks.registry import Check, load_checks
from winready.cluster.client import Client
from winready.cluster.failures import CheckBlocked
from winready.cluster.pods import Pod
from winready.cluster.resources import NAMESPACES
from winready.cluster.settings import RUN_LABEL, Settings
from winready.engine import events
from winready.engine.defaults import CLEANUP_SECONDS
from winready.engine.facts import gather
from winready.engine.options import Carried, Options
from winready.engine.rules import judge_rules
from winready.engine.run import Run
from winready.engine.selection import Selection
from winready.engine.verdict import INTERRUPTED
from winready.report.bundle.recomputing import recompute

REBOOT = "core.storage.reboot-recovery"
LONG = "core.scheduling.limits-honoured"
"""It takes minutes where the others take seconds."""


def carried(earlier: Played, **changed: Any) -> Carried:
    """What ``--resume`` takes from a run."""
    assert earlier.record.cluster is not None
    given: dict[str, Any] = {
        "results": tuple(earlier.record.requirements),
        "nodes": tuple(node.uid for node in earlier.record.cluster.nodes),
        "judged": frozenset(gather(earlier.told).judged_nodes),
        "sights": gather(earlier.told).sights,
    }
    return Carried(**{**given, **changed})


def stop_at(kind: type[events.Event]) -> Callable[[events.AnyEvent, Run], None]:
    def stop(event: events.AnyEvent, run: Run) -> None:
        if isinstance(event, kind):
            run.stop()

    return stop


def test_a_run_tells_its_story_in_order_and_leaves_nothing_behind(stage: Stage) -> None:
    played = stage.play("N1", "N5")
    assert (played.verdict.verdict, played.verdict.exit_code) == ("Pass", 0)
    kinds = list(dict.fromkeys(type(event) for event in played.told))
    assert kinds == [
        events.RunStarted,
        events.InventoryTaken,
        events.PlanMade,
        events.RequirementStarted,
        events.FixtureReady,
        events.PodsSeen,
        events.RequirementFinished,
        events.CleanedUp,
        events.RuleJudged,
        events.RunFinished,
    ]
    assert [event.at_s for event in played.told] == sorted(event.at_s for event in played.told)
    assert (played.only(events.CleanedUp).leftovers, played.left, played.troubles) == ([], [], {})


def test_a_stopped_run_keeps_what_it_has_and_gives_up_the_rest(stage: Stage) -> None:
    played = stage.play("N5", LONG, on=stop_at(events.RequirementFinished))
    assert played.results[BY_ADDRESS].outcome == "passed"
    assert played.results[LONG].outcome == "blocked"
    assert played.results[LONG].reason == "the run was interrupted before it was judged"
    assert (played.verdict.verdict, str(played.verdict), played.verdict.exit_code) == (None, INTERRUPTED, 130)
    assert played.verdict.reasons == ["the run was interrupted"]
    assert (played.only(events.CleanedUp).leftovers, played.left) == ([], [])


@pytest.mark.parametrize("kind", [events.RunStarted, events.PlanMade, events.RequirementStarted, events.FixtureReady])
def test_a_run_can_be_stopped_at_any_time(stage: Stage, kind: type[events.Event]) -> None:
    played = stage.play("N5", on=stop_at(kind))
    assert played.results[BY_ADDRESS].outcome == "blocked"
    assert (played.verdict.exit_code, played.left) == (130, [])


def test_what_is_not_finished_in_time_is_blocked(stage: Stage) -> None:
    rotation = "core.storage.token-rotation"
    played = stage.play("N5", rotation, timeout=400.0)
    assert played.results[BY_ADDRESS].outcome == "passed"
    assert played.results[rotation].outcome == "blocked"
    assert played.results[rotation].reason == "the run's time of 400 s was over before it was judged"
    assert (played.verdict.verdict, played.verdict.exit_code) == ("Fail", 3)
    assert (played.only(events.CleanedUp).leftovers, played.left) == ([], [])


def test_a_resumed_run_verifies_only_what_is_left(stage: Stage) -> None:
    stopped = stage.play("N5", LONG, on=stop_at(events.RequirementFinished))
    resumed = stage.play("N5", LONG, carried=carried(stopped))
    assert [event.id for event in resumed.every(events.RequirementStarted)] == [LONG]
    assert resumed.results[BY_ADDRESS] == stopped.results[BY_ADDRESS]
    assert resumed.results[LONG].outcome == "passed"
    assert (resumed.verdict.verdict, resumed.verdict.exit_code) == ("Pass", 0)
    seen = gather(resumed.told).sights
    assert {name.rpartition("-")[0] for name in seen.namespaces} == {
        f"winready-{played.run_id}" for played in (stopped, resumed)
    }


def test_outcomes_of_some_nodes_are_not_taken_over_for_others(stage: Stage) -> None:
    one = stage.play("N5", nodes=1)
    assert str(one.verdict) == "Pass (partial: 1 of 24 core requirements; 1 of 2 Windows nodes judged)"
    assert one.record.not_judged == {"windows-2": "only 1 Windows node is judged (--nodes)"}
    both = stage.play("N5", carried=carried(one))
    assert [event.id for event in both.every(events.RequirementStarted)] == [BY_ADDRESS]
    assert (both.record.not_judged, both.verdict.coverage) == ({}, "")
    same = stage.play("N5", nodes=1, carried=carried(one))
    assert same.every(events.RequirementStarted) == []
    assert str(same.verdict) == str(one.verdict)


def test_to_resume_a_complete_run_gives_its_rules_and_its_verdict_again(stage: Stage) -> None:
    whole = stage.play("N1", "N5")
    again = stage.play("N1", "N5", carried=carried(whole))
    assert not again.every(events.RequirementStarted)
    assert again.only(events.RunFinished).windows_pods == 0
    assert again.results == whole.results
    assert again.record.rules == whole.record.rules
    assert again.verdict == whole.verdict
    assert recompute(STANDARD, again.told).verdict == whole.verdict


def test_results_of_other_nodes_are_not_taken_over(stage: Stage) -> None:
    whole = stage.play("N5")
    again = stage.play("N5", carried=carried(whole, nodes=("another",)))
    assert [event.id for event in again.every(events.RequirementStarted)] == [BY_ADDRESS]
    assert all(whole.run_id not in name for name in gather(again.told).sights.namespaces)
    assert again.verdict.verdict == "Pass"


def test_only_what_was_judged_and_is_wanted_is_taken_over(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(load_checks(), BY_ADDRESS, a_check(BY_ADDRESS, raises(ValueError("a bug"))))
    crashed = stage.play("N1", "N5")
    monkeypatch.undo()
    again = stage.play("N5", carried=carried(crashed))
    assert list(again.results) == [BY_ADDRESS]
    assert again.results[BY_ADDRESS].outcome == "passed"


def test_a_check_that_crashes_is_in_error_and_no_other_suffers(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(load_checks(), BY_ADDRESS, a_check(BY_ADDRESS, raises(ValueError("a bug"))))
    played = stage.play("N1", "N5")
    crashed = played.results[BY_ADDRESS]
    assert (crashed.outcome, crashed.reason) == ("error", "winready itself failed: ValueError: a bug")
    assert "stage.py" in crashed.evidence.facts["traceback"]
    assert played.results[BY_SERVICE].outcome == "passed"
    assert not played.every(events.Crashed)
    assert (played.verdict.verdict, played.verdict.exit_code, played.left) == ("Fail", 3, [])


def test_a_check_whose_evidence_nobody_can_write_down_is_in_error_alone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(ctx: Context) -> None:
        ctx.evidence.fact("a thing", object())

    monkeypatch.setitem(load_checks(), BY_ADDRESS, a_check(BY_ADDRESS, run))
    played = stage.play("N1", "N5")
    assert played.results[BY_ADDRESS].outcome == "error"
    assert played.results[BY_SERVICE].outcome == "passed"
    assert not played.every(events.Crashed)


@pytest.mark.parametrize(
    "part",
    ["look_at", "plan_run", "judge_requirement", "Run._watch_fixture", "look"],
)
def test_wherever_the_engine_crashes_it_says_so_cleans_up_and_fails(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    crash(monkeypatch, part)
    played = stage.play("N1", "N5")
    told = played.only(events.Crashed)
    assert told.error == "winready itself failed: RuntimeError: a bug"
    assert "RuntimeError: a bug" in told.trace
    assert {(item.outcome, item.reason) for item in played.results.values()} == {("error", told.error)}
    assert len(played.results) == 2
    assert len(played.every(events.RuleJudged)) == len(STANDARD.rules)
    assert (played.verdict.verdict, played.verdict.exit_code) == ("Fail", 3)
    assert (played.record.leftovers, played.left, played.troubles) == ([], [], {})


def crash(monkeypatch: pytest.MonkeyPatch, part: str, *, for_good: bool = False) -> None:
    """Make a part of the engine raise, the next time or for good."""

    def broken(*_: object, **__: object) -> object:
        if not for_good:
            monkeypatch.undo()
        raise RuntimeError("a bug")

    monkeypatch.setattr(f"winready.engine.run.{part}", broken)


def test_an_engine_that_cannot_even_say_what_it_gave_up_cleans_up_and_never_passes(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash(monkeypatch, "Run._finish", for_good=True)
    played = stage.play("N5")
    assert {event.error for event in played.every(events.Crashed)} == {"winready itself failed: RuntimeError: a bug"}
    assert (played.results, played.record.leftovers, played.left, played.troubles) == ({}, [], [], {})
    assert (played.verdict.verdict, played.verdict.exit_code) == ("Fail", 3)
    assert "winready itself failed: RuntimeError: a bug" in played.verdict.reasons


def test_a_bug_while_a_run_concludes_ends_in_cleanup_and_a_fail(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    crash(monkeypatch, "judge_rules", for_good=True)
    played = stage.play("N5")
    assert played.results[BY_ADDRESS].outcome == "passed"
    assert played.only(events.Crashed).error == "winready itself failed: RuntimeError: a bug"
    assert (played.only(events.CleanedUp).leftovers, played.left) == ([], [])
    assert (played.verdict.verdict, played.verdict.exit_code) == ("Fail", 3)


def test_a_fixture_that_cannot_be_had_is_told_once_and_accounted_for_by_whoever_needs_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_: Fixtures) -> list[Pod]:
        raise CheckBlocked("no pod starts", next_step="look there")

    monkeypatch.setattr(Fixtures, "_make_servers", broken)
    played = stage.play("N1", "N5", "N11")
    failed = played.only(events.FixtureFailed)
    assert (failed.name, failed.reason) == ("servers", "no pod starts")
    outcomes = {name: (result.outcome, result.reason) for name, result in played.results.items()}
    assert outcomes.pop("core.network.dns-external")[0] == "passed"
    assert outcomes == dict.fromkeys((BY_ADDRESS, BY_SERVICE), ("blocked", "no pod starts"))


def test_no_more_checks_run_at_a_time_than_allowed_and_those_that_disturb_nodes_alone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    running: list[str] = []
    together: dict[str, int] = {}

    def counting(name: str) -> Check:
        async def run(ctx: Context) -> None:
            running.append(name)
            await asyncio.sleep(10)
            together[name] = len(running)
            running.remove(name)
            raise CheckBlocked("counted")

        return a_check(name, run)

    quick = [BY_ADDRESS, BY_SERVICE, LONG]
    for name in (*quick, REBOOT):
        monkeypatch.setitem(load_checks(), name, counting(name))
    played = stage.play(*quick, REBOOT, parallel=2, allow_disruptive=True)
    assert max(together[name] for name in quick) == 2
    assert together[REBOOT] == 1
    assert [event.result.id for event in played.every(events.RequirementFinished)][-1] == REBOOT


def test_a_crash_while_cleaning_up_says_that_nobody_knows_what_is_left(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash(monkeypatch, "clean_up", for_good=True)
    played = stage.play("N5")
    assert played.record.leftovers == ["unknown: winready itself failed: RuntimeError: a bug"]
    assert (played.verdict.verdict, played.verdict.exit_code) == ("Pass", 3)
    assert played.left
    stage.tidy()


def test_what_a_run_left_behind_is_named_and_no_exit_code_0(stage: Stage) -> None:
    held = {"name": "held", "labels": {RUN_LABEL: "leaves-one"}, "finalizers": ["example.com/held"]}
    stage.do(lambda client: client.create(NAMESPACES, {"metadata": held}))
    played = stage.play("N5", run_id="leaves-one", poll=10.0)
    assert (played.verdict.verdict, played.verdict.reasons, played.verdict.exit_code) == ("Pass", [], 3)
    cleaned = played.only(events.CleanedUp)
    assert cleaned.leftovers == played.record.leftovers
    assert [text.partition(" (")[0] for text in cleaned.leftovers] == ["Namespace held"]
    assert CLEANUP_SECONDS <= cleaned.seconds < CLEANUP_SECONDS + 20
    assert played.left == ["held"]
    stage.do(lambda client: client.patch(NAMESPACES, "held", {"metadata": {"finalizers": None}}))
    stage.tidy()


def a_run(client: Client) -> Run:
    return Run(client, STANDARD, Options(settings=Settings(run_id="unheard"), selection=Selection(requirements=["N5"])))


def test_whoever_stops_listening_finds_the_cluster_cleaned_up(stage: Stage) -> None:
    async def story(client: Client) -> list[str]:
        async with aclosing(a_run(client).stream()) as told:
            async for event in told:
                if isinstance(event, events.FixtureReady):
                    assert await left(client)
                    break
        return await left(client)

    assert stage.do(story) == []


@pytest.mark.parametrize("times", [1, 3])
def test_a_listener_that_is_cancelled_waits_for_the_cleanup_however_often(stage: Stage, times: int) -> None:
    async def story(client: Client) -> list[str]:
        async def listen() -> None:
            async with aclosing(a_run(client).stream()) as told:
                async for event in told:
                    if isinstance(event, events.FixtureReady):
                        ready.set()

        ready = asyncio.Event()
        listening = asyncio.create_task(listen())
        await ready.wait()
        assert await left(client)
        for _ in range(times):
            listening.cancel()
            await asyncio.sleep(0.5)
        await asyncio.wait([listening])
        assert listening.cancelled()
        return await left(client)

    assert stage.do(story) == []


@pytest.mark.parametrize(
    ("kind", "defect"),
    [(events.RunStarted, "errors"), (events.PlanMade, "resets"), (events.FixtureReady, "errors")],
)
def test_an_api_that_goes_away_for_good_is_an_error_and_the_way_out_has_an_end(
    stage: Stage, kind: type[events.Event], defect: str
) -> None:
    def on(event: events.AnyEvent, run: Run) -> None:
        if isinstance(event, kind):
            setattr(stage.api, defect, 1.0)

    played = stage.play("N5", on=on)
    assert played.results[BY_ADDRESS].outcome == "error"
    assert played.results[BY_ADDRESS].next_step
    assert not played.every(events.Crashed)
    assert (played.verdict.verdict, played.verdict.exit_code) == ("Fail", 3)
    if kind is events.FixtureReady:
        cleaned = played.only(events.CleanedUp)
        assert "unknown: the API server did not answer" in cleaned.leftovers[-1]
        assert cleaned.seconds < CLEANUP_SECONDS + 60
        assert played.left
    stage.tidy()


@pytest.mark.parametrize(("seconds", "outcome"), [(100.0, "passed"), (420.0, "error")])
def test_an_api_that_comes_back_finds_everything_removed(stage: Stage, seconds: float, outcome: str) -> None:
    def on(event: events.AnyEvent, run: Run) -> None:
        if isinstance(event, events.FixtureReady):
            stage.api.errors = 1.0
            asyncio.get_running_loop().call_later(seconds, setattr, stage.api, "errors", 0.0)

    played = stage.play("N5", on=on)
    assert played.results[BY_ADDRESS].outcome == outcome
    assert played.verdict.exit_code == (0 if outcome == "passed" else 3)
    assert (played.only(events.CleanedUp).leftovers, played.left) == ([], [])


def whole(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Played:
    return stage.play("N1", "N5")


def stopped(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Played:
    return stage.play("N5", on=stop_at(events.FixtureReady))


def crashed(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Played:
    crash(monkeypatch, "Run._watch_fixture")
    return stage.play("N5")


def blind(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Played:
    crash(monkeypatch, "look_at")
    return stage.play("N5")


@pytest.mark.parametrize("kind", [whole, stopped, crashed, blind])
def test_rules_and_verdict_follow_from_the_events_alone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, kind: Callable[[Stage, pytest.MonkeyPatch], Played]
) -> None:
    played = kind(stage, monkeypatch)
    assert judge_rules(STANDARD, gather(played.told), played.record.requirements) == played.record.rules
    again = recompute(STANDARD, played.told)
    assert (again.verdict, again.rules, again.cannot_tell) == (played.verdict, len(STANDARD.rules), [])

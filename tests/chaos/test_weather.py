"""The verdict in a storm is the verdict without it; a server that is gone is said to be, and nobody waits for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from chaos.kinds import KINDS, Weather, alone, storm
from chaos.proxy import Proxy
from chaos.remains import whole_state
from chaos.scenes import STANDARD, Ended, follow, played, scene, weather_run
from engine.stage import BY_ADDRESS, BY_SERVICE
from winready.cluster.cleanup import ROUND_SECONDS
from winready.cluster.node_folders import sweep
from winready.cluster.settings import Settings
from winready.cluster.transport import OUTAGE_SECONDS
from winready.deploy.places import Named, Places
from winready.deploy.publishing import PATIENCE, Publisher
from winready.engine import events
from winready.engine.defaults import CLEANUP_SECONDS
from winready.engine.run import Run
from winready.engine.selection import Selection
from winready.report.record import Record

HOST = "extend.hostprocess.host-networking"
FILES = "core.storage.shared-files"
On = Callable[[events.AnyEvent, Run, Proxy], object]


def at(kind: type[events.Event], act: Callable[[Run, Proxy], object]) -> On:
    """Do something at the first event of a kind."""
    seen: list[events.AnyEvent] = []

    def on(event: events.AnyEvent, run: Run, proxy: Proxy) -> None:
        if isinstance(event, kind) and not seen:
            seen.append(event)
            act(run, proxy)

    return on


def gone(seconds: float | None) -> Callable[[Run, Proxy], object]:
    """The API server goes away, for a time or for good."""

    def act(run: Run, proxy: Proxy) -> None:
        proxy.away = True
        if seconds is not None:
            asyncio.get_running_loop().call_later(seconds, setattr, proxy, "away", False)

    return act


def passed(ended: Ended) -> None:
    wrong = [(item.id, item.outcome, item.reason) for item in ended.record.requirements if item.outcome != "passed"]
    assert (wrong, ended.record.verdict, ended.record.leftovers) == ([], "Pass", [])


@pytest.mark.parametrize("kind", KINDS)
def test_one_kind_of_trouble_changes_no_verdict(kind: str) -> None:
    ended = weather_run(storm(alone(kind), [kind]), f"{kind} 1", [BY_ADDRESS])
    assert ended.weather.met[kind]
    passed(ended)


@pytest.mark.parametrize("seed", ["storm 1", "storm 2"])
def test_all_kinds_at_once_change_no_verdict(seed: str) -> None:
    ended = weather_run(storm(0.05), seed, [BY_ADDRESS, HOST, FILES])
    assert sum(ended.weather.met.values()) > ended.weather.requests / 3
    passed(ended)


def test_a_cluster_that_loses_connections_fails_in_a_storm_as_it_does_without() -> None:
    fault = "service-proxy.windows.not-programmed"
    calm = weather_run({}, "calm", [BY_ADDRESS, BY_SERVICE], fault)
    ended = weather_run(storm(0.05), "storm", [BY_ADDRESS, BY_SERVICE], fault)
    assert calm.outcomes == ended.outcomes == {BY_ADDRESS: "passed", BY_SERVICE: "failed"}
    (reason,) = [item.reason for item in ended.record.requirements if item.outcome == "failed"]
    assert "windows-1" in reason or "windows-2" in reason


@pytest.mark.parametrize(
    "kind", [events.RunStarted, events.PlanMade, events.RequirementStarted, events.FixtureReady, events.CleanedUp]
)
def test_a_run_outlasts_an_api_server_that_is_away_for_a_minute(kind: type[events.Event]) -> None:
    # Who never answered is waited for less long: then the answer comes within the patience of a first call.
    seconds = 20.0 if kind is events.RunStarted else 60.0
    passed(weather_run({}, "away", [BY_ADDRESS], on=at(kind, gone(seconds))))


@pytest.mark.parametrize("kind", [events.InventoryTaken, events.FixtureReady])
def test_a_server_that_is_gone_ends_a_run_in_error_within_a_stated_time(kind: type[events.Event]) -> None:
    ended = weather_run({}, "gone", [BY_ADDRESS], on=at(kind, gone(None)))
    (result,) = ended.record.requirements
    assert (result.outcome, ended.record.verdict) == ("error", "Fail")
    assert result.reason.startswith("the API server at ")
    assert len(result.reason.splitlines()) == 1
    # What goes on, then what is given up, then the cleanup.
    assert ended.seconds < 120 + 3 * OUTAGE_SECONDS + CLEANUP_SECONDS + ROUND_SECONDS


def test_nobody_waits_for_an_api_server_that_hangs_when_a_run_is_stopped() -> None:
    def act(run: Run, proxy: Proxy) -> None:
        proxy.weather.rates = storm(1.0, ["hangs"])
        asyncio.get_running_loop().call_later(5.0, run.stop)

    ended = weather_run({}, "stopped", [BY_ADDRESS], on=at(events.RunStarted, act))
    assert [item.outcome for item in ended.record.requirements] == ["blocked"]
    assert (ended.record.exit_code, ended.record.leftovers) == (130, [])
    assert ended.seconds < 10


def test_what_hears_of_a_run_costs_it_nothing_in_a_storm() -> None:
    selection = Selection(requirements=[BY_ADDRESS])
    notes: list[str] = []

    async def story() -> tuple[Record, float]:
        record = Record()
        where = Named("default", "winready")
        async with scene(selection) as stage, stage.behind(Weather(storm(0.05), "told")) as (client, proxy):
            run = Run(client, STANDARD, stage.options(selection))
            publisher = Publisher(client, Places(job=where, configmap=where, policy_report=where), record, notes.append)
            async with publisher:
                async for event in run.stream():
                    record.apply(event)
                    publisher.handle(event)
                proxy.weather.rates = storm(1.0, ["hangs"])
                end = asyncio.get_running_loop().time()
            return record, asyncio.get_running_loop().time() - end

    record, waited = played(story, "told")
    assert (record.verdict, record.leftovers) == ("Pass", [])
    assert waited <= PATIENCE + 1
    assert all("the verdict does not depend on it" in note for note in notes)


def test_cleanup_gets_through_a_storm_and_says_when_it_cannot() -> None:
    selection = Selection(requirements=[FILES])

    async def story() -> None:
        async with scene(selection) as stage:
            before = whole_state(stage.sandbox)
            async with stage.calm() as client:
                run = Run(client, STANDARD, stage.options(selection))
                # Given up without a word, as a killed run does.
                run._clean_up = _nothing  # type: ignore[method-assign, assignment]
                await follow(run)
            assert whole_state(stage.sandbox) != before
            weather = Weather(storm(0.05), "cleanup")
            async with stage.behind(weather) as (client, proxy):
                client.transport.patience = 300.0
                settings = Settings(run_id="260101-000000-00aa")
                proxy.away = True
                start = asyncio.get_running_loop().time()
                lost = await sweep(client, settings, run_id=None, patience=60, dry_run=False, objects_only=False)
                assert [text.partition(" (")[0] for text in lost.left] == ["unknown: the API server did not answer"]
                assert asyncio.get_running_loop().time() - start <= 60 + ROUND_SECONDS
                proxy.away = False
                swept = await sweep(client, settings, run_id=None, patience=600, dry_run=False, objects_only=False)
                assert swept.left == []
            assert whole_state(stage.sandbox) == before

    played(story, "cleanup")


async def _nothing(*_: object) -> list[str]:
    return []

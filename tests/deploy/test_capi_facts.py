"""Facts about a gate: written once, read back, and whatever else lies there is passed over."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from winready.deploy.capi import facts, hooks
from winready.deploy.capi.facts import Asked, Book, Ended, Taken
from winready.deploy.capi.hooks import Named
from winready.store.addresses import parse
from winready.store.errors import StoreError
from winready.store.objects import open_place

ONE = Named("fleet", "one", "uid-1")
STEP = "workers_v1.35.0+vendor.1"


def book(folder: Path) -> Book:
    found = Book(open_place(parse(str(folder))))
    found.load()
    return found


async def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    first = book(tmp_path)
    attempt = await first.ask(ONE, STEP, Asked(1.0, "annotation", "x"))
    assert attempt is not None
    assert await first.take(ONE, STEP, attempt, Taken(2.0, "a"))
    assert [item[:2] for item in book(tmp_path).unfinished()] == [(ONE, STEP)]
    await first.end(ONE, STEP, attempt, Ended(3.0, "Fail", "r", "w", "f"))
    again = await first.ask(ONE, STEP, Asked(4.0, "schedule"))
    second = book(tmp_path)
    assert second.attempts(ONE, STEP) == first.attempts(ONE, STEP) == [attempt, again]
    assert second.passed_over == []
    await second.forget(ONE)
    assert list(second.clusters()) == []
    assert list(book(tmp_path).clusters()) == []


async def test_of_many_who_ask_one_gets_the_run(tmp_path: Path) -> None:
    books = [book(tmp_path) for _ in range(8)]
    found = await asyncio.gather(*(each.ask(ONE, STEP, Asked(float(n))) for n, each in enumerate(books)))
    assert len([attempt for attempt in found if attempt is not None]) == 1
    assert all(len(each.attempts(ONE, STEP)) == 1 for each in books)
    taken = await asyncio.gather(
        *(each.take(ONE, STEP, each.attempts(ONE, STEP)[0], Taken(1.0, str(n))) for n, each in enumerate(books))
    )
    assert sum(taken) == 1


async def test_who_ends_second_learns_what_the_first_wrote(tmp_path: Path) -> None:
    one, other = book(tmp_path), book(tmp_path)
    await one.ask(ONE, STEP, Asked(1.0))
    await other.refresh(ONE)
    await one.end(ONE, STEP, one.attempts(ONE, STEP)[0], Ended(2.0, "Pass"))
    await other.end(ONE, STEP, other.attempts(ONE, STEP)[0], Ended(3.0, "Fail"))
    assert other.attempts(ONE, STEP)[0].ended == Ended(2.0, "Pass")


def test_foreign_and_hostile_objects_are_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / "capi" / "fleet" / "one" / "u" / "created"
    folder.mkdir(parents=True)
    (folder / "0001-asked.json").write_text('{"at": 1.0, "later": "field"}')
    for name, text in (
        ("0002-asked.json", "[" * 100_000),
        ("0003-asked.json", '{"at": 1.0}'),
        ("0009-ended.json", '{"at": 1.0}'),
        ("0001-ended.json", '{"at": "never"}'),
        ("0001-taken-01.json", "x" * (facts.MOST_BYTES + 1)),
        ("zero-asked.json", '{"at": 1.0}'),
        ("0001-other.json", "{}"),
        ("notes.txt", "hello"),
    ):
        (folder / name).write_text(text)
    (folder / "link.json").symlink_to("/etc/passwd")
    (tmp_path / "capi" / "stray.json").write_text("{}")
    found = book(tmp_path)
    assert len(found.attempts(Named("fleet", "one", "u"), "created")) == 1
    assert len(found.passed_over) == 9


async def test_more_clusters_than_anybody_has_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "MOST_CLUSTERS", 1)
    found = book(tmp_path)
    await found.ask(ONE, STEP, Asked(1.0))
    with pytest.raises(StoreError, match="1 clusters are known already"):
        await found.ask(Named("fleet", "two", "u"), STEP, Asked(1.0))
    assert await found.ask(ONE, "created", Asked(1.0)) is not None


def test_steps_are_keys_that_any_store_takes() -> None:
    body = (
        b'{"kind":"AfterWorkersUpgradeRequest","cluster":{"metadata":{"name":"a.b","namespace":"c","uid":"d"}},'
        b'"kubernetesVersion":"v1.35.0-rc.1+build.5"}'
    )
    call = hooks.read("AfterWorkersUpgrade", body)
    assert call.step == "workers_v1.35.0-rc.1+build.5"
    assert hooks.title(call.step) == "after the workers' upgrade to v1.35.0-rc.1+build.5"

"""Handlers that cannot go on: the run ends with cleanup, everybody else hears of it, and nothing passes unrecorded."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.stage import BY_ADDRESS, Listener, Stage
from report.samples import run_events
from winready.engine import events, journal
from winready.report.files import Rendered
from winready.report.following import CannotStart
from winready.report.record import RecordFile
from winready.report.terminal import Plain

FULL = "No space left on device"


def full_at(number: int) -> Callable[[int, events.AnyEvent], None]:
    """A disk that is full when that many events are written."""

    def trouble(written: int, event: events.AnyEvent) -> None:
        if written == number:
            raise OSError(errno.ENOSPC, FULL)

    return trouble


class Fragile(Listener):
    """A handler that cannot start, or cannot end."""

    def __init__(self, name: str, calls: list[str], broken: str = "", error: type[Exception] = OSError) -> None:
        super().__init__(name)
        self._all, self._broken, self._error = calls, broken, error

    def start(self) -> None:
        self._note("start")

    def close(self) -> None:
        self._note("close")

    def _note(self, call: str) -> None:
        self._all.append(f"{call} {self.name}")
        if call == self._broken:
            raise self._error(errno.EIO, "Input/output error")


def test_a_journal_that_fails_at_any_write_ends_the_run_with_cleanup_and_never_in_a_pass(stage: Stage) -> None:
    for number in itertools.count():
        written = Listener("journal.jsonl", full_at(number))
        played = stage.play("N5", journal=written)
        if not played.troubles:
            break
        why = f"journal.jsonl cannot be written: {FULL}"
        assert played.troubles == {"journal.jsonl": why}
        assert len(written.told) == number
        assert (played.verdict.verdict, played.verdict.exit_code, played.left) == ("Fail", 3, []), number
        assert played.verdict.reasons[0] == why
        result = played.results[BY_ADDRESS]
        assert (result.outcome, result.reason) in (
            ("passed", "shown on windows-1, windows-2"),
            ("error", f"{why} before it was judged"),
        )
    assert number == len(played.told) > 10
    assert (played.verdict.verdict, played.verdict.exit_code) == ("Pass", 0)


def test_a_journal_on_a_full_disk(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / journal.NAME).symlink_to("/dev/full")
    kept = RecordFile(tmp_path)
    played = stage.play("N5", journal=journal.Journal(tmp_path), others=[kept])
    assert played.troubles == {journal.NAME: f"{journal.NAME} cannot be written: {FULL}"}
    assert (played.verdict.exit_code, played.left) == (3, [])
    assert kept.record.verdict_reasons == played.verdict.reasons
    assert (tmp_path / "run.json").exists()


def test_an_output_that_nobody_reads_ends_the_run_and_the_journal_tells_why(stage: Stage, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    kept = RecordFile(tmp_path)
    with os.fdopen(writer, "w", buffering=1) as stream:
        played = stage.play("N5", journal=journal.Journal(tmp_path), others=[kept, Plain(stream, kept.record)])
        # What was not written never will be.
        os.dup2(os.open(os.devnull, os.O_WRONLY), writer)
    why = "the output cannot be written: Broken pipe"
    assert played.troubles == {"the output": why}
    assert played.results[BY_ADDRESS].outcome == "error"
    assert played.results[BY_ADDRESS].reason == f"{why} before it was judged"
    assert (played.verdict.verdict, played.verdict.exit_code, played.left) == ("Fail", 3, [])
    assert journal.read(tmp_path) == played.told


def test_an_output_that_goes_away_at_the_last_word_does_not_undo_the_verdict(stage: Stage) -> None:
    def trouble(_: int, event: events.AnyEvent) -> None:
        if isinstance(event, events.RunFinished):
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    written = Listener("journal.jsonl")
    played = stage.play("N5", journal=written, others=[Listener("the output", trouble)])
    assert list(played.troubles) == ["the output"]
    assert played.told == written.told
    assert played.verdict.verdict == "Pass"


def test_a_bug_in_a_handler_is_our_trouble_and_ends_the_run(stage: Stage) -> None:
    def trouble(_: int, event: events.AnyEvent) -> None:
        raise ValueError("a bug")

    played = stage.play("N5", others=[Listener("report.html", trouble)])
    why = "report.html cannot be written: winready itself failed: ValueError: a bug"
    assert played.troubles == {"report.html": why}
    assert (played.verdict.exit_code, played.left) == (3, [])


def test_a_handler_that_cannot_start_keeps_the_run_from_beginning(stage: Stage) -> None:
    calls: list[str] = []
    first, second = Fragile("first", calls), Fragile("second", calls, "start")
    third = Fragile("third", calls)
    with pytest.raises(CannotStart, match="second cannot be written: Input/output error"):
        stage.play("N5", journal=first, others=[second, third])
    assert calls == ["start first", "start second", "close first"]
    assert first.told == []


@pytest.mark.parametrize("error", [OSError, ValueError])
def test_handlers_are_closed_once_each_in_reverse_order_whatever_one_of_them_says(
    stage: Stage, error: type[Exception]
) -> None:
    calls: list[str] = []
    handlers = [
        Fragile(name, calls, "close" if name == "second" else "", error) for name in ("first", "second", "last")
    ]
    played = stage.play("N5", journal=handlers[0], others=handlers[1:], on=lambda event, run: run.stop())
    assert calls == [f"start {each.name}" for each in handlers] + [f"close {each.name}" for each in reversed(handlers)]
    assert list(played.troubles) == ["second"]
    assert all(each.told == played.told for each in handlers)


def test_files_are_written_once_there_is_a_verdict_and_not_before(tmp_path: Path) -> None:
    kept, told = RecordFile(tmp_path), run_events()
    page = Rendered(tmp_path / "page.html", lambda: kept.record.verdict_text)
    for event in told[:-1]:
        kept.handle(event)
        page.handle(event)
    assert list(tmp_path.iterdir()) == []
    kept.handle(told[-1])
    page.handle(told[-1])
    assert {path.name for path in tmp_path.iterdir()} == {"page.html", "run.json"}
    assert (tmp_path / "page.html").read_text() == "Pass"

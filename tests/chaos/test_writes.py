"""A full disk and a closed pipe, at every write in turn: the cluster is cleaned up, and nothing lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.writes import closed_pipe, full_disk, handlers
from engine.conftest import shared_stage, stage
from engine.stage import BY_ADDRESS, Stage
from winready.deploy.metrics import MetricsFile
from winready.engine.journal import NAME, Journal
from winready.report import junit
from winready.report.following import Handler
from winready.report.html import page
from winready.report.record import RecordFile

__all__ = ["shared_stage", "stage"]
EVENTS = 16
"""What a run of one requirement tells: the last of them is the verdict, so that every write has its turn."""


def test_every_write_has_its_turn(stage: Stage, tmp_path: Path) -> None:
    assert len(stage.play(BY_ADDRESS).told) == EVENTS


@pytest.mark.parametrize("number", range(EVENTS))
def test_a_journal_that_finds_no_room_for_an_event_ends_the_run_without_a_pass(
    stage: Stage, tmp_path: Path, number: int
) -> None:
    assert full_disk(stage, tmp_path, number, BY_ADDRESS) == (True, [])


@pytest.mark.parametrize("name", ["run.json", junit.NAME, page.NAME])
def test_a_file_for_which_there_is_no_room_is_named_and_not_there_in_part(
    stage: Stage, tmp_path: Path, name: str
) -> None:
    (tmp_path / f".{name}.part").symlink_to("/dev/full")
    played = stage.play(BY_ADDRESS, journal=Journal(tmp_path), others=handlers(tmp_path))
    assert played.troubles == {name: f"{name} cannot be written: No space left on device"}
    assert played.left == []
    others = {NAME, "run.json", junit.NAME, page.NAME} - {name}
    assert {path.name for path in tmp_path.iterdir()} == others


def test_metrics_for_which_there_is_no_room_are_nobodys_trouble(stage: Stage, tmp_path: Path) -> None:
    file, kept = tmp_path / "winready.prom", RecordFile(tmp_path)
    notes: list[str] = []
    (tmp_path / ".winready.prom.part").symlink_to("/dev/full")
    others: list[Handler] = [kept, MetricsFile(file, kept.record, notes.append)]
    played = stage.play(BY_ADDRESS, journal=Journal(tmp_path), others=others)
    assert (played.verdict.verdict, played.troubles, played.left) == ("Pass", {}, [])
    assert notes == [
        f"note: metrics file {file} cannot be told: No space left on device; the verdict does not depend on it"
    ]


@pytest.mark.parametrize("number", range(EVENTS))
def test_a_pipe_that_nobody_reads_any_more_ends_the_run_with_cleanup(stage: Stage, tmp_path: Path, number: int) -> None:
    assert closed_pipe(stage, tmp_path, number, BY_ADDRESS) == (True, [])

"""What people type out of habit: a report in the browser, files by --to, a run followed from another terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from report import samples
from winready.cli.main import cli
from winready.engine import events

RUN = "261101-101500-ab12"


def winready(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli, arguments)
    return result.exit_code, result.stdout, result.stderr


def test_files_are_named_by_to_and_the_old_way_is_noted(tmp_path: Path) -> None:
    samples.write_run(tmp_path)
    place = ("--report-dir", str(tmp_path))
    assert winready("report", *place, "-o", "markdown", "--to", str(tmp_path / "a.md")) == (0, "", "")
    code, _, told = winready("report", *place, "--format", "markdown", "--output", str(tmp_path / "b.md"))
    assert (code, "--to" in told) == (0, True)
    assert (tmp_path / "a.md").read_text() == (tmp_path / "b.md").read_text()
    code, _, told = winready("report", *place, "-o", "markdwon")
    assert (code, "markdown" in told) == (2, True)


def test_a_report_opens_in_the_browser_that_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    samples.write_run(tmp_path)
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    command = [sys.executable, "-m", "winready", "report", "--open", "--report-dir", str(tmp_path), "--to"]
    subprocess.run([*command, str(tmp_path / "page.html")], check=True, capture_output=True)
    assert opened.read_text().strip() == (tmp_path / "page.html").as_uri()
    assert "<html" in (tmp_path / "page.html").read_text()


def test_a_run_is_followed_to_its_verdict(tmp_path: Path) -> None:
    folder = tmp_path / RUN
    folder.mkdir()
    happened = list(samples.run_events(run_id=RUN))
    first = next(index for index, each in enumerate(happened) if isinstance(each, events.RequirementFinished))
    command = [sys.executable, "-m", "winready", "status", "--watch", "--report-dir", str(tmp_path)]
    with samples.written_journal(folder) as journal:
        for event in happened[: first + 1]:
            journal.handle(event)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
            assert watching.stdout is not None
            while "passed" not in (line := watching.stdout.readline()):
                assert line
            for event in happened[first + 1 :]:
                journal.handle(event)
            told = watching.stdout.read()
            code = watching.wait()
    assert (code, told.splitlines()[-1]) == (0, "Pass")


def test_a_run_that_is_cut_off_while_it_is_followed_is_told_with_the_way_on(tmp_path: Path) -> None:
    folder = tmp_path / RUN
    folder.mkdir()
    with samples.written_journal(folder) as journal:
        for event in list(samples.run_events(run_id=RUN))[:3]:
            journal.handle(event)
    code, _, told = winready("status", "--watch", RUN, "--report-dir", str(tmp_path))
    assert (code, f"winready run --resume {RUN}" in told) == (3, True)


def test_nothing_to_follow(tmp_path: Path) -> None:
    code, _, told = winready("status", "--watch", "--report-dir", str(tmp_path))
    assert (code, "no run goes on" in told) == (2, True)


def test_wide_tables_have_a_line_for_each(tmp_path: Path) -> None:
    samples.write_run(tmp_path)
    samples.write_run(tmp_path, "261102-101500-ab12", outcomes={samples.CORE[0]: "failed"})
    _, told, _ = winready("history", "-o", "wide", "--report-dir", str(tmp_path))
    _, heads, newest, oldest = told.splitlines()
    assert heads.split()[:3] == ["RUN", "STARTED", "VERDICT"]
    assert (newest.split()[0], oldest.split()[0]) == ("261102-101500-ab12", RUN)
    assert samples.CORE[0] in newest
    _, told, _ = winready("spec", "list", "-o", "wide")
    assert len(told.splitlines()) == 1 + len(samples.ALL)


def test_history_breaks_no_words_on_a_narrow_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    samples.write_run(tmp_path, ids=samples.CORE[:13])
    _, told, _ = winready("history", "--report-dir", str(tmp_path))
    assert max(map(len, told.splitlines())) <= 80


def test_help_says_which_options_repeat() -> None:
    _, told, _ = winready("run", "--help")
    text = " ".join(told.split())
    assert "Leave this requirement out. May be repeated." in text
    assert "Show the plan and change nothing. May be repeated." not in text
    for words in (("sandbox", "up"), ("matrix", "audit")):
        code, text, _ = winready(*words, "--help")
        assert (code, "May be" in text, "repeatable" in text) == (0, True, False), words


def test_the_dashboard_notes_a_folder_that_is_not_there(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "winready", "dashboard", "--port", "0", "--report-dir", str(tmp_path / "none")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stderr is not None
        assert "there is no folder" in serving.stderr.readline()
        serving.terminate()

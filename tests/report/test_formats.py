"""``winready report``: a run in every format that others read."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

from report import samples
from winready.cli.main import cli
from winready.engine import events
from winready.engine.outcomes import RuleResult
from winready.report import junit, record
from winready.report.bundle.recomputing import refusals
from winready.report.formats import escape
from winready.report.html import page
from winready.spec.loader import load_standard

DNS = "core.network.dns-internal"
HOSTILE = '=cmd|"/C calc"!A0\x1b[31m red\x1b[0m\x00 <script>alert(1)</script> @everyone | `x`\nsecond ]]>'


def report(base: Path, *arguments: str) -> str:
    result = CliRunner().invoke(cli, ["report", "--report-dir", str(base), *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    failed = samples.result(DNS, "failed", reason=HOSTILE)
    samples.write_run(tmp_path, results=[failed])
    return tmp_path


def test_json_and_yaml_are_the_record(tmp_path: Path) -> None:
    folder = samples.write_run(tmp_path)
    written = json.loads((folder / "run.json").read_text())
    assert json.loads(report(tmp_path, "--format", "json")) == written
    assert yaml.safe_load(report(tmp_path, "--format", "yaml")) == written


def test_junit_counts_what_it_contains_and_names_stay_the_same(tmp_path: Path) -> None:
    outcomes = {DNS: "failed", "core.network.dns-custom": "blocked"}
    ids = [*samples.CORE, "extend.worker.node-ping"]
    samples.write_run(tmp_path, ids=ids, outcomes={**outcomes, "extend.worker.node-ping": "failed"})
    suite = ElementTree.fromstring(report(tmp_path, "--format", "junit")).find("testsuite")
    assert suite is not None
    cases = suite.findall("testcase")
    assert [case.get("name") for case in cases[:2]] == samples.CORE[:2]
    assert int(suite.get("tests", 0)) == len(cases) == len(ids) + 6
    for tag, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        assert int(suite.get(attribute, -1)) == sum(case.find(tag) is not None for case in cases) == 1
    failure = suite.find(f"testcase[@name='{DNS}']/failure")
    assert failure is not None
    assert "Connection timed out" in (failure.text or "")
    assert "look at node windows-1" in (failure.text or "")


def test_junit_of_a_hostile_answer_is_read_by_any_parser(hostile: Path) -> None:
    root = ElementTree.fromstring(report(hostile, "--format", "junit"))
    failure = root.find(".//failure")
    assert failure is not None
    assert "[31m" not in (failure.text or "")
    assert "<script>alert(1)</script>" in (failure.text or "")


def test_a_waived_rule_is_no_failure_in_junit() -> None:
    rule = RuleResult(
        id="rule.cluster-size", outcome="failed", reason="small", gates="run", waived_by="--allow-small-cluster"
    )
    root = ElementTree.fromstring(junit.render(samples.make_record(rules=[rule])))
    assert root.find(".//failure") is None


@pytest.mark.parametrize("scale", ["fast", None, [25], True, 10**400])
def test_a_time_scale_that_is_no_number_is_told_as_none(scale: object) -> None:
    run = samples.make_record()
    run.settings["time_scale"] = scale
    assert "divided by a time scale of nan" in page.render(run)
    assert "its waits were divided by a time scale of nan" in refusals(run, load_standard())


def test_csv_has_a_row_for_each_and_no_formula(hostile: Path) -> None:
    text = report(hostile, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["id"] for row in rows][:1] == [DNS]
    assert len(rows) == 7
    assert rows[0]["reason"].startswith("'=cmd")
    assert not any(str(value).startswith(("=", "+", "-", "@")) for row in rows for value in row.values())


def test_markdown_says_what_failed_and_mentions_nobody(hostile: Path) -> None:
    text = report(hostile, "--format", "markdown")
    assert text.startswith("## ✗ Fail (partial: 1 of 24 core requirements)")
    assert DNS in text
    assert "next step: look at node windows-1" in text
    assert "<script>" not in text
    assert "@everyone" not in text
    assert all(line.count("|") - line.count("\\|") in (0, 5) for line in text.splitlines())


def test_markdown_escapes_what_would_be_markup() -> None:
    assert escape("a|b *c* <b> [x](y)\nz") == "a\\|b \\*c\\* &lt;b&gt; \\[x\\](y) z"


def test_prow_finds_its_layout(tmp_path: Path) -> None:
    samples.write_run(tmp_path, outcomes={DNS: "failed"})
    report(tmp_path, "--format", "prow", "--output", str(tmp_path / "build"))
    build = tmp_path / "build"
    started, finished = (json.loads((build / name).read_text()) for name in ("started.json", "finished.json"))
    assert finished["timestamp"] - started["timestamp"] == 9
    assert (finished["passed"], finished["result"]) == (False, "FAILURE")
    assert finished["metadata"]["verdict"] == "Fail"
    assert f"✗ {DNS}" in (build / "build-log.txt").read_text()
    ElementTree.parse(build / "artifacts" / "junit_winready.xml")
    assert (build / "artifacts" / "report.html").is_file()


def test_prow_without_a_folder_is_wrong_usage(tmp_path: Path) -> None:
    samples.write_run(tmp_path)
    result = CliRunner().invoke(cli, ["report", "--report-dir", str(tmp_path), "--format", "prow"])
    assert (result.exit_code, "--to" in result.stderr) == (2, True)


def told(base: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["report", "--report-dir", str(base), "--format", "markdown", *arguments])


def test_a_run_that_is_not_there_is_said(tmp_path: Path) -> None:
    result = told(tmp_path, "nope")
    assert result.exit_code == 2
    assert "there is no run 'nope'" in result.stderr


DAMAGES = {
    "cut short": b'{"schema": "winready-run/1", "run_id": "x"',
    "empty": b"",
    "of another version": b'{"schema": "winready-run/9", "run_id": "x"}',
    "junk": bytes(range(256)) * 40,
    "nested": b"[" * 200_000,
    "something else": b'{"run_id": 7}',
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_record_is_said_and_the_journal_tells_the_run(tmp_path: Path, damage: str) -> None:
    folder = samples.write_run(tmp_path)
    (folder / "run.json").write_bytes(DAMAGES[damage])
    result = told(tmp_path)
    assert result.exit_code == 0
    assert "run.json" in result.stderr
    assert "the run's journal tells" in result.stderr
    assert result.stdout.startswith("## ✓ Pass\n")
    (folder / "journal.jsonl").write_bytes(DAMAGES[damage] + b"\n")
    for command in ("report", "status", "compare", "certify"):
        more = {"compare": [str(folder), str(folder)], "certify": ["--output", str(tmp_path / "b")]}.get(command, [])
        result = CliRunner().invoke(cli, [command, "--report-dir", str(tmp_path), *more])
        assert result.exit_code == 2, command
        assert "run.json" in result.stderr
        assert "journal.jsonl" in result.stderr
        assert isinstance(result.exception, SystemExit)


def test_a_run_that_was_cut_off_is_told_as_far_as_it_came(tmp_path: Path) -> None:
    folder = samples.write_run(tmp_path, ids=[DNS, samples.CORE[0]])
    (folder / "run.json").unlink()
    cut = samples.judged(record.read_events(folder), 1)
    lines = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "journal.jsonl").write_bytes(b"".join(lines[:cut]) + lines[cut][:40])
    result = told(tmp_path, folder.name)
    assert result.exit_code == 0
    assert f"run {folder.name} was cut off" in result.stderr
    assert "Fail (unfinished)" in result.stdout
    assert DNS in result.stdout
    result = CliRunner().invoke(cli, ["status", "--report-dir", str(tmp_path), folder.name])
    assert (result.exit_code, result.stdout) == (3, "Fail (unfinished)\n")
    with samples.written_journal(folder):
        assert "is in progress" in told(tmp_path, folder.name).stderr


def test_requirements_come_in_the_order_of_the_runs_own_specification() -> None:
    standard = [DNS, samples.CORE[0]]
    started, *rest = samples.run_events(ids=standard)
    assert isinstance(started, events.RunStarted)
    for order in (started.requirements, started.requirements[::-1]):
        first = msgspec.structs.replace(started, requirements=order)
        assert [item.id for item in record.from_events([first, *rest]).requirements] == order
    # Runs of earlier versions do not say; they followed the standard.
    silent = msgspec.structs.replace(started, requirements=[])
    assert [item.id for item in record.from_events([silent, *rest]).requirements] == started.requirements

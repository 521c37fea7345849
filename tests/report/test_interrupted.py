"""A run that was interrupted has no verdict, and what it did not judge is nobody's regression."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from report import samples
from winready.cli.main import cli
from winready.report.bundle.recomputing import recompute
from winready.report.dashboard.grid import make_grid
from winready.report.history import History
from winready.report.record import read_events

WHOLE, CUT, AFTER = "261101-100000-aaaa", "261102-100000-bbbb", "261103-100000-cccc"
PASSED, FAILED, *LEFT = samples.CORE


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A good run, one that was interrupted after a pass and a failure, and one after that."""
    samples.write_run(tmp_path, WHOLE)
    outcomes = {FAILED: "failed", **dict.fromkeys(LEFT, "blocked")}
    samples.write_run(tmp_path, CUT, outcomes=outcomes, interrupted=True)
    samples.write_run(tmp_path, AFTER, outcomes={LEFT[0]: "failed"})
    return tmp_path


def winready(base: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, [*words, "--report-dir", str(base)])


def test_status_says_so_and_ends_with_130(runs: Path) -> None:
    said = winready(runs, "status", CUT)
    assert (said.exit_code, said.stdout) == (130, "Interrupted, no verdict\n")
    told = json.loads(winready(runs, "status", CUT, "-o", "json").stdout)
    assert (told["verdict"], told["verdict_reasons"][0]) == (None, "the run was interrupted")


def test_compared_with_it_only_what_failed_is_worse(runs: Path) -> None:
    result = winready(runs, "compare", WHOLE, CUT)
    assert result.exit_code == 1
    assert f"1 worse, {len(LEFT)} not judged" in result.stdout
    assert "note: the second run was interrupted" in result.stdout
    assert not any(name in result.stdout for name in LEFT)
    rows = {row["id"]: row for row in json.loads(winready(runs, "compare", CUT, AFTER, "-o", "json").stdout)["rows"]}
    assert rows[FAILED]["change"] == "better"
    assert {rows[name]["change"] for name in LEFT} == {"not judged"}
    assert {(rows[name]["before"], rows[name].get("reason_before", "")) for name in LEFT} == {("not judged", "")}
    for form in ("markdown", "csv", "html"):
        assert "not judged" in winready(runs, "compare", WHOLE, CUT, "-o", form).stdout


def test_an_interruption_alone_is_no_regression(tmp_path: Path) -> None:
    samples.write_run(tmp_path, WHOLE)
    samples.write_run(tmp_path, CUT, outcomes=dict.fromkeys(samples.CORE, "blocked"), interrupted=True)
    assert winready(tmp_path, "compare", WHOLE, CUT).exit_code == 0


def test_history_looks_past_it(runs: Path) -> None:
    (group,) = json.loads(winready(runs, "history", "-o", "json").stdout)["clusters"]
    after, cut, _ = group["runs"]
    assert (cut["verdict"], cut["better"], cut["worse"]) == (None, [], [FAILED])
    assert sorted(cut["counts"].split(", ")) == ["1 failed", "1 passed", f"{len(LEFT)} not judged"]
    # What was not judged in between is compared with the last time that it was.
    assert (after["better"], after["worse"]) == ([FAILED], [LEFT[0]])
    assert "Interrupted, no verdict" in winready(runs, "history").stdout


def test_the_dashboard_takes_it_for_no_outcome(runs: Path) -> None:
    with History(runs) as index:
        index.sync()
        grid = make_grid(index, index.runs())
    after, cut, _ = range(3)
    assert [run["id"] for run in grid["runs"]] == [AFTER, CUT, WHOLE]
    cells = {row["id"]: row["cells"] for row in grid["requirements"]}
    assert {cells[name][cut] for name in LEFT} == {"u"}
    assert (cells[PASSED][cut], cells[FAILED][cut], cells[LEFT[0]][after]) == ("p", "f", "f")
    assert grid["runs"][cut]["why"] == "what it had not judged by then says nothing about the cluster"


def test_junit_skips_what_was_not_judged_and_has_one_error(runs: Path) -> None:
    suite = ElementTree.parse(runs / CUT / "junit.xml").getroot()
    assert (suite.get("failures"), suite.get("errors")) == ("1", "1")
    (error,) = suite.findall(".//error")
    assert (error.get("type"), error.get("message")) == ("interrupted", "Interrupted, no verdict")
    assert len([case for case in suite.findall(".//testcase") if case.find("skipped") is not None]) >= len(LEFT)


def test_no_certificate_rests_on_it(runs: Path) -> None:
    bundle = ["certify", CUT, "--output", str(runs / "bundle.tar.gz")]
    product = ["--vendor", "Shop", "--product-name", "Shop K8s", "--product-version", "1", "--contact", "a@b.example"]
    result = winready(runs, *bundle, *product)
    assert result.exit_code == 1
    assert "it was interrupted and has no verdict" in result.stderr
    assert not (runs / "bundle.tar.gz").exists()


def test_anyone_comes_to_the_same_end_by_its_journal(runs: Path) -> None:
    verdict = recompute(samples.STANDARD, read_events(runs / CUT)).verdict
    assert (verdict.verdict, verdict.exit_code) == (None, 130)

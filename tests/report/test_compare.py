"""``winready compare``: what changed between two runs, and its exit code."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from report import samples
from winready.cli.main import cli
from winready.engine.outcomes import RequirementResult

DNS, CUSTOM, OUTSIDE = "core.network.dns-internal", "core.network.dns-custom", "core.network.dns-external"


def compare(base: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["compare", "--report-dir", str(base), *arguments])


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    samples.write_run(tmp_path, "a", ids=[DNS, CUSTOM, OUTSIDE], outcomes={CUSTOM: "failed"})
    samples.write_run(tmp_path, "b", ids=[DNS, CUSTOM, samples.CORE[0]], outcomes={DNS: "failed"})
    return tmp_path


def changes(base: Path, a: str, b: str) -> dict[str, Any]:
    rows = json.loads(compare(base, a, b, "-o", "json").stdout)["rows"]
    return {row["id"]: row for row in rows if not row["id"].startswith("rule.")}


def test_every_requirement_is_better_worse_same_new_or_gone(runs: Path) -> None:
    found = changes(runs, "a", "b")
    assert {name: row["change"] for name, row in found.items()} == {
        DNS: "worse", CUSTOM: "better", OUTSIDE: "gone", samples.CORE[0]: "new",
    }  # fmt: skip
    assert found[DNS]["appeared"] == ["wc-1 reaches ws-0 (node windows-1): curl: (28) Connection timed out"]
    assert found[CUSTOM]["vanished"] == ["wc-1 reaches ws-0 (node windows-1): curl: (28) Connection timed out"]


def test_worse_is_exit_code_1_and_nothing_else_is(runs: Path) -> None:
    assert compare(runs, "a", "b").exit_code == 1
    assert compare(runs, "a", "a").exit_code == 0
    assert compare(runs, "a", "nowhere").exit_code == 2


def test_text_leads_with_the_worst_and_shows_the_evidence(runs: Path) -> None:
    lines = compare(runs, "a", "b").stdout.splitlines()
    assert lines[3] == "1 worse, 1 better, 1 new, 1 gone, 6 same"
    assert lines[4].split() == ["▼", DNS, "passed", "->", "failed"]
    assert "    only in B: wc-1 reaches ws-0 (node windows-1): curl: (28) Connection timed out" in lines


def test_columns_are_headed_by_dates_or_by_given_names(tmp_path: Path) -> None:
    for run in ("261101-101500-ab12", "261103-171500-cd34"):
        samples.write_run(tmp_path, run, ids=[DNS])
    both = ("261101-101500-ab12", "261103-171500-cd34")
    assert compare(tmp_path, *both).stdout.startswith("A  2026-11-01 10:15 UTC (run 261101-101500-ab12): Pass")
    assert "| | 2026-11-01 10:15 UTC | 2026-11-03 17:15 UTC |" in compare(tmp_path, *both, "-o", "markdown").stdout
    named = compare(tmp_path, *both, "--name", "Shop 1.4", "--name", "Shop 1.5", "-o", "html").stdout
    assert "<h1>Shop 1.4 → Shop 1.5</h1>" in named
    assert "261103-171500-cd34" in named


def test_runs_over_other_nodes_or_of_a_sandbox_are_less_comparable_than_they_look(tmp_path: Path) -> None:
    three = samples.inventory(windows=3)
    samples.write_run(tmp_path, "a", ids=[DNS], found=three)
    samples.write_run(tmp_path, "b", ids=[DNS], found=three, left_out={"windows-3": "only 2 nodes are judged"})
    samples.write_run(tmp_path, "c", ids=[DNS], found=msgspec.structs.replace(three, simulated=True))
    notes = json.loads(compare(tmp_path, "a", "b", "-o", "json").stdout)["notes"]
    assert notes == [
        "other Windows nodes were judged: windows-1, windows-2, windows-3, and windows-1, windows-2",
        "in the second run not judged: windows-3: only 2 nodes are judged",
    ]
    assert json.loads(compare(tmp_path, "a", "c", "-o", "json").stdout)["notes"] == [
        "only one of the two clusters is simulated"
    ]


def test_names_that_differ_every_time_are_no_difference(tmp_path: Path) -> None:
    def failing(run: str, pod: str, address: str) -> RequirementResult:

        found = samples.evidence(probes=1, bad=1)
        text = f"lookup ls.winready-{run}-fx: {address}:3{run[:4]} gave up after 10{run[-1]} milliseconds"
        found.probes[0] = msgspec.structs.replace(found.probes[0], title=f"{pod} asks", observed=text)
        return samples.result(DNS, "failed", found=found)

    samples.write_run(tmp_path, "a", results=[failing("261101-101500-ab12", "back-57f4ddfd48-f2w4r", "10.96.3.4")])
    samples.write_run(tmp_path, "b", results=[failing("261102-111500-cd17", "back-9587668d6-2sfz8", "10.96.77.1")])
    row = changes(tmp_path, "a", "b")[DNS]
    assert (row["change"], row.get("appeared"), row.get("vanished")) == ("same", None, None)


def test_two_vendors_side_by_side_can_be_published(runs: Path) -> None:
    names = ("--name", "Shop | 1.4", "--name", "<Other>")
    text = compare(runs, "a", "b", *names, "-o", "markdown").stdout
    assert "| change | requirement | Shop \\| 1.4 | &lt;Other&gt; | why |" in text
    rows = list(csv.reader(io.StringIO(compare(runs, "a", "b", *names, "-o", "csv").stdout)))
    assert rows[0][2:4] == ["Shop | 1.4", "<Other>"]
    page = compare(runs, "a", "b", *names, "-o", "html", "--to", str(runs / "c.html"))
    assert page.exit_code == 1
    text = (runs / "c.html").read_text()
    assert "&lt;Other&gt;" in text
    assert "default-src &#39;none&#39;" in text
    rows = list(csv.reader(io.StringIO(compare(runs, "a", "b", "--name", "=1+1", "--name", "@x", "-o", "csv").stdout)))
    assert rows[0][2:4] == ["'=1+1", "'@x"]


@pytest.mark.parametrize("form", ["text", "markdown", "html", "csv", "json", "yaml"])
def test_every_form_goes_to_a_file(runs: Path, form: str) -> None:
    result = compare(runs, "a", "b", "-o", form, "--to", str(runs / "c"))
    assert (result.exit_code, result.stdout) == (1, "")
    assert (runs / "c").read_text() == compare(runs, "a", "b", "-o", form).stdout.replace("\r\n", "\n")


def test_one_name_is_wrong_usage(runs: Path) -> None:
    assert compare(runs, "a", "b", "--name", "x").exit_code == 2


def test_linux_nodes_that_neither_run_looked_at_are_named(tmp_path: Path) -> None:
    three, left_out = samples.inventory(linux=3), {"linux-3": "two are enough"}
    for name in ("a", "b"):
        samples.write_run(tmp_path, name, ids=[DNS], found=three, left_out=left_out)
    notes = json.loads(compare(tmp_path, "a", "b", "-o", "json").stdout)["notes"]
    assert notes == ["in both runs not judged: linux-3: two are enough"]


HOSTILE = "=cmd|' /C calc'!A0<script>alert(1)</script>\x1b[31m"


@pytest.fixture
def advised(tmp_path: Path) -> Path:
    """Two runs that differ only in what they tell of features and workloads."""
    never: dict[str, Any] = {"support": "never", "documented": "never", "area": "Security"}
    samples.write_run(
        tmp_path,
        "a",
        ids=[DNS],
        features=[
            samples.feature("probes"),
            samples.feature("hooks", "failed", works=False, contradiction="not shown here"),
            samples.feature("privileged", works=False, **never),
            samples.feature("gmsa", "blocked", works=None, reason="no domain"),
            samples.feature("hpa", "not-applicable", works=None, way="data"),
        ],
        workloads=[samples.workload("web"), samples.workload("back", "failed"), samples.workload("old")],
    )
    samples.write_run(
        tmp_path,
        "b",
        ids=[DNS],
        features=[
            samples.feature("probes", "failed", works=False, reason="nobody restarted it", contradiction="not so here"),
            samples.feature("hooks"),
            samples.feature("privileged", "failed", reason="it ran", contradiction="yet it works here", **never),
            samples.feature("gmsa", "error", works=None, reason="crashed"),
            samples.feature("hpa", "not-applicable", works=None, way="data"),
        ],
        workloads=[samples.workload("web", "failed"), samples.workload("back"), samples.workload(HOSTILE, "blocked")],
    )
    return tmp_path


def test_features_and_workloads_are_compared_by_whether_they_work(advised: Path) -> None:
    found = json.loads(compare(advised, "a", "b", "-o", "json").stdout)
    assert {row["id"]: row["change"] for row in found["features"]} == {
        "probes": "worse", "hooks": "better", "privileged": "better", "gmsa": "changed", "hpa": "same",
    }  # fmt: skip
    probes = found["features"][0]
    assert (probes["works_before"], probes["works_after"]) == (True, False)
    assert (probes["contradiction_after"], probes["area"]) == ("not so here", "Pods")
    assert len(probes["appeared"]) == 1
    assert {row["id"].split(" ")[0]: row["change"] for row in found["workloads"]} == {
        "web": "worse", "back": "better", "old": "gone", HOSTILE.split(" ")[0]: "new",
    }  # fmt: skip
    assert found["workloads"][0]["reason_after"] == "probes failed, needed at a.yaml:7 (spec.x): probes failed"


def test_features_and_workloads_that_got_worse_are_told_and_no_regression(advised: Path) -> None:
    result = compare(advised, "a", "b")
    assert result.exit_code == 0
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "features, which the verdict does not look at: 1 worse, 2 better, 1 changed, 1 same" in lines
    assert "▼ probes works -> does not work, a contradiction" in lines
    assert "▲ privileged does not work, as documented -> works, a contradiction" in lines
    assert "~ gmsa blocked -> error" in lines
    assert "▼ web (Deployment shop/web) ready -> not ready" in lines
    assert "B: nobody restarted it" in lines
    assert not any("hpa" in line for line in lines)


@pytest.mark.parametrize("form", ["text", "markdown", "html", "csv"])
def test_every_form_tells_of_them_and_hostile_names_stay_text(advised: Path, form: str) -> None:
    text = compare(advised, "a", "b", "-o", form).stdout
    for word in ("does not work, as documented", "works, a contradiction", "not ready", "nobody restarted it"):
        assert word in text, word
    assert "\x1b" not in text
    if form != "csv":
        assert ("<script>alert" in text) == (form == "text")
        return
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0][-3:] == ["kind", "seen A", "seen B"]
    assert {row[-3] for row in rows[1:]} == {"requirement", "feature", "workload"}
    assert not any(cell.startswith("=") for row in rows for cell in row)


def test_what_only_one_run_was_asked_for_is_a_note_and_no_change(advised: Path) -> None:
    samples.write_run(advised, "c", ids=[DNS])
    found = json.loads(compare(advised, "c", "b", "-o", "json").stdout)
    assert (found["features"], found["workloads"]) == ([], [])
    assert found["notes"] == [
        "only the second run tells of features (5 of them)",
        "only the second run tells of workloads (3 of them)",
    ]
    for form in ("text", "markdown", "html"):
        assert "does not look at" not in compare(advised, "c", "c", "-o", form).stdout


def test_two_workloads_of_one_name_are_told_apart_by_their_files(tmp_path: Path) -> None:
    twice = [samples.workload("web", path="a.yaml"), samples.workload("web", "failed", path="b.yaml")]
    samples.write_run(tmp_path, "a", ids=[DNS], workloads=twice)
    found = json.loads(compare(tmp_path, "a", "a", "-o", "json").stdout)["workloads"]
    assert [row["id"] for row in found] == [f"web (Deployment shop/web) in {name}.yaml" for name in "ab"]

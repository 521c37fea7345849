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

"""``winready compare --grid``: products and versions side by side, in every form, whatever they are called."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from report import samples
from winready.cli.main import cli

DNS, CUSTOM, OUTSIDE = "core.network.dns-internal", "core.network.dns-custom", "core.network.dns-external"


def grid(base: Path, *arguments: str) -> Result:
    result = CliRunner().invoke(cli, ["compare", "--grid", "--report-dir", str(base), *arguments])
    assert "Traceback" not in result.output
    return result


def document(base: Path, *arguments: str) -> Any:
    result = grid(base, "-o", "json", *arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def cells(found: Any, name: str) -> list[str]:
    (row,) = [row for row in found["rows"] if row["id"] == name]
    return list(row["outcomes"])


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    east, west = (samples.inventory(f"https://{name}.example:6443", uid=name) for name in ("east", "west"))
    older = msgspec.structs.replace(east, version="v1.35.0")
    samples.write_run(tmp_path, "261101-100000-aaaa", found=older)
    samples.write_run(tmp_path, "261102-100000-bbbb", found=east, outcomes={DNS: "failed"})
    samples.write_run(tmp_path, "261103-100000-cccc", found=east, outcomes={OUTSIDE: "blocked"})
    samples.write_run(tmp_path, "261104-100000-dddd", found=west, ids=[DNS, CUSTOM])
    samples.write_run(tmp_path, "261105-100000-eeee", settings={"sandbox": True}, ids=[DNS])
    return tmp_path


def test_each_product_and_version_is_shown_by_its_newest_run(runs: Path) -> None:
    found = document(runs)
    assert [(each["name"], each["kubernetes"], each["run_id"]) for each in found["columns"]] == [
        ("east.example:6443", "v1.35.0", "261101-100000-aaaa"),
        ("east.example:6443", "v1.36.0", "261103-100000-cccc"),
        ("west.example:6443", "v1.36.0", "261104-100000-dddd"),
        ("sandbox", "v1.36.0", "261105-100000-eeee"),
    ]
    assert cells(found, DNS) == ["passed"] * 4
    assert cells(found, OUTSIDE) == ["passed", "blocked", "not selected", "not selected"]
    assert [each["marks"] for each in found["columns"]] == [[], [], ["partial"], ["sandbox", "partial"]]
    assert [each["state"] for each in found["columns"]] == ["pass", "fail", "pass", "pass"]
    categories = list(dict.fromkeys(row["category"] for row in found["rows"]))
    assert categories[:2] == ["Rules of the run", "Core.Network"]
    assert len(document(runs, "--cluster", "EAST")["columns"]) == 2


def test_runs_may_be_named_and_stay_in_their_order(runs: Path) -> None:
    given = ("261104-100000-dddd", "261101-100000-aaaa", "261102-100000-bbbb")
    found = document(runs, *given, "--name", "C", "--name", "A", "--name", "B")
    assert [(each["name"], each["run_id"]) for each in found["columns"]] == list(zip("CAB", given, strict=True))
    assert cells(found, DNS) == ["passed", "passed", "failed"]
    (row,) = [row for row in found["rows"] if row["id"] == DNS]
    assert row["reasons"] == ["", "", "N10 went wrong"]


def test_a_bundle_is_named_by_its_product(runs: Path) -> None:
    bundle = runs / "shop.tar.gz"
    made = CliRunner().invoke(
        cli,
        ["certify", "261104-100000-dddd", "--report-dir", str(runs), "--draft", "--to", str(bundle), "--vendor", "V",
         "--product-name", "Shop", "--product-version", "1.4", "--contact", "c@v.example"],
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    (column,) = document(runs, str(bundle))["columns"]
    assert (column["name"], column["marks"]) == ("Shop 1.4", ["draft", "partial"])
    bundle.write_bytes(b"no bundle")
    assert grid(runs, str(bundle)).exit_code == 2


def test_text_is_for_terminals_of_any_width(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    text = grid(runs).stdout
    assert "  3  west.example:6443  Kubernetes v1.36.0" in text
    assert "     Pass (partial: 2 of 24 core requirements)  [partial]  Windows 10.0.20348" in text
    (line,) = [line for line in text.splitlines() if line.startswith(OUTSIDE)]
    assert line.split() == [OUTSIDE, "✓", "■"]
    assert "sandbox: a simulated cluster" in text
    assert "✗ failed" in text.splitlines()[-3]
    monkeypatch.setenv("COLUMNS", "60")
    narrow = grid(runs).stdout
    assert len([line for line in narrow.splitlines() if line.startswith(DNS)]) > 1
    assert "east.example:6443 v1.35.0" in grid(runs, "-o", "wide").stdout


def test_markdown_and_csv_have_the_same_cells(runs: Path) -> None:
    text = grid(runs, "-o", "markdown").stdout
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in table} == {6}
    (line,) = [line for line in table if line.startswith(f"| {OUTSIDE} ")]
    assert [cell.strip() for cell in line.split("|")[2:-1]] == ["✓", "■", "", ""]
    assert "| marks |  |  | partial | sandbox, partial |" in table
    assert f"- {OUTSIDE}, east.example:6443 v1.36.0: " in text
    rows = list(csv.reader(io.StringIO(grid(runs, "-o", "csv").stdout)))
    assert rows[0] == ["id", "category", "level", "east.example:6443 v1.35.0", "east.example:6443 v1.36.0",
                       "west.example:6443 v1.36.0", "sandbox v1.36.0"]  # fmt: skip
    assert [OUTSIDE, "Core.Network", "core", "passed", "blocked", "not selected", "not selected"] in rows
    assert {len(row) for row in rows} == {7}


class Reading(HTMLParser):
    """What a browser makes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]


EVIL = "=cmd|'/C calc'!A1|</td><script>alert(1)</script>\x1b[2J`*_[x](javascript:1)\n# head @team\u202e"


def test_hostile_names_stay_names_in_every_form(tmp_path: Path) -> None:
    found = msgspec.structs.replace(samples.inventory(EVIL, uid="u"), version=EVIL)
    folder = samples.write_run(tmp_path, "261101-100000-aaaa", ids=[DNS], outcomes={DNS: "failed"}, found=found)
    record = json.loads((folder / "run.json").read_bytes())
    record["requirements"][0] |= {"id": EVIL, "category": EVIL, "reason": EVIL}
    (folder / "run.json").write_text(json.dumps(record))
    for more in ((), ("261101-100000-aaaa", "--name", EVIL)):
        for form in ("text", "wide", "markdown", "csv", "html"):
            result = grid(tmp_path, *more, "-o", form)
            assert result.exit_code == 0, (form, result.output)
            assert not set("\x1b\u202e") & set(result.stdout), form
        page = Reading()
        page.feed(grid(tmp_path, *more, "-o", "html").stdout)
        assert not {"script", "img", "a"} & set(page.tags)
        assert not [name for name in page.attributes if name.startswith("on")]
        for row in csv.reader(io.StringIO(grid(tmp_path, *more, "-o", "csv").stdout)):
            assert not [cell for cell in row if re.match(r"\s*[=+@\-\t\r\n]", cell)]
        table = [line for line in grid(tmp_path, *more, "-o", "markdown").stdout.splitlines() if line.startswith("|")]
        assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {3}
        assert "<script" not in grid(tmp_path, *more, "-o", "markdown").stdout


def test_interrupted_runs_have_no_verdict_and_no_false_outcomes(tmp_path: Path) -> None:
    samples.write_run(tmp_path, ids=[DNS, CUSTOM], outcomes={CUSTOM: "blocked"}, interrupted=True)
    found = document(tmp_path)
    assert found["columns"][0]["state"] == "none"
    assert "interrupted" in found["columns"][0]["marks"]
    assert cells(found, CUSTOM) == ["not judged"]
    assert "Interrupted, no verdict" in grid(tmp_path, "-o", "html").stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["compare", "--grid", "a", "b", "--name", "x"], "give --name once for each run"),
        (["compare", "--grid", "--name", "x"], "--name names runs"),
        (["compare", "--grid", "a", "--cluster", "x"], "--cluster chooses among the runs"),
        (["compare", "a", "b", "--cluster", "x"], "--cluster chooses what --grid shows"),
        (["compare", "a", "b", "c"], "--grid shows more"),
        (["compare", "--grid", "nowhere"], "there is no run 'nowhere'"),
        (["compare", "--grid"], "there is no finished run"),
        (["compare", "--grid", "--cluster", "moon"], "of a cluster called 'moon'"),
    ],
)
def test_wrong_usage_is_told(tmp_path: Path, arguments: list[str], told: str) -> None:
    result = CliRunner().invoke(cli, [*arguments, "--report-dir", str(tmp_path)])
    assert (result.exit_code, told in result.stderr) == (2, True), result.stderr


def test_a_file_that_cannot_be_written_is_told(runs: Path) -> None:
    result = grid(runs, "-o", "html", "--to", str(runs / "nowhere" / "x.html"))
    assert (result.exit_code, "cannot be written" in result.stderr) == (2, True)
    assert grid(runs, "-o", "html", "--to", str(runs / "x.html")).exit_code == 0
    assert "products and versions" in (runs / "x.html").read_text()

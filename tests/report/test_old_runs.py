"""Runs and bundles of earlier versions (``old/README.md``) stay readable by everything that reads runs."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner, Result

from cli.conftest import CommandLine, command_line
from report import samples
from winready.cli.main import cli
from winready.report import record
from winready.report.bundle import archive
from winready.report.schemas import SCHEMAS

__all__ = ["command_line"]

OLD = Path(__file__).parent / "old"
FIRST, NEXT = OLD / "260901-101500-ab12", OLD / "f16f3a4"
DNS, POD_IP = "core.network.dns-internal", "core.network.windows-to-linux-pod-ip"
WHOLE = "whole"
"""The run that the bundles hold."""
TOLD: dict[str, tuple[str, int, dict[str, int]]] = {
    FIRST.name: ("Fail (partial: 2 of 24 core requirements)", 1, {"passed": 1, "failed": 1}),
    "healthy": ("Pass (partial: 2 of 24 core requirements)", 0, {"passed": 2}),
    "failed": ("Fail (partial: 2 of 24 core requirements)", 1, {"passed": 1, "failed": 1}),
    "rule-failed": ("Fail (partial: 2 of 24 core requirements)", 1, {"passed": 2}),
    "waived": ("Pass (partial: 2 of 24 core requirements)", 0, {"passed": 2}),
    "interrupted": ("Fail (partial: 13 of 24 core requirements)", 130, {"passed": 2, "blocked": 11}),
    "both": ("Fail (partial: 2 of 24 core requirements)", 1, {"passed": 1, "failed": 1}),
    WHOLE: ("Pass", 0, {"passed": 24}),
}
"""Finished runs: their verdict, exit code and outcomes."""
BUNDLES = ("signed", "unsigned", "draft")
PRODUCT = ("--vendor", "Shop", "--product-name", "S", "--product-version", "1", "--contact", "k8s@shop.example")


def ask(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in arguments])


def bundle(name: str) -> Path:
    return NEXT / f"{name}.tar.gz"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All the runs side by side, in a report folder that may be written to."""
    base = tmp_path_factory.mktemp("runs")
    for folder in (FIRST, *(path for path in NEXT.iterdir() if path.is_dir())):
        shutil.copytree(folder, base / folder.name)
    (base / WHOLE).mkdir()
    files = archive.unpack(bundle("unsigned").read_bytes())
    for name in ("journal.jsonl", "run.json", "junit.xml"):
        (base / WHOLE / name).write_bytes(files[name])
    return base


def test_every_run_is_read_here(runs: Path) -> None:
    assert {path.name for path in runs.iterdir() if path.is_dir()} == {*TOLD, "killed"}
    assert {path.name for path in NEXT.glob("*.tar.gz")} == {bundle(name).name for name in BUNDLES}


def test_they_follow_the_published_schemas() -> None:
    valid = {name: jsonschema.Draft202012Validator(SCHEMAS[name]()) for name in ("run", "journal")}
    for folder in (path for path in NEXT.iterdir() if path.is_dir()):
        if folder.name in TOLD:
            valid["run"].validate(json.loads((folder / "run.json").read_bytes()))
        for line in (folder / "journal.jsonl").read_text().splitlines():
            valid["journal"].validate(json.loads(line))


@pytest.mark.parametrize("name", TOLD)
def test_record_and_journal_tell_the_same_run(runs: Path, name: str) -> None:
    verdict, exit_code, outcomes = TOLD[name]
    found = record.read(runs / name)
    assert (found.verdict_text, found.exit_code) == (verdict, exit_code)
    assert Counter(item.outcome for item in found.requirements) == outcomes
    assert record.encode(found) == record.encode(record.read_story(runs / name))


@pytest.mark.parametrize("name", TOLD)
def test_status_says_what_it_said(runs: Path, name: str) -> None:
    verdict, exit_code, _ = TOLD[name]
    result = ask("status", runs / name)
    assert (result.stdout.strip(), result.exit_code) == (verdict, exit_code)


@pytest.mark.parametrize("name", TOLD)
def test_the_record_keeps_every_field(runs: Path, name: str) -> None:
    """Documents may gain fields; what an earlier version wrote is there as it was."""
    written = json.loads((runs / name / "run.json").read_bytes())
    told = json.loads(ask("report", runs / name, "--format", "json").stdout)
    assert lost(written, told) == []
    if name != WHOLE:  # reading that much YAML takes seconds
        assert yaml.safe_load(ask("report", runs / name, "--format", "yaml").stdout) == told


def lost(before: Any, after: Any, path: str = "") -> list[str]:
    """Where a document lacks or changes something of another."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [line for key, value in before.items() for line in lost(value, after.get(key), f"{path}.{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [line for number, (one, other) in pairs for line in lost(one, other, f"{path}[{number}]")]
    return [] if before == after else [path]


@pytest.mark.parametrize("form", ["html", "junit", "csv", "markdown"])
@pytest.mark.parametrize("name", [*TOLD, "killed"])
def test_pages_show_every_requirement(runs: Path, name: str, form: str, tmp_path: Path) -> None:
    page = tmp_path / "page"
    result = ask("report", runs / name, "--format", form, "--output", page)
    assert result.exit_code == 0, result.output
    told, text = record.read_story(runs / name), page.read_text()
    assert told.run_id in text
    assert [item.id for item in told.requirements if item.id not in text] == []


@pytest.mark.parametrize("name", TOLD)
def test_prow_reads_them(runs: Path, name: str, tmp_path: Path) -> None:
    assert ask("report", runs / name, "--format", "prow", "--output", tmp_path).exit_code == 0
    finished = json.loads((tmp_path / "finished.json").read_bytes())
    assert finished["passed"] == (TOLD[name][1] == 0)


def test_reasons_of_then_are_told(runs: Path) -> None:
    for name, words in (
        ("failed", "does not resolve"),
        ("rule-failed", "agnhost is not the same on all nodes"),
        ("waived", "(waived by `--allow-small-cluster`): not qualified: 1 usable Linux"),
        ("interrupted", "the run was interrupted before it was judged"),
        ("both", "the two verifiers disagree: winready's check passed, upstream failed"),
    ):
        assert words in ask("report", runs / name, "--format", "markdown").stdout, name


def test_a_run_that_was_killed_is_told_by_its_journal(runs: Path) -> None:
    result = ask("status", runs / "killed")
    assert (result.stdout.strip(), result.exit_code) == ("Fail (unfinished)", 3)
    assert "run killed was cut off" in result.stderr
    told = json.loads(ask("report", runs / "killed", "--format", "json").stdout)
    assert [item["outcome"] for item in told["requirements"]] == ["passed"] * 3


def test_a_new_run_takes_from_them_what_to_verify(runs: Path, command_line: CommandLine) -> None:
    """Not what they found: this is another cluster."""
    network = {item.id for item in samples.STANDARD.requirements if item.category == "Core.Network"}
    for option, name, rest in (("--resume", "killed", network), ("--rerun-failed", "failed", {DNS})):
        result = command_line("run", "--sandbox", "--speed", "max", "--dry-run", option, str(runs / name), "-o", "json")
        assert result.returncode == 0, result.stderr
        assert {item["id"] for item in json.loads(result.stdout)["requirements"]} == rest


def test_history_knows_them_all(runs: Path) -> None:
    result = ask("history", "--report-dir", runs, "-o", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    document = json.loads(result.stdout)
    listed = [run for group in document["clusters"] for run in group["runs"]]
    assert {Path(run["folder"]).name: run["verdict_text"] for run in listed} == {name: TOLD[name][0] for name in TOLD}
    text = ask("history", "--report-dir", runs).stdout
    assert "run killed was cut off; 'winready run --resume killed' does the rest" in text


def changes(*arguments: object) -> tuple[int, dict[str, str]]:
    result = ask("compare", *arguments, "-o", "json")
    assert result.exit_code in (0, 1), result.output
    return result.exit_code, {row["id"]: row["change"] for row in json.loads(result.stdout)["rows"]}


def test_old_runs_compare_with_each_other(runs: Path) -> None:
    code, rows = changes(runs / "failed", runs / "rule-failed")
    assert (code, rows[DNS], rows[POD_IP], rows["rule.images"]) == (1, "better", "same", "worse")
    code, rows = changes(runs / "waived", runs / WHOLE)
    assert (code, rows[POD_IP], rows["rule.cluster-size"], rows[DNS]) == (0, "same", "better", "new")
    code, rows = changes(runs / WHOLE, bundle("signed"))
    assert (code, set(rows.values())) == (0, {"same"})
    for form in ("text", "markdown", "html", "csv", "yaml"):
        result = ask("compare", runs / "failed", runs / "rule-failed", "-o", form)
        assert (result.exit_code, DNS in result.stdout) == (1, True)


def test_old_runs_compare_with_new_ones(runs: Path, tmp_path: Path) -> None:
    new = samples.write_run(tmp_path, outcomes={DNS: "failed"})
    for whole in (runs / WHOLE, bundle("unsigned")):
        code, rows = changes(whole, new)
        assert (code, {name for name, change in rows.items() if change != "same"}) == (1, {DNS})
        assert rows[DNS] == "worse"
        code, rows = changes(new, whole)
        assert (code, rows[DNS]) == (0, "better")


@pytest.mark.parametrize(
    ("name", "exit_code", "words"),
    [
        ("signed", 0, ["Example: Example Kubernetes 1.4\nPass, ", "✓ it is signed by the key sha256:3c386b51454f4dba"]),
        ("unsigned", 0, ["the 24 outcomes in the journal give the verdict Pass", "cannot tell who made it"]),
        ("draft", 3, ["Intact, but a draft and no certificate", "was waived by --allow-small-cluster"]),
    ],
)
def test_bundles_are_checked_again(name: str, exit_code: int, words: list[str]) -> None:
    result = ask("verify", bundle(name))
    assert result.exit_code == exit_code, result.output
    for text in words:
        assert text in result.stdout
    assert ask("verify", bundle(name), "--key", NEXT / "key.pub").exit_code == (0 if name == "signed" else 1)


@pytest.mark.parametrize("name", BUNDLES)
def test_their_rules_cannot_be_computed_again_and_verify_says_so(name: str) -> None:
    told = json.loads(ask("verify", bundle(name), "-o", "json").stdout)
    assert told["broken"] == []
    (line,) = [line for line in told["cannot_tell"] if "cannot be computed again" in line]
    assert "rules" in line


@pytest.mark.parametrize("name", BUNDLES)
def test_bundles_are_runs(name: str) -> None:
    verdict, exit_code, outcomes = TOLD["waived" if name == "draft" else WHOLE]
    result = ask("status", bundle(name))
    assert (result.stdout.strip(), result.exit_code) == (verdict, exit_code)
    told = json.loads(ask("report", bundle(name), "--format", "json").stdout)
    assert Counter(item["outcome"] for item in told["requirements"]) == outcomes


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("healthy", "it ran on the sandbox"),
        ("failed", "the verdict is Fail"),
        ("waived", "rule.cluster-size was waived by --allow-small-cluster"),
        ("interrupted", "the run is partial"),
        ("killed", "the verdict is Fail (unfinished)"),
    ],
)
def test_what_could_not_be_certified_then_cannot_be_now(runs: Path, name: str, reason: str, tmp_path: Path) -> None:
    result = ask("certify", runs / name, *PRODUCT, "--output", tmp_path / "b.tar.gz")
    assert (result.exit_code, reason in result.stderr) == (1, True), result.output
    assert not (tmp_path / "b.tar.gz").exists()

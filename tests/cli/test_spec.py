"""``winready spec`` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import yaml
from click.testing import CliRunner

from winready.checks.registry import load_checks
from winready.cli.main import cli


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["spec", *arguments])
    return result.exit_code, result.output


def test_list_shows_every_requirement_with_its_statement() -> None:
    code, output = run("list")
    assert code == 0
    assert "core.network.dns-internal" in output
    assert "extend.worker.remote-access" in output
    assert len(json.loads(run("list", "-o", "json")[1])) == 46


def test_show_knows_requirements_rules_and_near_misses() -> None:
    assert "cluster DNS names" in run("show", "N10")[1]
    assert "two schedulable Linux nodes" in run("show", "rule.cluster-size")[1]
    code, output = run("show", "core.network.dns-intrnal")
    assert code == 2
    assert "did you mean" in output


def test_coverage_is_honest() -> None:
    code, output = run("coverage", "-o", "json")
    rows = {row["id"]: row for row in json.loads(output)["requirements"]}
    assert code == 0
    assert {name for name, row in rows.items() if row["check"]} == set(load_checks())
    assert [name for name, row in rows.items() if not row["check"]] == []
    assert "46 of 46 requirements have a verifier" in run("coverage")[1]
    assert rows["core.network.windows-to-linux-pod-ip"]["upstream"] == ["hybrid-network"]
    assert rows["core.network.distinct-pod-ips"]["upstream_proves"] == "a part"
    assert rows["core.network.distinct-pod-ips"]["unproven"]
    early = json.loads(run("coverage", "--kubernetes", "1.23", "-o", "json")[1])
    assert next(row for row in early["requirements"] if row["id"] == "extend.hostprocess.api-access")["upstream"] == []
    assert run("coverage", "--kubernetes", "new")[0] == 2


def test_validate_reports_every_mistake_and_says_2(tmp_path: Path) -> None:
    good = Path(__file__).parents[2] / "src/winready/spec/standard.yaml"
    bad = tmp_path / "bad.yaml"
    bad.write_text(good.read_text().replace("level: core", "level: cor").replace("key: N2", "key: N1"))
    code, output = run("validate", str(good), str(bad), str(tmp_path / "missing.yaml"))
    assert code == 2
    assert "46 requirements" in output
    assert output.count("'cor' is not one of") == 4
    assert "key 'N1' is taken by" in output
    assert "cannot be read" in output


def test_the_schema_is_json() -> None:
    assert json.loads(run("schema")[1])["title"] == "winready specification"
    assert yaml.safe_load(run("show", "N1", "-o", "yaml")[1])["key"] == "N1"

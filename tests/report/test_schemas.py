"""The published schemas: made from the types, kept in ``docs/schemas``, and true of what runs write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from report import samples
from winready.cli.main import cli
from winready.report import record
from winready.report.schemas import SCHEMAS

ROOT = Path(__file__).resolve().parents[2]
DNS = "core.network.dns-internal"


def check(name: str, document: Any) -> None:
    jsonschema.Draft202012Validator(SCHEMAS[name]()).validate(document)


def check_folder(folder: Path) -> None:
    check("run", json.loads((folder / "run.json").read_bytes()))
    for line in (folder / "journal.jsonl").read_text().splitlines():
        check("journal", json.loads(line))


@pytest.mark.parametrize("name", ["spec", "run", "journal", "active-directory", "node", "api"])
def test_the_published_file_is_what_the_types_say(name: str) -> None:
    result = CliRunner().invoke(cli, ["spec", "schema", "--of", name])
    assert result.exit_code == 0
    jsonschema.Draft202012Validator.check_schema(json.loads(result.stdout))
    published = ROOT / "docs" / "schemas" / f"{name}.json"
    assert published.read_text() == result.stdout, f"'winready spec schema --of {name}' writes it anew"


def test_what_a_run_writes_follows_them(tmp_path: Path) -> None:
    check_folder(samples.write_run(tmp_path, outcomes={DNS: "failed"}, settings={"times_cluster_s": {"poll": 1.0}}))


@pytest.mark.parametrize(
    "change", [{"schema": "winready-run/2"}, {"verdict": "Maybe"}, {"requirements": [{}]}, {"rules": None}]
)
def test_what_no_run_writes_does_not(change: dict[str, Any]) -> None:
    document = json.loads(record.encode(samples.make_record(ids=[DNS])))
    check("run", document)
    with pytest.raises(jsonschema.ValidationError):
        check("run", document | change)

"""What whoever carries on is told: the files on the map are there, targets can be made, hooks and forms can be used."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("CONTRIBUTING.md", "SECURITY.md", ".github/pull_request_template.md")
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
CODE = re.compile(r"`([^`\n]+)`")
THINGS = ("check", "fault", "cmdlet", "API kind", "report", "lint rule", "command", "CI stage")


def paths(text: str) -> list[str]:
    """The paths that a page names, from the root of the repository."""
    words = [span.split()[0] for span in CODE.findall(text)]
    return [word for word in words if "/" in word or word.endswith((".md", ".toml"))]


def there(path: str) -> bool:
    return (ROOT / path).is_dir() if path.endswith("/") else (ROOT / path).is_file()


@pytest.mark.parametrize("name", PAGES)
def test_every_path_that_is_named_is_there(name: str) -> None:
    named = paths((ROOT / name).read_text())
    assert named
    assert [path for path in named if not there(path)] == []


@pytest.mark.parametrize("thing", THINGS)
def test_the_map_has_a_way_for(thing: str) -> None:
    rows = [
        line.split("|")[1:-1] for line in (ROOT / "CONTRIBUTING.md").read_text().splitlines() if line.startswith("| a")
    ]
    (row,) = [cells for cells in rows if thing in cells[0]]
    _, change, test, proof, document = row
    assert paths(change)
    assert paths(test)
    assert proof.strip()
    assert document.strip()


@pytest.mark.parametrize("name", PAGES)
def test_every_target_can_be_made(name: str) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([\w-]+)", (ROOT / name).read_text(), re.MULTILINE)) <= targets


def test_hooks_are_the_tools_of_the_environment_and_fetch_nothing() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert [repository["repo"] for repository in config["repos"]] == ["local"]
    hooks = config["repos"][0]["hooks"]
    assert {hook["language"] for hook in hooks} == {"system"}
    programs = [Path(hook["entry"].split()[0]) for hook in hooks]
    assert {program.parent for program in programs} == {Path(".venv/bin")}
    assert all((Path(sys.executable).parent / program.name).exists() for program in programs)
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe
    assert {program.name for program in programs} == set(re.findall(r"\$\(BIN\)/([\w-]+)", recipe[1]))


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_forms_are_what_github_reads(path: Path) -> None:
    form: dict[str, Any] = yaml.safe_load(path.read_text())
    assert set(form) == {"name", "description", "labels", "body"}
    asked = [field for field in form["body"] if field["type"] != "markdown"]
    assert {field["type"] for field in asked} <= {"input", "textarea", "dropdown"}
    assert len({field["id"] for field in asked}) == len(asked)
    assert all(field["attributes"]["label"] for field in asked)
    assert all(field["attributes"]["options"] for field in asked if field["type"] == "dropdown")

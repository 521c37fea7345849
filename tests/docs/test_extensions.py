"""What docs/extensions.md shows is what happens, and what it says of the standard is what the standard says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cli.conftest import CommandLine, command_line
from winready.cluster.directory import parse_directory
from winready.spec.loader import load_standard

__all__ = ["command_line"]

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "extensions.md").read_text()
RUN = re.compile(r"^\$ (winready run --sandbox .*)\n((?:(?!```).*\n)*)", re.MULTILINE)
RUNS = RUN.findall(PAGE)
STANDARD = load_standard()
TIMES = re.compile(r"\s+\d+\.\d s$")
ADDRESS = re.compile(r"10\.244\.\d+\.\d+")


def plain(line: str) -> str:
    """A line without what differs from run to run."""
    return ADDRESS.sub("ADDRESS", TIMES.sub("", line)).strip()


@pytest.mark.parametrize(("typed", "shown"), RUNS, ids=[typed for typed, _ in RUNS])
def test_runs_end_as_shown(typed: str, shown: str, command_line: CommandLine, tmp_path: Path) -> None:
    result = command_line(*shlex.split(typed)[1:], "--speed", "max", "--report-dir", str(tmp_path))
    seen = {plain(line) for line in result.stdout.splitlines()}
    missing = [line for line in map(plain, shown.splitlines()) if line not in ("", "...") and line not in seen]
    assert missing == [], result.stdout
    assert result.returncode == (1 if "Fail" in shown else 0)


def test_every_extension_is_there_with_its_older_names_and_the_number_of_its_requirements() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| Extend.")]
    for category in STANDARD.document.categories:
        if category.level == "core":
            continue
        (row,) = [line for line in rows if line.startswith((f"| {category.name} ", f"| {category.name},"))]
        _, names, number, *_ = (cell.strip() for cell in row.split("|"))
        assert all(f"`{name}`" in names for name in category.aliases), row
        assert int(number) == sum(item.category == category.name for item in STANDARD.requirements), row


@pytest.mark.parametrize("category", ["Extend.ActiveDirectory", "Extend.Network", "Extend.NetworkPolicy"])
def test_each_requirement_of_these_is_explained(category: str) -> None:
    for item in STANDARD.requirements:
        assert item.category != category or f"| `{item.id}` |" in PAGE, item.id


def test_the_file_for_a_domain_is_one_that_is_read() -> None:
    (text,) = re.findall(r"^```yaml\n(domain: .*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    read = parse_directory(text.encode(), "domain.yaml")
    assert (read.domain, read.folder, read.cluster_role) == ("corp.example.com", "C:\\webapp", "webapp-gmsa-user")

"""What docs/extensions.md shows is what happens, and what it says of the standard is what the standard says."""

from __future__ import annotations

import asyncio
import re
import shlex
from pathlib import Path

import pytest
import yaml

from cli.conftest import CommandLine, command_line
from docs.test_documents import parse
from winready.cluster.directory import parse_directory
from winready.spec.loader import load_standard
from winready_sandbox.plan import Plan
from winready_sandbox.up import Sandbox
from winready_sandbox.virtual_time import VirtualTimeLoop

__all__ = ["command_line"]

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE, CI = (DOCS / "extensions.md").read_text(), (DOCS / "ci.md").read_text()
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


def test_a_job_with_a_domain_is_one_that_the_api_takes_and_a_run_reads(tmp_path: Path) -> None:
    blocks = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", CI, re.MULTILINE | re.DOTALL)]
    (job,) = [block for block in blocks if block.get("kind") == "Job"]
    (more,) = [block for block in blocks if "volumes" in block]
    spec = job["spec"]["template"]["spec"]
    spec["containers"][0] |= more["containers"][0]
    spec["volumes"] = more["volumes"]
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        sandbox = Sandbox(Plan(name="docs", windows=1, linux=1))
        runner.run(sandbox.__aenter__())
        api = sandbox.embedded.client
        api.create("namespaces", {"metadata": {"name": "winready"}})
        made = api.create("jobs", job)
        runner.run(sandbox.__aexit__(None, None, None))
    container = made["spec"]["template"]["spec"]["containers"][0]
    assert container["image"]
    words = container["args"]
    given = words[words.index("--active-directory") + 1]
    (mount,) = [each for each in container["volumeMounts"] if given.startswith(f"{each['mountPath']}/")]
    (volume,) = [each for each in spec["volumes"] if each["name"] == mount["name"]]
    name, key = volume["configMap"]["name"], given.removeprefix(f"{mount['mountPath']}/")
    assert f"kubectl -n winready create configmap {name} --from-file={key}\n" in CI
    assert f"`--active-directory {given}`" in PAGE
    # Only the file itself is not there on this machine.
    (tmp_path / key).touch()
    parse([str(tmp_path / key) if word == given else word for word in words])


def test_the_file_for_a_domain_is_one_that_is_read() -> None:
    (text,) = re.findall(r"^```yaml\n(domain: .*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    read = parse_directory(text.encode(), "domain.yaml")
    assert (read.domain, read.folder, read.cluster_role) == ("corp.example.com", "C:\\webapp", "webapp-gmsa-user")

"""The example of docs/write-a-check.md, taken from the document, works in a copy of the program."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^`(src/winready\w*/[\w/.]+)`[^\n]*:\n\n```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
FAULT = "service-proxy.windows.affinity-forgotten"
REQUIREMENT = "extend.network.session-affinity"


def blocks() -> dict[str, str]:
    return dict(BLOCK.findall((ROOT / "docs" / "write-a-check.md").read_text()))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the program with the example written into it, as the document says."""
    source = tmp_path / "src"
    # With its bytecode, which stays valid: compiling everything anew takes longer than the run.
    shutil.copytree(ROOT / "src", source)
    for name, text in blocks().items():
        path = tmp_path / name
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            continue
        before = path.read_text()
        if name.endswith("standard.yaml"):
            after = before.replace("\nrules:\n", textwrap.indent(text, "  ") + "\nrules:\n")
        else:
            end = before[-3:]
            assert end in ("\n)\n", "\n}\n"), name
            after = before.removesuffix(end[1:]) + text + end[1:]
        path.write_text(after)
    package = tmp_path / "src/winready/checks/extend_network/__init__.py"
    if not package.exists():
        package.write_text('"""Checks of Extend.Network."""\n')
    return tmp_path


def winready(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(copy / "src")}
    return subprocess.run(
        [sys.executable, "-m", "winready", *arguments],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_document_gives_every_file() -> None:
    assert set(blocks()) == {
        "src/winready/spec/standard.yaml",
        "src/winready/checks/extend_network/session_affinity.py",
        "src/winready_sandbox/faults/service_proxy.py",
        "src/winready/proof/expected/service_proxy.py",
    }


def test_the_check_keeps_the_house_rules() -> None:
    code = next(text for name, text in blocks().items() if name.endswith("session_affinity.py"))
    ruff = Path(sys.executable).parent / "ruff"
    for mode in (["check", "--quiet"], ["format", "--check", "--quiet"]):
        result = subprocess.run(
            [ruff, *mode, "--stdin-filename", "src/winready/checks/example.py", "-"],
            cwd=ROOT,
            input=code,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr


def test_the_check_passes_a_healthy_node_and_fails_the_broken_one(copy: Path) -> None:
    result = winready(
        copy, "run", "--sandbox", "--speed", "50", "--requirement", REQUIREMENT, "--fault", f"{FAULT}@windows-2",
        "-o", "json",
    )  # fmt: skip
    assert result.returncode == 1, result.stdout + result.stderr
    (found,) = json.loads(result.stdout)["requirements"]
    assert found["outcome"] == "failed"
    assert "on node windows-2" in found["reason"]
    assert "on node windows-1" not in found["reason"]
    sticks = {probe["node"]: probe["ok"] for probe in found["evidence"]["probes"] if "sticks" in probe["title"]}
    assert sticks == {"windows-1": True, "windows-2": False}


def test_the_check_is_proven_as_the_document_says(copy: Path) -> None:
    result = winready(copy, "sandbox", "prove", "--category", "extend.network", "--fault", FAULT, "-o", "json")
    assert result.returncode == 0, result.stdout + result.stderr
    (proof,) = json.loads(result.stdout)["faults"]
    assert proof["declared"] == [REQUIREMENT]
    assert proof["outcomes"][REQUIREMENT] == "failed"
